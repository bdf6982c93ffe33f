"""When a bucket of waiting requests leaves, and how many rows of it: a pure decision. Runs on: anywhere (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from .queue import Bucket

# A request whose queue timeout is shorter than the batching delay leaves this long before it would expire.
_DEADLINE_MARGIN_NS = 1_000_000


@dataclass(slots=True, frozen=True)
class BatchPolicy:
    """How requests of one model version are merged. Rows are counted, not requests.

    `merges` False: every request runs alone. `preferred_rows` ascending (Triton's
    `preferred_batch_size`). `allowed_rows` ascending, last equal to `max_rows`: a batch is padded up to the next
    of them. `shape_buckets` lists (input name, axis, ascending sizes): that dimension is padded up to the next size.
    """

    max_rows: int = 1
    merges: bool = False
    preferred_rows: tuple[int, ...] = ()
    max_delay_ns: int = 0
    preserve_ordering: bool = False
    allowed_rows: tuple[int, ...] = ()
    shape_buckets: tuple[tuple[str, int, tuple[int, ...]], ...] = ()
    pad_value: float = 0.0
    split_oversized: bool = False


@dataclass(slots=True, frozen=True)
class QueuePolicy:
    """Bounds on waiting. `default_timeout_ns` 0: none. `may_override`: a request's `timeout` may shorten it.

    `rejects` True answers expired requests with 503 (Triton's REJECT); False serves them after the others (DELAY).
    """

    max_queue_size: int = 1024
    default_timeout_ns: int = 0
    may_override: bool = False
    rejects: bool = True

    def timeout_ns(self, requested_us: int) -> int:
        """The queue timeout of a request that asked for `requested_us` (0: did not ask); 0 means none.

        As in Triton, a request can only shorten the model's own timeout.
        """
        default = self.default_timeout_ns
        if requested_us > 0 and self.may_override and requested_us * 1000 < default:
            return requested_us * 1000
        return default


@dataclass(slots=True, frozen=True)
class Dispatch:
    """Take up to `rows` rows now."""

    rows: int
    reason: str


@dataclass(slots=True, frozen=True)
class Wait:
    """Look again at `until_ns`, or when something arrives."""

    until_ns: int


def plan(bucket: Bucket, policy: BatchPolicy, now_ns: int) -> Dispatch | Wait:
    """Decide about a non-empty bucket for which an instance is free.

    Semantics of Triton's dynamic batcher (`ModelDynamicBatching`): a full batch leaves at once; the largest
    preferred size that whole requests make up is cut out; when the oldest request has waited `max_delay_ns`,
    everything leaves.
    """
    if not policy.merges:
        return Dispatch(bucket.head.rows, "single")
    rows = bucket.rows
    if rows >= policy.max_rows and not policy.preferred_rows:
        return Dispatch(policy.max_rows, "size")
    head = bucket.head
    delay_ns = policy.max_delay_ns
    leaves_ns = head.enqueued_ns + delay_ns
    if delay_ns and now_ns >= leaves_ns:
        return Dispatch(policy.max_rows, "delay")
    preferred = _largest_preferred(bucket, policy.preferred_rows) if policy.preferred_rows else 0
    if preferred:
        return Dispatch(preferred, "preferred")
    if rows >= policy.max_rows:
        return Dispatch(policy.max_rows, "size")
    if bucket.must_leave:
        return Dispatch(policy.max_rows, "shape")
    if not delay_ns or head.is_late:
        return Dispatch(policy.max_rows, "idle")
    deadline_ns = min((entry.expires_ns for entry in bucket.entries if entry.expires_ns), default=0)
    if deadline_ns:
        leave_early_ns = deadline_ns - min(_DEADLINE_MARGIN_NS, (deadline_ns - head.enqueued_ns) // 2)
        if now_ns >= leave_early_ns:
            return Dispatch(policy.max_rows, "deadline")
        leaves_ns = min(leaves_ns, leave_early_ns)
    return Wait(leaves_ns)


def _largest_preferred(bucket: Bucket, preferred_rows: tuple[int, ...]) -> int:
    """The largest preferred size that whole requests from the front add up to exactly; 0 when there is none."""
    if bucket.rows == len(bucket):
        return next((size for size in reversed(preferred_rows) if size <= bucket.rows), 0)
    found = rows = 0
    for entry in chain(bucket.entries, bucket.late):
        rows += entry.rows
        if rows in preferred_rows:
            found = rows
        if rows >= preferred_rows[-1]:
            break
    return found
