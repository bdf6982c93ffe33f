"""The stamps of a batch."""

from kernelport.core.timing import BatchTiming


def test_a_batch_that_has_only_been_taken_took_no_time_yet() -> None:
    timing = BatchTiming(taken_ns=7, rows=4, requests=2, reason="size")
    assert (timing.compute_start_ns, timing.compute_end_ns, timing.done_ns) == (7, 7, 7)
    assert (timing.rows, timing.requests, timing.reason, timing.padded_rows) == (4, 2, "size", 0)
