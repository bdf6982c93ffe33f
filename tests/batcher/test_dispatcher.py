"""The dispatcher under a clock that the test moves."""

from __future__ import annotations

from fakes.batching import MS, Bench, Doubler, request, spec, values
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
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
