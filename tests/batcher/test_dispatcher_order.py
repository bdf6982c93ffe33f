"""Whose turn it is: order, permits, reloads, dead lanes, bursts."""

from __future__ import annotations

import pytest
from fakes.batching import MS, Bench, request, spec, values
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry, ModelQueue
from kernelport.core.errors import BackendError

DELAYED = BatchPolicy(max_rows=8, merges=True, max_delay_ns=5 * MS)
SINGLE = BatchPolicy()


def test_preserve_ordering_holds_back_answers_that_are_early() -> None:
    policy = BatchPolicy(max_rows=8, merges=True, preserve_ordering=True)
    bench = Bench(policy, permits=2)
    first = bench.submit(request(1.0, width=2))
    slow = bench.take()
    second = bench.submit(request(2.0, width=3))
    fast = bench.take()
    assert slow is not None
    assert fast is not None
    bench.run(fast)
    assert not second.is_done
    bench.run(slow)
    assert bench.done == [first, second]


def test_preserve_ordering_does_not_wait_for_an_entry_that_was_cancelled() -> None:
    policy = BatchPolicy(max_rows=8, merges=True, preserve_ordering=True)
    bench = Bench(policy, permits=2)
    first = bench.submit(request(1.0, width=2))
    slow = bench.take()
    second = bench.submit(request(2.0, width=3))
    fast = bench.take()
    assert slow is not None
    assert fast is not None
    bench.run(fast)
    first.cancel()
    assert second.response is not None


def test_a_new_shape_releases_the_older_bucket_when_order_matters() -> None:
    policy = BatchPolicy(max_rows=8, merges=True, max_delay_ns=5 * MS, preserve_ordering=True)
    bench = Bench(policy)
    bench.submit(request(1.0, width=2))
    assert bench.take() is None
    bench.submit(request(1.0, width=3))
    batch = bench.take()
    assert batch is not None
    assert batch.timing.reason == "shape"


def test_the_oldest_waiting_request_goes_first_over_all_models() -> None:
    bench = Bench(SINGLE, model=spec(0))
    other = bench.new_target(spec(0), QueuePolicy(), 1, ModelQueue("other"))
    order = []
    for number in range(4):
        target = bench.target if number % 2 else other
        order.append(bench.submit(request(number), target=target))
        bench.clock.advance(10)
    taken = [batch.entries[0] for batch in bench.work()]
    assert taken == order


def test_two_permits_run_two_batches_at_once_and_no_third() -> None:
    bench = Bench(SINGLE, model=spec(0), permits=2)
    for number in range(3):
        bench.submit(request(number))
    one, two = bench.take(), bench.take()
    assert one is not None
    assert two is not None
    assert bench.take() is None
    bench.run(one)
    assert bench.take(one) is not None


def test_a_reload_hands_waiting_requests_to_the_successor_but_not_pinned_ones() -> None:
    bench = Bench(SINGLE, model=spec(0))
    running = bench.submit(request(0.0))
    batch = bench.take()
    waiting, pinned = bench.submit(request(1.0)), bench.submit(request(2.0), pinned=True)
    successor = bench.new_target(spec(0), QueuePolicy(), 1, bench.target.queue)
    drained: list[bool] = []
    bench.target.on_drained = lambda: drained.append(True)
    bench.dispatcher.hand_over(bench.target, successor)
    bench.dispatcher.close(bench.target)
    assert waiting.target is successor
    taken = bench.take()
    assert taken is not None
    assert taken.target is successor
    assert batch is not None
    bench.run(batch)
    last = bench.take(batch)
    assert last is not None
    assert last.entries == [pinned]
    assert not drained
    bench.run(last)
    bench.run(taken)
    bench.take(last)
    assert drained == [True]
    assert running.response is not None
    assert waiting.response is not None
    assert pinned.response is not None
    assert (bench.target.stats.received, successor.stats.received) == (2, 1)


@pytest.mark.parametrize("sizes", [[1, 2], [3, 3]])
def test_an_abandoned_batch_is_answered_and_its_permit_comes_back(sizes: list[int]) -> None:
    bench = Bench()
    entries = [bench.submit(request(1.0, rows=size), rows=size) for size in sizes]
    batch = bench.take()
    assert batch is not None
    bench.dispatcher.abandon(batch, BackendError("the worker died"))
    assert all(isinstance(entry.error, BackendError) for entry in entries)
    assert bench.target.is_drained
    assert bench.target.free == 1
    assert bench.target.stats.in_flight == 0


