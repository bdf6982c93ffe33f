"""Buckets of waiting requests: order, rows, and what leaves first."""

from __future__ import annotations

from fakes.batching import Bench, request
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kernelport.batcher.queue import Bucket, Entry

TARGET = Bench().target


def entry(rows: int = 1) -> Entry:
    return Entry(request(0.0, rows), rows, 0, TARGET)


def bucket_of(*rows: int) -> tuple[Bucket, list[Entry]]:
    bucket = Bucket("key")
    entries = [entry(count) for count in rows]
    for one in entries:
        bucket.append(one)
    return bucket, entries


def test_an_entry_knows_the_bucket_it_waits_in() -> None:
    bucket, (one,) = bucket_of(3)
    assert one.bucket is bucket
    assert (len(bucket), bucket.rows) == (1, 3)
    bucket.remove(one)
    assert one.bucket is None
    assert (len(bucket), bucket.rows) == (0, 0)


def test_an_entry_that_does_not_fit_ends_the_batch_and_keeps_its_place() -> None:
    bucket, (first, second, third) = bucket_of(2, 3, 1)
    assert bucket.pop(4) == [first]
    assert bucket.head is second
    assert bucket.pop(4) == [second, third]


def test_the_first_entry_leaves_even_when_it_is_larger_than_the_batch() -> None:
    bucket, (first, second) = bucket_of(5, 1)
    assert bucket.pop(4) == [first]
    assert bucket.rows == second.rows


def test_expired_entries_stand_behind_all_others() -> None:
    bucket, (first, second, third) = bucket_of(1, 1, 1)
    bucket.delay(first)
    assert bucket.head is second
    assert bucket.rows == 3
    assert bucket.pop(8) == [second, third, first]


def test_an_expired_entry_can_still_be_taken_out() -> None:
    bucket, (first, second) = bucket_of(1, 2)
    bucket.delay(first)
    bucket.remove(first)
    assert (len(bucket), bucket.rows) == (1, 2)
    bucket.delay(second)
    assert bucket.head is second


def test_expired_entries_wait_while_one_that_has_not_expired_does_not_fit() -> None:
    bucket, (first, second, late) = bucket_of(2, 3, 1)
    bucket.delay(late)
    assert bucket.pop(4) == [first]
    assert bucket.pop(3) == [second]
    assert bucket.pop(3) == [late]


def test_the_haste_for_a_newer_shape_ends_with_the_entries_it_was_for() -> None:
    bucket, _ = bucket_of(2, 2)
    bucket.must_leave = True
    bucket.pop(2)
    assert bucket.must_leave
    bucket.pop(2)
    assert not bucket.must_leave


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 8))
def test_pops_give_every_entry_once_in_order_and_as_many_as_fit(rows: list[int], limit: int) -> None:
    bucket, entries = bucket_of(*rows)
    batches = []
    while len(bucket):
        batches.append(bucket.pop(limit))
    assert [one for batch in batches for one in batch] == entries
    for batch, following in zip(batches, [*batches[1:], []], strict=True):
        total = sum(one.rows for one in batch)
        assert total <= limit or len(batch) == 1
        assert not following or total + following[0].rows > limit


class BucketMachine(RuleBasedStateMachine):
    """A bucket beside two plain lists that say what it should hold."""

    @initialize()
    def start(self) -> None:
        self.bucket = Bucket("key")
        self.fresh: list[Entry] = []
        self.late: list[Entry] = []

    @rule(rows=st.integers(1, 4))
    def arrive(self, rows: int) -> None:
        self.fresh.append(entry(rows))
        self.bucket.append(self.fresh[-1])

    @precondition(lambda self: self.fresh)
    @rule(which=st.integers(0, 100))
    def expire(self, which: int) -> None:
        one = self.fresh.pop(which % len(self.fresh))
        self.bucket.delay(one)
        self.late.append(one)

    @precondition(lambda self: self.fresh or self.late)
    @rule(which=st.integers(0, 100))
    def hang_up(self, which: int) -> None:
        one = [*self.fresh, *self.late][which % (len(self.fresh) + len(self.late))]
        (self.late if one.is_late else self.fresh).remove(one)
        self.bucket.remove(one)

    @precondition(lambda self: self.fresh or self.late)
    @rule(limit=st.integers(1, 8))
    def leave(self, limit: int) -> None:
        taken = self.bucket.pop(limit)
        assert taken == [*self.fresh, *self.late][: len(taken)]
        assert all(one.bucket is None for one in taken)
        self.fresh, self.late = self.fresh[len(taken) :], self.late[max(0, len(taken) - len(self.fresh)) :]

    @invariant()
    def the_bucket_holds_what_waits(self) -> None:
        if not hasattr(self, "bucket"):
            return
        waiting = [*self.fresh, *self.late]
        assert [*self.bucket.entries, *self.bucket.late] == waiting
        assert len(self.bucket) == len(waiting)
        assert self.bucket.rows == sum(one.rows for one in waiting)
        assert all(one.bucket is self.bucket for one in waiting)


TestBucket = BucketMachine.TestCase
