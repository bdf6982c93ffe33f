"""Ending requests: once each, counted once each, in order where order matters."""

from __future__ import annotations

import pytest
from fakes.batching import Bench, request, values
from hypothesis import given
from hypothesis import strategies as st
from kernelport.batcher.policy import BatchPolicy
from kernelport.batcher.queue import Entry
from kernelport.batcher.settle import check_drained, deliver, fail_rest, refuse, settle
from kernelport.batcher.target import Batch, Result
from kernelport.core.errors import BackendError, KernelPortError, PayloadTooLarge, QueueFull, ServerStopping
from kernelport.core.request import Call, InferenceResponse
from kernelport.core.timing import BatchTiming

ORDERED = BatchPolicy(max_rows=8, merges=True, preserve_ordering=True)
RESPONSE = InferenceResponse("m", "1", [])


def accepted(bench: Bench, rows: int = 1) -> Entry:
    """An entry that a lane has taken."""
    entry = bench.submit(request(1.0, rows), rows)
    batch = bench.take()
    assert batch is not None
    entry.batch = batch.timing
    return entry


def taken(bench: Bench, count: int = 1) -> Batch:
    for number in range(count):
        bench.submit(request(float(number)))
    batch = bench.take()
    assert batch is not None
    return batch


def counted(bench: Bench) -> dict[str, int]:
    return {outcome: count for outcome, count in bench.target.stats.outcomes.items() if count}


def test_an_entry_is_settled_once_whoever_comes_second() -> None:
    bench = Bench()
    entry = accepted(bench, rows=3)
    settle(entry, RESPONSE, None, 50)
    settle(entry, None, BackendError("late"), 60)
    assert entry.response is RESPONSE
    assert entry.finished_ns == 50
    assert counted(bench) == {"success": 1}
    assert bench.target.stats.rows == 3
    assert bench.target.open_calls == 0


@pytest.mark.parametrize("error", [BackendError("no"), ServerStopping("later"), KernelPortError("hm")])
def test_an_error_is_counted_under_its_own_outcome(error: KernelPortError) -> None:
    bench = Bench()
    entry = accepted(bench)
    settle(entry, None, error, entry.received_ns + 30)
    assert entry.error is error
    assert counted(bench) == {error.outcome: 1}
    assert bench.target.stats.fail_ns == 30


def test_a_reply_that_turns_out_too_large_is_counted_as_what_the_client_got() -> None:
    bench = Bench()
    entry = accepted(bench)

    def refuse_reply(call: Call) -> None:
        call.error = PayloadTooLarge("the reply is above max_response_bytes")

    entry.add_done_callback(refuse_reply)
    settle(entry, RESPONSE, None, 50)
    assert counted(bench) == {"invalid": 1}
    assert bench.target.stats.rows == 0


