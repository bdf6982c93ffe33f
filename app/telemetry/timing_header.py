"""Why an answer took as long as it did, for the client: Server-Timing header and timing parameters.

Runs on: event loop.
"""

from __future__ import annotations

from ..core.request import Call, ParameterValue
from ..core.timing import BatchTiming


def _batch_members(batch: BatchTiming) -> bytes:
    """The members that are the same for all calls of a batch, made once per batch."""
    batch.header = members = b', batch;dur=%.3f, compute;dur=%.3f, size;desc="%d"' % (
        (batch.compute_start_ns - batch.taken_ns) / 1e6,
        (batch.compute_end_ns - batch.compute_start_ns) / 1e6,
        batch.rows,
    )
    return members


def _queue_ns_without_batch(call: Call) -> int:
    """How long a call waited that no lane ever took; 0 when it was never queued or is not finished."""
    return max(0, call.finished_ns - call.enqueued_ns) if call.enqueued_ns else 0


def server_timing(call: Call, encode_ns: int = 0) -> bytes:
    """The value of the Server-Timing header: durations in milliseconds, then the rows of the batch.

    A call that ended without a batch (refused, timed out, cancelled) has `queue` alone. `encode_ns` > 0 adds
    `encode`, what writing the reply took.
    """
    batch = call.batch
    if batch is None:
        value = b"queue;dur=%.3f" % (_queue_ns_without_batch(call) / 1e6)
    else:
        value = b"queue;dur=%.3f%b" % (
            (batch.taken_ns - call.enqueued_ns) / 1e6,
            batch.header or _batch_members(batch),
        )
    if encode_ns:
        value += b", encode;dur=%.3f" % (encode_ns / 1e6)
    return value


def timing_parameters(call: Call) -> dict[str, ParameterValue]:
    """The response parameters for a request that set `timing: true`; whole nanoseconds, rows and requests."""
    batch = call.batch
    if batch is None:
        return {
            "queue_ns": _queue_ns_without_batch(call),
            "merge_ns": 0,
            "compute_ns": 0,
            "batch_rows": 0,
            "batch_requests": 0,
        }
    return {
        "queue_ns": batch.taken_ns - call.enqueued_ns,
        "merge_ns": batch.compute_start_ns - batch.taken_ns,
        "compute_ns": batch.compute_end_ns - batch.compute_start_ns,
        "batch_rows": batch.rows,
        "batch_requests": batch.requests,
    }
