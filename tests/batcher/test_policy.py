"""When a bucket leaves and with how many rows: pure decisions about made-up moments."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from fakes.batching import MS, Bench, request
from hypothesis import given
from hypothesis import strategies as st
from kernelport.batcher.policy import BatchPolicy, Dispatch, QueuePolicy, Wait, plan
from kernelport.batcher.queue import Bucket, Entry

TARGET = Bench().target
DELAYED = BatchPolicy(max_rows=8, merges=True, max_delay_ns=5 * MS)
PREFERRING = replace(DELAYED, preferred_rows=(2, 4))


def bucket_of(*rows: int, enqueued_ns: int = 0, expires_ns: int = 0) -> Bucket:
    bucket = Bucket("key")
    for count in rows:
        entry = Entry(request(0.0, count), count, enqueued_ns, TARGET)
        entry.enqueued_ns = enqueued_ns
        entry.expires_ns = expires_ns
        bucket.append(entry)
    return bucket


@st.composite
def waiting(draw: st.DrawFn, max_rows: int = 8, most: int = 8) -> tuple[Bucket, int]:
    """A bucket, some of whose entries have a timeout or are late, and a moment not before the last arrival."""
    bucket = Bucket("key")
    now_ns = 0
    for _ in range(draw(st.integers(1, most))):
        now_ns += draw(st.integers(0, 2 * MS))
        rows = draw(st.integers(1, max_rows))
        entry = Entry(request(0.0, rows), rows, now_ns, TARGET)
        entry.enqueued_ns = now_ns
        bucket.append(entry)
    now_ns += draw(st.integers(0, 3 * MS))
    for entry in list(bucket.entries):
        if draw(st.booleans()):
            # Expired ones have been dealt with by the timer before anybody plans.
            entry.expires_ns = now_ns + draw(st.integers(2, 8 * MS))
        elif draw(st.sampled_from([False, False, True])):
            bucket.delay(entry)
    return bucket, now_ns


POLICIES = st.builds(
    BatchPolicy,
    max_rows=st.just(8),
    merges=st.just(True),
    preferred_rows=st.sets(st.integers(1, 8), max_size=3).map(lambda sizes: tuple(sorted(sizes))),
    max_delay_ns=st.sampled_from([0, MS, 5 * MS]),
    preserve_ordering=st.booleans(),
)


@given(waiting(), POLICIES)
def test_what_leaves_never_exceeds_the_largest_batch(case: tuple[Bucket, int], policy: BatchPolicy) -> None:
    bucket, now_ns = case
    decision = plan(bucket, policy, now_ns)
    if isinstance(decision, Dispatch):
        assert 1 <= decision.rows <= policy.max_rows
        assert 1 <= sum(entry.rows for entry in bucket.pop(decision.rows)) <= policy.max_rows


@given(waiting(max_rows=2, most=3), st.sampled_from([DELAYED, replace(PREFERRING, preferred_rows=(5, 7))]))
def test_a_wait_ends_in_the_future_and_before_the_oldest_delay_and_every_deadline(
    case: tuple[Bucket, int], policy: BatchPolicy
) -> None:
    bucket, now_ns = case
    decision = plan(bucket, policy, now_ns)
    if isinstance(decision, Wait):
        assert decision.until_ns > now_ns
        assert decision.until_ns <= bucket.head.enqueued_ns + policy.max_delay_ns
        assert all(decision.until_ns < entry.expires_ns for entry in bucket.entries if entry.expires_ns)
        assert isinstance(plan(bucket, policy, decision.until_ns), Dispatch)


@given(waiting(), POLICIES)
def test_without_a_delay_nothing_ever_waits(case: tuple[Bucket, int], policy: BatchPolicy) -> None:
    bucket, now_ns = case
    assert isinstance(plan(bucket, replace(policy, max_delay_ns=0), now_ns), Dispatch)


@given(waiting(), POLICIES)
def test_a_full_batch_never_waits(case: tuple[Bucket, int], policy: BatchPolicy) -> None:
    bucket, now_ns = case
    if bucket.rows >= policy.max_rows:
        assert isinstance(plan(bucket, policy, now_ns), Dispatch)


@given(waiting(), POLICIES)
def test_a_preferred_cut_is_the_largest_that_whole_requests_make_up(
    case: tuple[Bucket, int], policy: BatchPolicy
) -> None:
    bucket, now_ns = case
    decision = plan(bucket, policy, now_ns)
    sums = set(accumulate(entry.rows for entry in (*bucket.entries, *bucket.late)))
    reachable = [size for size in policy.preferred_rows if size in sums]
    if isinstance(decision, Dispatch) and decision.reason == "preferred":
        assert decision.rows == max(reachable)
        assert sum(entry.rows for entry in bucket.pop(decision.rows)) == decision.rows
    else:
        is_due = policy.max_delay_ns and now_ns >= bucket.head.enqueued_ns + policy.max_delay_ns
        assert is_due or not reachable


@given(waiting(max_rows=20))
def test_a_model_that_does_not_merge_runs_the_oldest_request_alone(case: tuple[Bucket, int]) -> None:
    bucket, now_ns = case
    head = bucket.head
    assert plan(bucket, BatchPolicy(), now_ns) == Dispatch(head.rows, "single")
    assert bucket.pop(head.rows) == [head]


def test_a_wait_is_over_on_the_exact_nanosecond() -> None:
    bucket = bucket_of(1, enqueued_ns=7)
    assert plan(bucket, DELAYED, 7) == Wait(7 + 5 * MS)
    assert plan(bucket, DELAYED, 6 + 5 * MS) == Wait(7 + 5 * MS)
    assert plan(bucket, DELAYED, 7 + 5 * MS) == Dispatch(8, "delay")


def test_a_full_batch_leaves_at_once_and_says_so() -> None:
    assert plan(bucket_of(*[1] * 8), DELAYED, 0) == Dispatch(8, "size")
    assert plan(bucket_of(*[1] * 7), DELAYED, 0) == Wait(5 * MS)


def test_more_than_the_largest_preferred_size_leaves_only_that_size() -> None:
    assert plan(bucket_of(*[1] * 7), PREFERRING, 0) == Dispatch(4, "preferred")
    assert plan(bucket_of(*[1] * 20), PREFERRING, 0) == Dispatch(4, "preferred")
    assert plan(bucket_of(*[1] * 3), PREFERRING, 0) == Dispatch(2, "preferred")
    assert plan(bucket_of(1), PREFERRING, 0) == Wait(5 * MS)


def test_a_preferred_size_that_no_whole_requests_make_up_is_not_reached() -> None:
    assert plan(bucket_of(3, 3), PREFERRING, 0) == Wait(5 * MS)
    assert plan(bucket_of(1, 3, 3), PREFERRING, 0) == Dispatch(4, "preferred")
    assert plan(bucket_of(3, 3, 3), PREFERRING, 0) == Dispatch(8, "size")


def test_when_the_delay_is_over_everything_leaves_not_the_preferred_cut() -> None:
    assert plan(bucket_of(*[1] * 5), PREFERRING, 5 * MS) == Dispatch(8, "delay")


def test_with_preferred_sizes_and_no_delay_the_rest_leaves_by_itself() -> None:
    policy = replace(PREFERRING, max_delay_ns=0)
    assert plan(bucket_of(*[1] * 3), policy, 0) == Dispatch(2, "preferred")
    assert plan(bucket_of(1), policy, 0) == Dispatch(8, "idle")


def test_a_bucket_that_must_leave_does_not_wait_for_company() -> None:
    bucket = bucket_of(1)
    bucket.must_leave = True
    assert plan(bucket, DELAYED, 0) == Dispatch(8, "shape")


def test_requests_that_have_expired_already_do_not_wait_for_company() -> None:
    bucket = bucket_of(1)
    bucket.delay(bucket.head)
    assert plan(bucket, DELAYED, 0) == Dispatch(8, "idle")


@pytest.mark.parametrize(
    ("expires_ns", "leaves_ns"),
    [(100 * MS, 5 * MS), (4 * MS, 3 * MS), (MS, MS // 2)],
    ids=["later than the delay", "a millisecond before", "half of a short timeout"],
)
def test_a_timeout_shorter_than_the_delay_leaves_before_it_expires(expires_ns: int, leaves_ns: int) -> None:
    bucket = bucket_of(1, expires_ns=expires_ns)
    assert plan(bucket, DELAYED, 0) == Wait(leaves_ns)
    reason = "delay" if leaves_ns == 5 * MS else "deadline"
    assert plan(bucket, DELAYED, leaves_ns) == Dispatch(8, reason)


@given(st.integers(0, 10**7), st.integers(0, 10**9), st.booleans())
def test_a_request_can_only_shorten_the_models_timeout(requested_us: int, default_ns: int, may: bool) -> None:
    timeout_ns = QueuePolicy(default_timeout_ns=default_ns, may_override=may).timeout_ns(requested_us)
    assert timeout_ns <= default_ns
    if not may or not requested_us:
        assert timeout_ns == default_ns
    elif default_ns:
        assert timeout_ns == min(default_ns, requested_us * 1000)
