"""The heap of nearest moments: in order, without what has gone."""

from __future__ import annotations

from fakes.batching import Bench, request
from hypothesis import given
from hypothesis import strategies as st
from kernelport.batcher.queue import Bucket, Entry
from kernelport.batcher.timers import Timers

TARGET = Bench().target


def waiting(expires_ns: int, bucket: Bucket) -> Entry:
    entry = Entry(request(0.0), 1, 0, TARGET)
    entry.expires_ns = expires_ns
    bucket.append(entry)
    return entry


def test_nothing_is_due_when_nothing_was_remembered() -> None:
    timers = Timers()
    assert timers.nearest_ns() == 0
    assert list(timers.pop_due(10**18)) == []


def test_what_is_due_comes_in_order_of_time_and_the_rest_stays() -> None:
    timers, bucket = Timers(), Bucket("key")
    late, early, later = (waiting(at, bucket) for at in (30, 10, 40))
    for entry in (late, early, later):
        timers.expire(entry)
    timers.look_again(TARGET, bucket, 20)
    assert timers.nearest_ns() == 10
    assert list(timers.pop_due(30)) == [(early, None, None), (None, TARGET, bucket), (late, None, None)]
    assert timers.nearest_ns() == 40


def test_equal_moments_come_in_the_order_in_which_they_were_remembered() -> None:
    timers, bucket = Timers(), Bucket("key")
    entries = [waiting(5, bucket) for _ in range(20)]
    for entry in entries:
        timers.expire(entry)
    assert [entry for entry, _, _ in timers.pop_due(5)] == entries


def test_a_bucket_knows_when_it_will_be_looked_at() -> None:
    timers, bucket = Timers(), Bucket("key")
    timers.look_again(TARGET, bucket, 20)
    assert bucket.due_ns == 20


def test_an_entry_that_left_its_bucket_is_dropped_silently() -> None:
    timers, bucket = Timers(), Bucket("key")
    gone, stays = waiting(10, bucket), waiting(20, bucket)
    for entry in (gone, stays):
        timers.expire(entry)
    bucket.remove(gone)
    timers.forget(gone)
    assert list(timers.pop_due(100)) == [(stays, None, None)]


def test_an_entry_without_a_timeout_is_nothing_to_forget() -> None:
    timers, bucket = Timers(), Bucket("key")
    for _ in range(2000):
        entry = waiting(0, bucket)
        bucket.remove(entry)
        timers.forget(entry)
    timers.expire(waiting(10, bucket))
    assert len(timers) == 1


def test_when_stale_entries_are_the_majority_they_are_swept_and_the_rest_is_kept() -> None:
    timers, bucket = Timers(), Bucket("key")
    entries = [waiting(1000 - number, bucket) for number in range(900)]
    for entry in entries:
        timers.expire(entry)
    timers.look_again(TARGET, bucket, 500)
    gone, stay = entries[:600], entries[600:]
    for entry in gone:
        bucket.remove(entry)
        timers.forget(entry)
    assert len(timers) < 600
    due = list(timers.pop_due(1000))
    assert [entry for entry, _, _ in due if entry is not None] == stay[::-1]
    assert [found for _, _, found in due if found is not None] == [bucket]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30),
    st.lists(st.integers(1, 60), max_size=5),
)
def test_every_entry_that_still_waits_comes_exactly_once_when_it_is_due(
    entries: list[tuple[int, bool]], moments: list[int]
) -> None:
    timers, bucket = Timers(), Bucket("key")
    known = [waiting(at, bucket) for at, _ in entries]
    for entry in known:
        timers.expire(entry)
    for entry, (_, leaves) in zip(known, entries, strict=True):
        if leaves:
            bucket.remove(entry)
            timers.forget(entry)
    came: list[Entry] = []
    for moment in sorted(moments):
        due = [entry for entry, _, _ in timers.pop_due(moment) if entry is not None]
        assert all(entry.expires_ns <= moment for entry in due)
        assert timers.nearest_ns() == 0 or timers.nearest_ns() > moment
        came += due
    last = max(moments, default=0)
    expected = [one for one, (at, leaves) in zip(known, entries, strict=True) if at <= last and not leaves]
    assert sorted(map(id, came)) == sorted(map(id, expected))
    assert [one.expires_ns for one in came] == sorted(one.expires_ns for one in came)
