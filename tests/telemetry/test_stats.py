"""Counters of a model version add up, whatever happens in whatever order."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kernelport.core.timing import BatchTiming
from kernelport.telemetry.stats import LATENCY_BOUNDS_NS, OUTCOMES, RELEASE_REASONS, Histogram, ModelStats

US = 1_000


def timing(
    rows: int = 8, requests: int = 2, reason: str = "size", padded_rows: int = 0, taken_ns: int = 100 * US
) -> BatchTiming:
    """A batch with a merge of 20 us, a compute step of 300 us and a split of 4 us."""
    batch = BatchTiming(taken_ns, rows, requests, reason)
    batch.padded_rows = padded_rows
    batch.compute_start_ns = taken_ns + 20 * US
    batch.compute_end_ns = batch.compute_start_ns + 300 * US
    batch.done_ns = batch.compute_end_ns + 4 * US
    return batch


def test_every_series_starts_at_zero() -> None:
    stats = ModelStats()
    assert stats.outcomes == dict.fromkeys(OUTCOMES, 0)
    assert stats.release_reasons == dict.fromkeys(RELEASE_REASONS, 0)
    assert stats.request_time.count == 0
    assert stats.batch_sizes == {}


def test_a_value_on_a_bound_falls_in_that_bucket() -> None:
    histogram = Histogram((10, 20))
    for value in (0, 10, 11, 20, 21):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.count == 5
    assert histogram.total == 62


def test_a_value_can_be_counted_several_times_at_once() -> None:
    histogram = Histogram((10, 20))
    histogram.observe(15, 3)
    assert (histogram.counts, histogram.count, histogram.total) == ([0, 3, 0], 3, 45)


def test_one_batch_of_two_requests_is_counted_to_the_nanosecond() -> None:
    stats = ModelStats()
    batch = timing(padded_rows=3)
    stats.executed(batch)
    stats.succeeded(5, 10 * US, 40 * US, batch, 500 * US)
    stats.succeeded(3, 20 * US, 60 * US, batch, 500 * US)
    assert (stats.executions, stats.executed_rows, stats.padded_rows, stats.rows) == (1, 8, 3, 8)
    assert stats.outcomes["success"] == 2
    assert stats.release_reasons["size"] == 1
    assert stats.request_time.total == (490 + 480) * US
    assert stats.queue_time.total == (60 + 40) * US
    assert stats.merge_time.total == 2 * 20 * US
    assert stats.compute_time.total == 2 * 300 * US
    assert stats.split_ns == 2 * 4 * US
    sized = stats.batch_sizes[8]
    assert (sized.count, sized.merge_ns, sized.compute_ns, sized.split_ns) == (1, 20 * US, 300 * US, 4 * US)
    assert stats.batch_rows.counts[3] == 1  # the bucket that ends at 8


def test_a_failure_counts_its_outcome_and_its_time_only() -> None:
    stats = ModelStats()
    stats.failed("queue_full", 7)
    stats.failed("invalid", 5)
    assert stats.outcomes == {**dict.fromkeys(OUTCOMES, 0), "queue_full": 1, "invalid": 1}
    assert stats.fail_ns == 12
    assert stats.request_time.count == 0


def test_a_made_up_outcome_is_refused() -> None:
    with pytest.raises(KeyError, match="lost"):
        ModelStats().failed("lost", 1)


def test_a_copy_does_not_follow_its_original() -> None:
    stats = ModelStats()
    stats.executed(timing())
    twin = stats.copy()
    stats.executed(timing())
    stats.failed("backend", 1)
    assert twin.executions == 1
    assert twin.batch_sizes[8].count == 1
    assert twin.outcomes["backend"] == 0
    assert twin.batch_rows.count == 1


def state_of(stats: ModelStats) -> dict[str, object]:
    """Everything in `stats`, comparable."""
    plain: dict[str, object] = {}
    for name in ModelStats.__slots__:
        value = getattr(stats, name)
        if isinstance(value, Histogram):
            value = (value.counts, value.total)
        elif name == "batch_sizes":
            value = {size: (s.count, s.merge_ns, s.compute_ns, s.split_ns) for size, s in value.items()}
        plain[name] = value
    return plain


Event = Callable[[ModelStats], None]


def _executed(rows: int, reason: str) -> Event:
    return lambda stats: stats.executed(timing(rows, reason=reason))


def _succeeded(rows: int, received_us: int) -> Event:
    return lambda stats: stats.succeeded(rows, received_us * US, received_us * US, timing(rows), 10_000 * US)


def _failed(outcome: str, elapsed_ns: int) -> Event:
    return lambda stats: stats.failed(outcome, elapsed_ns)


events = st.lists(
    st.one_of(
        st.builds(_executed, st.integers(1, 40), st.sampled_from(RELEASE_REASONS)),
        st.builds(_succeeded, st.integers(1, 40), st.integers(0, 100)),
        st.builds(_failed, st.sampled_from(OUTCOMES[1:]), st.integers(0, 10**12)),
    ),
    max_size=30,
)


@given(events, events)
def test_two_counters_added_are_one_that_saw_both(first: list[Event], second: list[Event]) -> None:
    one, two, both = ModelStats(), ModelStats(), ModelStats()
    for event in first:
        event(one)
    for event in second:
        event(two)
    for event in first + second:
        event(both)
    before = state_of(two)
    one.add(two)
    assert state_of(one) == state_of(both)
    assert state_of(two) == before
    assert state_of(both.copy()) == state_of(both)


def test_of_two_load_times_the_longer_is_kept() -> None:
    one, two = ModelStats(), ModelStats()
    one.load_ns, two.load_ns = 5, 9
    one.last_inference_ms, two.last_inference_ms = 7, 3
    one.add(two)
    assert (one.load_ns, one.last_inference_ms) == (9, 7)


class RequestsOnTheirWay(RuleBasedStateMachine):
    """Requests arrive, wait, are taken in batches and end, in any order that Hypothesis can think of."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = ModelStats()
        self.now_ns = 1_000
        self.waiting: list[tuple[int, int]] = []  # (rows, received)
        self.running: list[tuple[BatchTiming, list[tuple[int, int]]]] = []
        self.answered_rows: list[int] = []

    @rule(rows=st.integers(1, 16), step=st.integers(0, 10**9))
    def accept(self, rows: int, step: int) -> None:
        self.now_ns += step
        self.stats.received += 1
        self.stats.pending += 1
        self.waiting.append((rows, self.now_ns))

    @rule(outcome=st.sampled_from(("invalid", "queue_full", "shed", "unavailable")))
    def refuse(self, outcome: str) -> None:
        self.stats.received += 1
        self.stats.failed(outcome, 3)

    @precondition(lambda self: self.waiting)
    @rule(outcome=st.sampled_from(("cancelled", "queue_timeout", "deadline")))
    def end_while_waiting(self, outcome: str) -> None:
        _, received_ns = self.waiting.pop()
        self.stats.pending -= 1
        self.stats.failed(outcome, self.now_ns - received_ns)

    @precondition(lambda self: self.waiting)
    @rule(count=st.integers(1, 8), reason=st.sampled_from(RELEASE_REASONS))
    def take(self, count: int, reason: str) -> None:
        members, self.waiting = self.waiting[:count], self.waiting[count:]
        self.stats.pending -= len(members)
        self.stats.in_flight += len(members)
        rows = sum(rows for rows, _ in members)
        self.running.append((timing(rows, len(members), reason, taken_ns=self.now_ns), members))

    @precondition(lambda self: self.running)
    @rule(gone=st.sets(st.integers(0, 7)))
    def answer(self, gone: set[int]) -> None:
        batch, members = self.running.pop(0)
        self.now_ns = max(self.now_ns, batch.done_ns)
        self.stats.executed(batch)
        for index, (rows, received_ns) in enumerate(members):
            self.stats.in_flight -= 1
            if index in gone:
                self.stats.failed("cancelled", self.now_ns - received_ns)
            else:
                self.stats.succeeded(rows, received_ns, received_ns, batch, self.now_ns)
                self.answered_rows.append(rows)

    @precondition(lambda self: self.running)
    @rule()
    def fail(self) -> None:
        _, members = self.running.pop()
        self.stats.reruns += len(members) > 1
        for _, received_ns in members:
            self.stats.in_flight -= 1
            self.stats.failed("backend", self.now_ns - received_ns)

    @invariant()
    def every_request_is_counted_once(self) -> None:
        stats = self.stats
        assert stats.received == sum(stats.outcomes.values()) + stats.pending + stats.in_flight
        assert stats.pending == len(self.waiting)
        assert stats.in_flight == sum(len(members) for _, members in self.running)

    @invariant()
    def rows_and_executions_agree(self) -> None:
        stats = self.stats
        assert stats.rows == sum(self.answered_rows)
        assert stats.executions == sum(s.count for s in stats.batch_sizes.values()) == stats.batch_rows.count
        assert stats.executions == sum(stats.release_reasons.values())
        assert stats.executed_rows == sum(size * s.count for size, s in stats.batch_sizes.items())
        assert stats.executed_rows == stats.batch_rows.total

    @invariant()
    def stages_cover_the_successes(self) -> None:
        stats = self.stats
        successes = stats.outcomes["success"]
        for histogram in (stats.request_time, stats.queue_time, stats.merge_time, stats.compute_time):
            assert histogram.count == successes
        steps = stats.queue_time.total + stats.merge_time.total + stats.compute_time.total + stats.split_ns
        assert steps <= stats.request_time.total


TestRequestsOnTheirWay = RequestsOnTheirWay.TestCase


def test_latency_bounds_rise() -> None:
    assert list(LATENCY_BOUNDS_NS) == sorted(set(LATENCY_BOUNDS_NS))
    assert (LATENCY_BOUNDS_NS[0], LATENCY_BOUNDS_NS[-1]) == (50 * US, 30_000_000 * US)
