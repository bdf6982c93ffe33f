"""The dispatcher under a clock that the test moves."""

from __future__ import annotations

import pytest
from fakes.batching import MS, Bench, Doubler, request, spec, values
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry, ModelQueue
from kernelport.core.errors import BackendError, Cancelled, QueueFull, QueueTimeout

DELAYED = BatchPolicy(max_rows=8, merges=True, max_delay_ns=5 * MS)
SINGLE = BatchPolicy()


def test_two_different_rows_in_one_batch_each_get_their_own_answer() -> None:
    bench = Bench()
    first, second = bench.submit(request(1.0)), bench.submit(request(7.0))
    (batch,) = bench.work()
    assert len(batch.entries) == 2
    assert values(first).tolist() == [[2.0, 2.0]]
    assert values(second).tolist() == [[14.0, 14.0]]


def test_an_idle_lane_never_waits_when_the_delay_is_zero() -> None:
    bench = Bench()
    assert bench.take() is None
    bench.submit(request(1.0))
    assert bench.woken == 1
    batch = bench.take()
    assert batch is not None
    assert batch.timing.reason == "idle"


def test_an_underfull_batch_leaves_on_the_exact_nanosecond() -> None:
    bench = Bench(DELAYED)
    bench.take()
    entry = bench.submit(request(1.0))
    bench.clock.advance(5 * MS - 1)
    assert bench.woken == 0
    bench.clock.advance(1)
    assert bench.woken == 1
    (batch,) = bench.work()
    assert batch.timing.reason == "delay"
    assert entry.is_done


def test_a_full_batch_leaves_at_once() -> None:
    bench = Bench(DELAYED)
    bench.take()
    for number in range(8):
        bench.submit(request(number))
    assert bench.woken == 1
    (batch,) = bench.work()
    assert batch.timing.reason == "size"
    assert len(batch.entries) == 8


def test_rows_are_counted_not_requests() -> None:
    bench = Bench()
    for number in range(20):
        bench.submit(request(number, rows=3), rows=3)
    bench.work()
    assert max(bench.copy.batches) == 6
    assert sum(bench.copy.batches) == 60


def test_an_entry_that_does_not_fit_stays_at_the_front() -> None:
    bench = Bench()
    entries = [bench.submit(request(number, rows=5), rows=5) for number in range(2)]
    entries.append(bench.submit(request(9.0)))
    batches = bench.work()
    assert [batch.entries for batch in batches] == [[entries[0]], [entries[1], entries[2]]]


def test_different_shapes_never_share_a_batch_and_wait_side_by_side() -> None:
    bench = Bench(DELAYED)
    narrow = [bench.submit(request(1.0, width=2)) for _ in range(3)]
    wide = [bench.submit(request(2.0, width=5)) for _ in range(3)]
    bench.clock.advance(5 * MS)
    batches = bench.work()
    assert sorted(len(batch.entries) for batch in batches) == [3, 3]
    assert all(values(entry).shape == (1, 2) for entry in narrow)
    assert all(values(entry).shape == (1, 5) for entry in wide)


def test_the_largest_preferred_size_that_is_reached_is_cut_out() -> None:
    bench = Bench(BatchPolicy(max_rows=8, merges=True, preferred_rows=(2, 4), max_delay_ns=5 * MS))
    for number in range(5):
        bench.submit(request(number))
    batches = bench.work()
    assert [(len(batch.entries), batch.timing.reason) for batch in batches] == [(4, "preferred")]
    bench.clock.advance(5 * MS)
    (rest,) = bench.work()
    assert (len(rest.entries), rest.timing.reason) == (1, "delay")


def test_a_busy_instance_makes_bigger_batches_by_itself() -> None:
    bench = Bench()
    bench.submit(request(0.0))
    running = bench.take()
    assert running is not None
    for number in range(5):
        bench.submit(request(number))
    assert bench.take() is None
    bench.run(running)
    batch = bench.take(running)
    assert batch is not None
    assert len(batch.entries) == 5


def test_exactly_the_running_and_the_queue_limit_are_accepted() -> None:
    bench = Bench(SINGLE, QueuePolicy(max_queue_size=2), model=spec(0))
    entries = [bench.submit(request(number)) for number in range(6)]
    assert [isinstance(entry.error, QueueFull) for entry in entries] == [False] * 3 + [True] * 3
    assert bench.target.stats.outcomes["queue_full"] == 3
    bench.work()
    assert all(entry.response is not None for entry in entries[:3])


def test_the_queue_limit_is_the_same_after_the_lane_took_one() -> None:
    bench = Bench(SINGLE, QueuePolicy(max_queue_size=2), model=spec(0))
    first = bench.submit(request(0))
    running = bench.take()
    entries = [first, *(bench.submit(request(number)) for number in range(5))]
    assert [isinstance(entry.error, QueueFull) for entry in entries] == [False] * 3 + [True] * 3
    assert running is not None
    assert bench.target.queue.waiting == 2