def test_a_failing_reply_does_not_keep_the_neighbours_from_theirs(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    broken, fine = bench.submit(request(1.0)), bench.submit(request(2.0))

    def explode(call: object) -> None:
        raise RuntimeError("no")

    broken.add_done_callback(explode)
    bench.work()
    assert fine.response is not None
    assert bench.target.stats.outcomes["success"] == 1
    assert bench.target.stats.outcomes["internal"] == 1
    assert "writing a reply failed" in caplog.text


def test_finished_requests_are_not_kept_alive_by_their_timeouts() -> None:
    bench = Bench(queue_policy=QueuePolicy(default_timeout_ns=3_600_000 * MS))
    for _ in range(40):
        for number in range(64):
            bench.submit(request(number))
        bench.work()
    assert len(bench.dispatcher._timers) < 1200


def test_only_one_timer_is_armed_however_many_requests_wait() -> None:
    bench = Bench(DELAYED, QueuePolicy(default_timeout_ns=900 * MS))
    for number in range(5):
        bench.submit(request(number))
    assert len(bench.clock.armed) == 1


def test_a_bucket_that_waits_for_company_still_leaves_in_time_after_a_lane_has_died() -> None:
    bench = Bench(DELAYED)
    running = [bench.submit(request(number)) for number in range(8)]
    batch = bench.take()
    waiting = bench.submit(request(9.0))
    assert batch is not None
    bench.dispatcher.abandon(batch, BackendError("the worker died"))
    assert all(isinstance(entry.error, BackendError) for entry in running)
    bench.clock.advance(5 * MS)
    bench.work()
    assert values(waiting).tolist() == [[18.0, 18.0]]


def test_a_batch_that_is_no_longer_full_when_a_lane_comes_waits_for_its_delay_after_all() -> None:
    bench = Bench(DELAYED)
    entries = [bench.submit(request(number)) for number in range(8)]
    entries[3].cancel()
    assert bench.take() is None
    bench.clock.advance(5 * MS - 1)
    assert bench.woken == 0
    bench.clock.advance(1)
    (batch,) = bench.work()
    assert (len(batch.entries), batch.timing.reason) == (7, "delay")


def test_a_lane_takes_only_what_has_a_copy_on_its_device() -> None:
    bench = Bench()
    bench.target.idle_copies["cuda:0"] = [bench.copy]
    bench.target.free += 1
    entries = [bench.submit(request(1.0, width=width)) for width in (2, 3, 4)]
    on_gpu = bench.dispatcher.take(bench, "cuda:0")
    assert on_gpu is not None
    assert on_gpu.entries == entries[:1]
    assert bench.dispatcher.take(bench, "cuda:0") is None
    on_cpu = bench.take()
    assert on_cpu is not None
    assert on_cpu.entries == entries[1:2]
    assert bench.take() is None
    bench.run(on_gpu)
    last = bench.dispatcher.take(bench, "cuda:0", on_gpu)
    assert last is not None
    assert last.entries == entries[2:]


def test_a_successor_that_is_busy_takes_over_without_a_free_instance() -> None:
    bench = Bench(SINGLE, model=spec(0))
    successor = bench.new_target(spec(0), QueuePolicy(), 1, bench.target.queue)
    bench.submit(request(0.0), target=successor)
    running = bench.take()
    waiting = bench.submit(request(1.0))
    bench.dispatcher.hand_over(bench.target, successor)
    assert bench.take() is None
    assert running is not None
    bench.run(running)
    following = bench.take(running)
    assert following is not None
    assert following.entries == [waiting]


def test_forgetting_a_lane_that_never_came_is_harmless() -> None:
    bench = Bench()
    bench.dispatcher.forget_lane(bench, "cuda:7")
    bench.take()
    bench.dispatcher.forget_lane(bench, "cpu")
    bench.submit(request(1.0))
    assert bench.woken == 0


def crowded_bench() -> Bench:
    """A bench whose model has just answered two requests in one batch, its lane parked again."""
    bench = Bench()
    bench.take()
    for number in range(2):
        bench.dispatcher.submit(Entry(request(number), 1, 0, bench.target))
    bench.clock.run_soon()
    bench.work()
    bench.woken = 0
    return bench


def test_under_load_lanes_are_woken_when_the_burst_is_over() -> None:
    bench = crowded_bench()
    for number in range(3):  # one request with every turn of the loop
        bench.dispatcher.submit(Entry(request(number), 1, 0, bench.target))
        bench.clock.wait_soon()
        assert bench.woken == 0
    bench.clock.wait_soon()
    assert bench.woken == 1
    batch = bench.take()
    assert batch is not None
    assert len(batch.entries) == 3


def test_a_burst_without_end_holds_lanes_back_for_a_few_turns_only() -> None:
    bench = crowded_bench()
    turns = 0
    while not bench.woken:
        bench.dispatcher.submit(Entry(request(1.0), 1, 0, bench.target))
        bench.clock.wait_soon()
        turns += 1
    assert turns == 9


def test_a_lone_request_wakes_a_lane_in_the_same_turn() -> None:
    bench = Bench()
    bench.take()
    bench.dispatcher.submit(Entry(request(1.0), 1, 0, bench.target))
    bench.clock.wait_soon()
    assert bench.woken == 1
