"""Counters of one model version: plain integers, written on the event loop only. Runs on: event loop."""

from __future__ import annotations

from bisect import bisect_left

from ..core.timing import BatchTiming

# Upper bounds in nanoseconds, 50 us to 30 s.
LATENCY_BOUNDS_NS: tuple[int, ...] = tuple(
    int(seconds * 1e9)
    for seconds in (
        0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    )
)  # fmt: skip

OUTCOMES: tuple[str, ...] = (
    "success", "invalid", "queue_full", "queue_timeout", "deadline", "shed", "unavailable", "cancelled", "backend",
    "internal",
)  # fmt: skip
RELEASE_REASONS: tuple[str, ...] = ("size", "preferred", "delay", "idle", "shape", "deadline", "single")


class Histogram:
    """Bucket counts over fixed bounds; `counts[-1]` is the overflow bucket."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    @property
    def count(self) -> int:
        """How many values were counted; added up on demand, so that `observe` need not."""
        return sum(self.counts)

    def observe(self, value: int, times: int = 1) -> None:
        """Count `value` (`times` times)."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def copy(self) -> Histogram:
        """An independent copy."""
        twin = Histogram.__new__(Histogram)
        twin.bounds = self.bounds
        twin.counts = self.counts[:]
        twin.total = self.total
        return twin

    def add(self, other: Histogram) -> None:
        """Count everything `other` counted; both have the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class BatchSizeStats:
    """Executions of one batch size, in rows, and what their steps took (ns)."""

    __slots__ = ("compute_ns", "count", "merge_ns", "split_ns")

    def __init__(self) -> None:
        self.count = self.merge_ns = self.compute_ns = self.split_ns = 0

    def add(self, other: BatchSizeStats) -> None:
        """Count everything `other` counted."""
        self.count += other.count
        self.merge_ns += other.merge_ns
        self.compute_ns += other.compute_ns
        self.split_ns += other.split_ns


# What `ModelStats.add` treats how; the rest (load_ns, last_inference_ms) takes the larger value.
_SUMMED: tuple[str, ...] = (
    "received", "rows", "executions", "executed_rows", "padded_rows", "reruns", "pending", "in_flight", "fail_ns",
    "split_ns",
)  # fmt: skip
_HISTOGRAMS: tuple[str, ...] = ("request_time", "queue_time", "merge_time", "compute_time", "encode_time", "batch_rows")
_TALLIES: tuple[str, ...] = ("outcomes", "release_reasons")
_LARGEST: tuple[str, ...] = ("load_ns", "last_inference_ms")


class ModelStats:
    """Everything counted about one model version. Requests are counted once, when they finish.

    Invariants: `received == sum(outcomes.values()) + pending + in_flight`; rows of successful requests
    add up to `rows`; `sum(size * s.count for size, s in batch_sizes.items()) == executed_rows`.
    """

    __slots__ = (
        "batch_rows",
        "batch_sizes",
        "compute_time",
        "encode_time",
        "executed_rows",
        "executions",
        "fail_ns",
        "in_flight",
        "last_inference_ms",
        "load_ns",
        "merge_time",
        "outcomes",
        "padded_rows",
        "pending",
        "queue_time",
        "received",
        "release_reasons",
        "request_time",
        "reruns",
        "rows",
        "split_ns",
    )

    def __init__(self) -> None:
        self.received = 0
        self.outcomes: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        self.rows = 0  # rows of requests that succeeded
        self.executions = 0  # successful framework calls
        self.executed_rows = 0  # rows in them, padding excluded
        self.padded_rows = 0
        self.reruns = 0  # batches re-run member by member after a failure
        self.pending = 0  # waiting in the queue
        self.in_flight = 0  # taken by a lane, not finished
        self.fail_ns = 0  # what failed requests took, receipt to settled
        self.split_ns = 0  # per request: its batch's split, as merge_time and compute_time
        self.load_ns = 0
        self.last_inference_ms = 0
        self.request_time = Histogram(LATENCY_BOUNDS_NS)  # successes, receipt to settled, ns
        self.queue_time = Histogram(LATENCY_BOUNDS_NS)  # per request
        self.merge_time = Histogram(LATENCY_BOUNDS_NS)  # per request: its batch's merge
        self.compute_time = Histogram(LATENCY_BOUNDS_NS)  # per request: its batch's framework call
        self.encode_time = Histogram(LATENCY_BOUNDS_NS)  # per reply
        self.batch_rows = Histogram((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
        self.batch_sizes: dict[int, BatchSizeStats] = {}
        self.release_reasons: dict[str, int] = dict.fromkeys(RELEASE_REASONS, 0)

    def executed(self, batch: BatchTiming) -> None:
        """Count one successful framework call."""
        rows = batch.rows
        self.executions += 1
        self.executed_rows += rows
        self.padded_rows += batch.padded_rows
        self.batch_rows.observe(rows)
        self.release_reasons[batch.reason] += 1
        sized = self.batch_sizes.get(rows)
        if sized is None:
            sized = self.batch_sizes[rows] = BatchSizeStats()
        sized.count += 1
        sized.merge_ns += batch.compute_start_ns - batch.taken_ns
        sized.compute_ns += batch.compute_end_ns - batch.compute_start_ns
        sized.split_ns += batch.done_ns - batch.compute_end_ns

    def succeeded(self, rows: int, received_ns: int, enqueued_ns: int, batch: BatchTiming, now_ns: int) -> None:
        """Count one request that got its answer."""
        self.answered(rows, received_ns, enqueued_ns, batch.taken_ns, now_ns)
        self.shared(batch, 1)

    def answered(self, rows: int, received_ns: int, enqueued_ns: int, taken_ns: int, now_ns: int) -> None:
        """The part of `succeeded` that is each request's own."""
        # Written out instead of two `observe` calls: this runs for every request, and the calls are half its time.
        self.outcomes["success"] += 1
        self.rows += rows
        histogram = self.request_time
        elapsed_ns = now_ns - received_ns
        histogram.counts[bisect_left(LATENCY_BOUNDS_NS, elapsed_ns)] += 1
        histogram.total += elapsed_ns
        histogram = self.queue_time
        elapsed_ns = taken_ns - enqueued_ns
        histogram.counts[bisect_left(LATENCY_BOUNDS_NS, elapsed_ns)] += 1
        histogram.total += elapsed_ns

    def shared(self, batch: BatchTiming, times: int) -> None:
        """The part of `succeeded` that is the same for `times` requests of a batch."""
        self.split_ns += (batch.done_ns - batch.compute_end_ns) * times
        self.merge_time.observe(batch.compute_start_ns - batch.taken_ns, times)
        self.compute_time.observe(batch.compute_end_ns - batch.compute_start_ns, times)

    def failed(self, outcome: str, elapsed_ns: int) -> None:
        """Count one request that ended with an error; `outcome` is the error's class attribute."""
        self.outcomes[outcome] += 1
        self.fail_ns += elapsed_ns

    def copy(self) -> ModelStats:
        """An independent copy, for rendering off the event loop: the numbers in it belong together."""
        twin = ModelStats.__new__(ModelStats)
        for name in _SUMMED + _LARGEST:
            setattr(twin, name, getattr(self, name))
        for name in _HISTOGRAMS + _TALLIES:
            setattr(twin, name, getattr(self, name).copy())
        twin.batch_sizes = {}
        for size, sized in self.batch_sizes.items():
            twin.batch_sizes[size] = copy = BatchSizeStats()
            copy.add(sized)
        return twin

    def add(self, other: ModelStats) -> None:
        """Count everything `other` counted, as when two loads of one version overlap during a reload."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _LARGEST:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        for name in _HISTOGRAMS:
            getattr(self, name).add(getattr(other, name))
        for name in _TALLIES:
            mine = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] += count
        for size, sized in other.batch_sizes.items():
            self.batch_sizes.setdefault(size, BatchSizeStats()).add(sized)