def test_a_queue_timeout_fires_on_time_while_the_instance_is_busy() -> None:
    bench = Bench(SINGLE, QueuePolicy(default_timeout_ns=200 * MS), model=spec(0))
    running = bench.submit(request(1.0))
    batch = bench.take()
    waiting = bench.submit(request(2.0))
    bench.clock.advance(200 * MS - 1)
    assert not waiting.is_done
    bench.clock.advance(1)
    assert isinstance(waiting.error, QueueTimeout)
    assert not running.is_done
    assert batch is not None
    bench.run(batch)
    assert running.response is not None
    assert bench.target.stats.outcomes["queue_timeout"] == 1


def test_a_request_may_only_shorten_the_models_own_timeout() -> None:
    policy = QueuePolicy(default_timeout_ns=200 * MS, may_override=True)
    bench = Bench(SINGLE, policy, model=spec(0))
    bench.submit(request(0.0))
    bench.take()
    short = bench.submit(request(1.0, timeout_us=50_000))
    long = bench.submit(request(2.0, timeout_us=900_000))
    bench.clock.advance(50 * MS)
    assert isinstance(short.error, QueueTimeout)
    assert not long.is_done
    bench.clock.advance(150 * MS)
    assert isinstance(long.error, QueueTimeout)


def test_an_expired_request_under_delay_is_served_after_the_others() -> None:
    bench = Bench(SINGLE, QueuePolicy(default_timeout_ns=10 * MS, rejects=False), model=spec(0))
    bench.submit(request(0.0))
    running = bench.take()
    late = bench.submit(request(1.0))
    bench.clock.advance(11 * MS)
    fresh = bench.submit(request(2.0))
    assert running is not None
    bench.run(running)
    second = bench.take(running)
    assert second is not None
    assert second.entries == [fresh]
    bench.run(second)
    third = bench.take(second)
    assert third is not None
    assert third.entries == [late]
    bench.run(third)
    assert late.response is not None


def test_a_batching_delay_longer_than_the_timeout_does_not_expire_requests() -> None:
    policy = BatchPolicy(max_rows=8, merges=True, max_delay_ns=50 * MS)
    bench = Bench(policy, QueuePolicy(default_timeout_ns=10 * MS))
    entry = bench.submit(request(1.0))
    for _ in range(12):
        bench.clock.advance(MS)
        bench.work()
    assert entry.response is not None
    assert entry.batch is not None
    assert entry.batch.reason == "deadline"


def test_a_hang_up_frees_the_queue_and_leaves_the_neighbours_alone() -> None:
    bench = Bench(DELAYED)
    entries = [bench.submit(request(number)) for number in range(3)]
    entries[1].cancel()
    assert isinstance(entries[1].error, Cancelled)
    assert bench.target.queue.waiting == 2
    bench.clock.advance(5 * MS)
    (batch,) = bench.work()
    assert batch.entries == [entries[0], entries[2]]
    assert values(entries[0]).tolist() == [[0.0, 0.0]]
    assert values(entries[2]).tolist() == [[4.0, 4.0]]
    assert bench.target.stats.outcomes["cancelled"] == 1
    assert bench.target.stats.outcomes["success"] == 2


def test_a_hang_up_while_running_is_counted_once_and_the_answer_thrown_away() -> None:
    bench = Bench()
    kept, gone = bench.submit(request(1.0)), bench.submit(request(2.0))
    batch = bench.take()
    gone.cancel()
    assert batch is not None
    bench.run(batch)
    assert kept.response is not None
    assert gone.response is None
    assert sum(bench.target.stats.outcomes.values()) == 2
    assert bench.target.is_drained is False  # the permit is still out
    bench.take(batch)
    assert bench.target.is_drained


def test_one_bad_request_fails_alone() -> None:
    bench = Bench(copy=Doubler(poison=99.0))
    entries = [bench.submit(request(99.0 if number == 3 else number)) for number in range(8)]
    bench.work()
    assert isinstance(entries[3].error, BackendError)
    for number in (0, 1, 2, 4, 5, 6, 7):
        assert values(entries[number]).tolist() == [[2.0 * number] * 2]
    stats = bench.target.stats
    assert (stats.outcomes["success"], stats.outcomes["backend"], stats.reruns) == (7, 1, 1)
    assert stats.executions == 7
    assert stats.executed_rows == 7


def test_requested_outputs_are_per_request_and_the_batch_computes_their_union() -> None:
    bench = Bench()
    only_y, only_z = bench.submit(request(1.0, outputs=["Y"])), bench.submit(request(2.0, outputs=["Z"]))
    bench.work()
    assert [tensor.name for tensor in only_y.response.outputs] == ["Y"]  # type: ignore[union-attr]
    assert [tensor.name for tensor in only_z.response.outputs] == ["Z"]  # type: ignore[union-attr]
    bench.submit(request(1.0, outputs=["Z"]))
    bench.work()
    assert bench.copy.asked == [None, ("Z",)]


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