def test_an_error_whose_reply_cannot_be_written_is_still_counted(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    entry = accepted(bench)

    def explode(call: Call) -> None:
        raise RuntimeError("the socket is upside down")

    entry.add_done_callback(explode)
    settle(entry, None, BackendError("no"), 50)
    assert counted(bench) == {"internal": 1}
    assert "model 'm': writing a reply failed" in caplog.text


def test_a_part_of_a_larger_request_is_finished_but_not_counted() -> None:
    bench = Bench(permits=2)
    for error in (None, BackendError("no")):
        entry = accepted(bench)
        entry.is_part = True
        settle(entry, None if error else RESPONSE, error, 50)
        assert entry.is_done
    assert counted(bench) == {}
    assert bench.target.open_calls == 0


def test_a_refused_entry_is_counted_as_refused_unless_it_is_a_part() -> None:
    bench = Bench()
    for is_part in (False, True):
        entry = Entry(request(1.0), 1, 10, bench.target)
        entry.is_part = is_part
        refuse(entry, QueueFull("full"), 40)
        assert isinstance(entry.error, QueueFull)
        assert entry.finished_ns == 40
    assert counted(bench) == {"queue_full": 1}
    assert bench.target.stats.fail_ns == 30


def test_executions_are_counted_per_framework_call_and_reruns_per_batch() -> None:
    bench = Bench()
    batch = taken(bench, 2)
    batch.executions = [BatchTiming(0, 1, 1, "idle"), BatchTiming(0, 1, 1, "idle")]
    batch.was_rerun = True
    batch.results = [Result(entry, RESPONSE, None, batch.timing) for entry in batch.entries]
    deliver(batch, 90)
    stats = bench.target.stats
    assert (stats.executions, stats.executed_rows, stats.reruns) == (2, 2, 1)
    assert counted(bench) == {"success": 2}
    assert all(entry.batch is batch.timing for entry in batch.entries)


@pytest.mark.parametrize("policy", [BatchPolicy(max_rows=8, merges=True), ORDERED])
def test_every_answered_request_has_its_times_counted_whether_shared_or_its_own(policy: BatchPolicy) -> None:
    bench = Bench(policy)
    shared, again, failed = bench.submit(request(1.0)), bench.submit(request(2.0)), bench.submit(request(3.0))
    also = bench.submit(request(4.0))
    batch = bench.take()
    assert batch is not None
    alone = BatchTiming(batch.timing.taken_ns, 1, 1, "idle")
    for timing, end_ns, done_ns in ((batch.timing, 70, 100), (alone, 5, 6)):
        timing.compute_end_ns = timing.compute_start_ns + end_ns
        timing.done_ns = timing.compute_start_ns + done_ns
    batch.results = [
        Result(shared, RESPONSE, None, batch.timing),
        Result(again, RESPONSE, None, alone),
        Result(failed, None, BackendError("no"), batch.timing),
        Result(also, RESPONSE, None, batch.timing),
    ]
    deliver(batch, batch.timing.done_ns)
    stats = bench.target.stats
    assert counted(bench) == {"success": 3, "backend": 1}
    for times in (stats.request_time, stats.queue_time, stats.merge_time, stats.compute_time):
        assert times.count == 3
    assert stats.compute_time.total == 70 + 70 + 5
    assert stats.split_ns == 30 + 30 + 1


def test_a_batch_in_which_nobody_was_answered_counts_no_times() -> None:
    bench = Bench()
    batch = taken(bench, 2)
    fail_rest(batch, BackendError("no"))
    deliver(batch, 90)
    assert bench.target.stats.compute_time.count == 0


def test_who_has_no_result_gets_the_error_and_who_has_one_keeps_it() -> None:
    bench = Bench()
    batch = taken(bench, 3)
    first, second, third = batch.entries
    batch.results.append(Result(second, RESPONSE, None, batch.timing))
    fail_rest(batch, BackendError("the worker died"))
    deliver(batch, 90)
    assert second.response is RESPONSE
    assert isinstance(first.error, BackendError)
    assert isinstance(third.error, BackendError)
    assert counted(bench) == {"success": 1, "backend": 2}


def test_the_owner_of_a_closed_target_hears_once_that_it_is_drained() -> None:
    bench = Bench()
    heard: list[str] = []
    bench.target.on_drained = lambda: heard.append("drained")
    check_drained(bench.target)
    assert heard == []
    bench.submit(request(1.0)).cancel()
    bench.dispatcher.close(bench.target)
    check_drained(bench.target)
    assert heard == ["drained"]


def test_the_last_cancelled_request_of_a_closed_target_drains_it() -> None:
    bench = Bench()
    heard: list[str] = []
    entry = bench.submit(request(1.0))
    bench.target.on_drained = lambda: heard.append("drained")
    bench.dispatcher.close(bench.target)
    assert heard == []
    entry.cancel()
    assert heard == ["drained"]


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_under_preserve_ordering_answers_leave_in_order_of_arrival(finish: list[int], cancelled: set[int]) -> None:
    bench = Bench(ORDERED, permits=5)
    entries: list[Entry] = []
    batches: list[Batch] = []
    for number in range(5):
        # Another width each, so that each runs in a batch of its own.
        entries.append(bench.submit(request(float(number), width=number + 1)))
        batch = bench.take()
        assert batch is not None
        batches.append(batch)
    for place in finish:
        if place in cancelled:
            entries[place].cancel()
        bench.run(batches[place])
    answered = [entry for entry in bench.done if entry.response is not None]
    assert answered == [entry for place, entry in enumerate(entries) if place not in cancelled]
    assert all(entry.is_done for entry in entries)
    assert not bench.target.order


def test_when_the_server_gives_up_answers_held_back_for_their_order_go_out_too() -> None:
    bench = Bench(ORDERED, permits=2)
    stuck = bench.submit(request(1.0, width=2))
    running = bench.take()
    quick = bench.submit(request(2.0, width=3))
    finished = bench.take()
    waiting = bench.submit(request(3.0, width=2))
    assert running is not None
    assert finished is not None
    bench.run(finished)
    assert not quick.is_done
    bench.dispatcher.fail(bench.target, [running], ServerStopping("the server stopped"))
    assert isinstance(stuck.error, ServerStopping)
    assert isinstance(waiting.error, ServerStopping)
    assert values(quick).tolist() == [[4.0] * 3]


def test_giving_up_leaves_the_requests_of_other_models_alone() -> None:
    bench = Bench()
    other = Bench()
    mine, foreign = bench.submit(request(1.0)), other.submit(request(2.0))
    theirs = other.take()
    assert theirs is not None
    bench.dispatcher.fail(bench.target, [theirs], ServerStopping("the server stopped"))
    assert mine.is_done
    assert not foreign.is_done
