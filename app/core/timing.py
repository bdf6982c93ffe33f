"""What a batch's steps took; shared by all its calls. Runs on: worker thread writes, event loop reads."""

from __future__ import annotations


class BatchTiming:
    """Monotonic nanosecond stamps of one executed batch, and its size."""

    __slots__ = (
        "compute_end_ns",
        "compute_start_ns",
        "done_ns",
        "header",
        "padded_rows",
        "reason",
        "requests",
        "rows",
        "taken_ns",
    )

    def __init__(self, taken_ns: int, rows: int, requests: int, reason: str) -> None:
        self.taken_ns = taken_ns
        self.rows = rows
        self.requests = requests
        self.reason = reason  # why it left the queue: size, preferred, delay, idle, shape, deadline, single
        self.padded_rows = 0
        self.compute_start_ns = taken_ns
        self.compute_end_ns = taken_ns
        self.done_ns = taken_ns
        self.header = b""  # Server-Timing members that all its calls share; filled by the first call answered
