"""Whatever order requests, hang-ups, timers and lanes come in: nothing is lost, mixed up or answered twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
from fakes.batching import MS, Bench, Doubler, request, spec, values
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry
from kernelport.batcher.target import Batch

POISON = 13.0


class DispatcherMachine(RuleBasedStateMachine):
    """Random traffic against one model with up to three lanes."""

    @initialize(
        max_rows=st.integers(1, 6),
        delay_ms=st.sampled_from([0, 3]),
        preferred=st.lists(st.integers(1, 6), max_size=2, unique=True).map(sorted),
        ordered=st.booleans(),
        timeout_ms=st.sampled_from([0, 2, 7]),
        rejects=st.booleans(),
        limit=st.integers(1, 12),
        permits=st.integers(1, 3),
        merges=st.booleans(),
    )
    def start(
        self, max_rows: int, delay_ms: int, preferred: list[int], ordered: bool, timeout_ms: int, rejects: bool,
        limit: int, permits: int, merges: bool,
    ) -> None:  # fmt: skip
        self.max_rows = max_rows if merges else 6
        policy = BatchPolicy(
            max_rows=self.max_rows, merges=merges, max_delay_ns=delay_ms * MS, preserve_ordering=ordered,
            preferred_rows=tuple(size for size in preferred if size <= max_rows) if merges else (),
        )  # fmt: skip
        queue = QueuePolicy(limit, timeout_ms * MS, rejects=rejects)
        self.bench = Bench(policy, queue, Doubler(poison=POISON), permits, spec(self.max_rows))
        self.limit = limit
        self.entries: list[tuple[Entry, float]] = []
        self.calls: Counter[int] = Counter()
        self.running: list[Batch] = []

    @rule(value=st.sampled_from([1.0, 2.0, 5.0, POISON]), rows=st.integers(1, 6), width=st.integers(1, 2))
    def submit(self, value: float, rows: int, width: int) -> None:
        rows = min(rows, self.max_rows)
        entry = self.bench.submit(request(value, rows, width), rows)
        entry.add_done_callback(lambda call: self.calls.update([id(entry)]))
        self.entries.append((entry, value))

    @rule(which=st.integers(0, 1000))
    def hang_up(self, which: int) -> None:
        if self.entries:
            self.entries[which % len(self.entries)][0].cancel()

    @rule(ms=st.integers(1, 8))
    def time_passes(self, ms: int) -> None:
        self.bench.clock.advance(ms * MS)

    @rule()
    def a_lane_takes(self) -> None:
        batch = self.bench.take()
        if batch is not None:
            self.running.append(batch)

    @rule(which=st.integers(0, 10))
    def a_lane_finishes_and_takes(self, which: int) -> None:
        if not self.running:
            return
        batch = self.running.pop(which % len(self.running))
        self.bench.run(batch)
        following = self.bench.take(batch)
        if following is not None:
            self.running.append(following)

    @invariant()
    def batches_are_legal(self) -> None:
        for batch in getattr(self, "running", []):
            assert sum(entry.rows for entry in batch.entries) <= self.max_rows
            assert len({entry.request.inputs["X"].array.shape[1] for entry in batch.entries}) == 1

    @invariant()
    def counters_describe_the_structures(self) -> None:
        if not hasattr(self, "bench"):
            return
        target = self.bench.target
        waiting = sum(len(bucket) for bucket in target.buckets.values())
        assert target.queue.waiting == target.stats.pending == waiting <= self.limit + 3
        assert all(
            bucket.rows == sum(e.rows for e in (*bucket.entries, *bucket.late)) for bucket in target.buckets.values()
        )
        assert target.busy == len(self.running)
        assert all(times == 1 for times in self.calls.values())

    def teardown(self) -> None:
        if not hasattr(self, "bench"):
            return
        bench = self.bench
        while self.running:
            self.a_lane_finishes_and_takes(0)
        for _ in range(200):
            bench.clock.advance(3 * MS)
            bench.work()
        stats = bench.target.stats
        for entry, value in self.entries:
            assert entry.is_done
            assert self.calls[id(entry)] == 1
            if entry.response is not None:
                assert value != POISON
                assert np.array_equal(values(entry), entry.request.inputs["X"].array * 2)
            elif value == POISON:
                assert entry.error is not None
        assert stats.received == sum(stats.outcomes.values()) == len(self.entries)
        assert stats.pending == stats.in_flight == 0
        assert bench.target.is_drained
        assert not bench.target.buckets
        assert not bench.target.order
        assert sum(size * sized.count for size, sized in stats.batch_sizes.items()) == stats.executed_rows
        assert stats.queue_time.count == stats.request_time.count == stats.outcomes["success"]


TestDispatcher = DispatcherMachine.TestCase
TestDispatcher.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
