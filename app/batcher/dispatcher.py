"""The one place where requests wait and lanes find work. Runs on: event loop (submit, timers), worker thread (take).

One plain lock guards every queue. The event loop owns time: it submits, cancels, expires and keeps one timer for the
nearest event. Lanes own work: an idle one is parked and is woken when something is ready; what a batch holds is
decided when a lane takes it, so a busy device makes bigger batches by itself and an idle one never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from ..core.clock import LoopClock, TimerHandle
from ..core.errors import KernelPortError, QueueFull, QueueTimeout
from ..core.request import Call
from ..core.timing import BatchTiming
from .merge import match_key
from .policy import Dispatch, plan
from .queue import Bucket, Entry
from .settle import check_drained, deliver, fail_rest, refuse, release_in_order, settle
from .target import Batch, Target
from .timers import Timers

_MAX_HELD_BACK = 8


class ParkedLane(Protocol):
    """A lane without work."""

    def wake(self) -> None:
        """Make the lane call `take` again; called under the lock, so it must only signal."""


class _Pool:
    """Lanes and ready buckets of one device."""

    __slots__ = ("parked", "ready")

    def __init__(self) -> None:
        self.parked: list[ParkedLane] = []
        self.ready: list[tuple[int, int, Target, Bucket]] = []


class Dispatcher:
    """Queues of all models, and the rule by which lanes empty them."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pools: dict[str, _Pool] = {}
        self._ties = count()
        self._timers = Timers()
        self._timer: TimerHandle | None = None
        self._timer_ns = 0
        self._has_ready = False  # something became ready since lanes were last woken
        self._will_wake = False
        self._is_burst = False  # requests for a model under load came since lanes were last woken or held back
        self._held_back = 0  # turns of the loop

    # -- event loop ------------------------------------------------------------------------------------------------

    def submit(self, entry: Entry, match: Hashable = None) -> None:
        """Queue an entry at its target; a full queue finishes it with QueueFull at once.

        `match` is the entry's `match_key` where the caller knows it already.
        """
        target = entry.target
        policy = target.batch_policy
        key = _bucket_key(entry, target, match)
        timeout_ns = target.queue_policy.timeout_ns(entry.request.timeout_us)
        entry.on_cancel = self._cancelled
        must_arm = False
        now_ns = entry.enqueued_ns = self._clock.now_ns()
        with self._lock:
            limit = target.queue_policy.max_queue_size
            queue = target.queue
            # Requests for which an instance stands free are about to run; they do not wait.
            is_full = queue.waiting >= limit and queue.waiting - target.free >= limit
            if not is_full:
                bucket = target.buckets.get(key)
                if bucket is None:
                    bucket = target.buckets[key] = Bucket(key)
                bucket.append(entry)
                queue.waiting += 1
                target.stats.pending += 1
                target.open_calls += 1
                if timeout_ns:
                    entry.expires_ns = now_ns + timeout_ns
                    self._timers.expire(entry)
                    must_arm = True
                if policy.preserve_ordering:
                    target.order.append(entry)
                    self._flush(target, (one for one in target.buckets.values() if one is not bucket), now_ns)
                if target.free and not bucket.is_ready:
                    must_arm |= self._consider(target, bucket, now_ns)
        if is_full:
            text = f"model '{target.spec.name}': Exceeds maximum queue size: {limit} requests are waiting"
            refuse(entry, QueueFull(text), now_ns)
            return
        if must_arm:
            self._arm()
        if target.was_crowded:
            self._is_burst = True
        if self._has_ready and not self._will_wake:
            self._will_wake = True
            self._clock.call_soon(self._wake_after_burst)

    def finish(self, batch: Batch) -> None:
        """Deliver a batch's results; the lane asks for it through `call_soon_threadsafe`, once per batch."""
        with self._lock:
            batch.target.stats.in_flight -= len(batch.entries)
        deliver(batch, self._clock.now_ns())

    def hand_over(self, old: Target, new: Target) -> None:
        """Let `new` answer what waits at `old` for any version; the two must take the same inputs.

        Parts of an oversized request stay, because one answer must not come from two versions.
        """
        now_ns = self._clock.now_ns()
        with self._lock:
            waiting = [entry for bucket in old.buckets.values() for entry in (*bucket.entries, *bucket.late)]
            moved = [entry for entry in waiting if not entry.is_pinned and not entry.is_part]
            for entry in sorted(moved, key=lambda one: one.enqueued_ns):
                self._move(entry, old, new)
            for stats, change in ((old.stats, -len(moved)), (new.stats, len(moved))):
                stats.pending += change
                stats.received += change
            old.open_calls -= len(moved)
            new.open_calls += len(moved)
            old.order = deque(entry for entry in old.order if entry.target is old)
            for bucket in new.buckets.values():
                if new.free and not bucket.is_ready:
                    self._consider(new, bucket, now_ns)
        self._arm()
        self._wake()
        check_drained(old)

    def close(self, target: Target) -> None:
        """Nothing more will be submitted to the target; its `on_drained` runs when the last answer is out."""
        with self._lock:
            target.is_closed = True
        check_drained(target)

    def fail(self, target: Target, running: Iterable[Batch], error: KernelPortError) -> None:
        """Answer everything that the target still owes with `error`: what waits, and what runs in these batches."""
        now_ns = self._clock.now_ns()
        with self._lock:
            owed = [entry for bucket in target.buckets.values() for entry in (*bucket.entries, *bucket.late)]
            for entry in owed:
                self._leave(entry)
        owed += [entry for batch in running if batch.target is target for entry in batch.entries]
        for entry in owed:
            settle(entry, None, error, now_ns)
        release_in_order(target, now_ns)

    def _cancelled(self, call: Call) -> None:
        entry = call
        assert isinstance(entry, Entry)
        with self._lock:
            if entry.bucket is not None:
                self._leave(entry)
        now_ns = self._clock.now_ns()
        settle(entry, None, None, now_ns, outcome="cancelled")
        release_in_order(entry.target, now_ns)

    def _move(self, entry: Entry, old: Target, new: Target) -> None:
        """Let a waiting entry wait at another target (lock held)."""
        before = entry.bucket
        assert before is not None
        before.remove(entry)
        if not before.rows:
            old.buckets.pop(before.key, None)
        entry.target = new
        entry.is_late = False
        # Under the successor's own key: it may merge what its predecessor ran one by one.
        key = _bucket_key(entry, new)
        bucket = new.buckets.get(key)
        if bucket is None:
            bucket = new.buckets[key] = Bucket(key)
        bucket.append(entry)
        if new.batch_policy.preserve_ordering:
            new.order.append(entry)

    def _leave(self, entry: Entry) -> None:
        """Take a waiting entry out of its bucket (lock held)."""
        target, bucket = entry.target, entry.bucket
        assert bucket is not None
        bucket.remove(entry)
        target.queue.waiting -= 1
        target.stats.pending -= 1
        self._timers.forget(entry)
        if target.batch_policy.preserve_ordering:
            target.order.remove(entry)
        if not bucket.rows:
            target.buckets.pop(bucket.key, None)

    def _tick(self) -> None:
        """The timer: expire what is overdue, plan again for buckets whose delay is over."""
        self._timer = None
        now_ns = self._clock.now_ns()
        expired: list[Entry] = []
        with self._lock:
            for entry, target, bucket in self._timers.pop_due(now_ns):
                if entry is not None:
                    if entry.target.queue_policy.rejects:
                        self._leave(entry)
                        expired.append(entry)
                    else:
                        assert entry.bucket is not None  # or it would not have come
                        entry.bucket.delay(entry)
                elif target is not None and bucket is not None:
                    bucket.due_ns = 0
                    if bucket.rows and target.free and not bucket.is_ready:
                        self._consider(target, bucket, now_ns)
        for entry in expired:
            waited_us = (now_ns - entry.enqueued_ns) // 1000
            text = f"model '{entry.target.spec.name}': Request timeout expired after {waited_us} us in the queue"
            settle(entry, None, QueueTimeout(text), now_ns)
            release_in_order(entry.target, now_ns)
        self._arm()
        self._wake()

    def _wake_after_burst(self) -> None:
        """Wake lanes once a burst is over: while every turn of the loop brings more requests for a model whose last
        batch held several, a few turns (microseconds each) make one big batch of what would be many small ones."""
        if self._is_burst and self._held_back < _MAX_HELD_BACK:
            self._is_burst = False
            self._held_back += 1
            self._clock.call_soon(self._wake_after_burst)
            return
        self._wake()

    def _wake(self) -> None:
        """Wake a parked lane for every ready bucket.

        Requests that arrive together are read one by one in the same turn of the loop, which lets other threads run
        after each. Waking only when all of them are in keeps a lane from taking them one at a time.
        """
        self._will_wake = self._is_burst = False
        self._held_back = 0
        with self._lock:
            self._has_ready = False
            for pool in self._pools.values():
                for _ in range(min(len(pool.ready), len(pool.parked))):
                    pool.parked.pop().wake()

    def _arm(self) -> None:
        with self._lock:
            when_ns = self._timers.nearest_ns()
        if not when_ns or (self._timer is not None and self._timer_ns <= when_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = when_ns
        self._timer = self._clock.call_at(when_ns, self._tick)

    # -- worker thread ---------------------------------------------------------------------------------------------

    def take(self, lane: ParkedLane, device: str, finished: Batch | None = None) -> Batch | None:
        """Give back the permit of `finished`, and take the next batch; None: nothing is ready, the lane is parked."""
        now_ns = self._clock.now_ns()
        batch: Batch | None = None
        with self._lock:
            pool = self._pools.get(device)
            if pool is None:
                pool = self._pools[device] = _Pool()
            must_arm = finished is not None and self._release(finished, now_ns)
            while pool.ready:
                _, _, target, bucket = heappop(pool.ready)
                if not bucket.is_ready or not bucket.rows:
                    bucket.is_ready = False
                    continue
                copies = target.idle_copies.get(device)
                if not copies:
                    bucket.is_ready = target.free > 0
                    continue
                decision = plan(bucket, target.batch_policy, now_ns)
                bucket.is_ready = False
                if isinstance(decision, Dispatch):
                    batch = self._cut(target, bucket, device, decision, now_ns)
                    must_arm |= bool(bucket.rows and target.free) and self._consider(target, bucket, now_ns)
                    break
                self._timers.look_again(target, bucket, decision.until_ns)
                must_arm = True
            if batch is None:
                pool.parked.append(lane)
            elif pool.ready and pool.parked:
                pool.parked.pop().wake()
        if must_arm:
            self._clock.call_soon_threadsafe(self._arm)
        if finished is not None and finished.target.is_closed:
            self._clock.call_soon_threadsafe(check_drained, finished.target)
        return batch

    def abandon(self, batch: Batch, error: KernelPortError) -> None:
        """A lane died with the batch: answer what has no result yet, and free its permit. Event loop."""
        fail_rest(batch, error)
        with self._lock:
            must_arm = self._release(batch, self._clock.now_ns())
        self.finish(batch)
        if must_arm:
            self._arm()
        self._wake()

    def forget_lane(self, lane: ParkedLane, device: str) -> None:
        """The lane will not call `take` again; any thread."""
        with self._lock:
            pool = self._pools.get(device)
            if pool is not None and lane in pool.parked:
                pool.parked.remove(lane)

    # -- lock held -------------------------------------------------------------------------------------------------

    def _cut(self, target: Target, bucket: Bucket, device: str, decision: Dispatch, now_ns: int) -> Batch:
        rows_before = bucket.rows
        entries = bucket.pop(decision.rows)
        number = len(entries)
        target.queue.waiting -= number
        target.stats.pending -= number
        target.stats.in_flight += number
        for entry in entries:
            self._timers.forget(entry)
        if not bucket.rows:
            target.buckets.pop(bucket.key, None)
        copy = target.idle_copies[device].pop()
        target.free -= 1
        target.busy += 1
        target.was_crowded = number > 1
        timing = BatchTiming(now_ns, rows_before - bucket.rows, number, decision.reason)
        return Batch(target, device, copy, entries, timing)

    def _release(self, batch: Batch, now_ns: int) -> bool:
        """Give the batch's permit back and look at what waited for it; True when the timer must be armed."""
        target = batch.target
        target.idle_copies[batch.device].append(batch.copy)
        target.free += 1
        target.busy -= 1
        must_arm = False
        for bucket in target.buckets.values():
            if bucket.is_ready:
                self._push(target, bucket, batch.device)
            else:
                must_arm |= self._consider(target, bucket, now_ns)
        return must_arm

    def _consider(self, target: Target, bucket: Bucket, now_ns: int) -> bool:
        """Make the bucket ready, or remember when to look again; True when the timer must be armed."""
        decision = plan(bucket, target.batch_policy, now_ns)
        if isinstance(decision, Dispatch):
            bucket.is_ready = True
            for device, copies in target.idle_copies.items():
                if copies:
                    self._push(target, bucket, device)
            return False
        if not bucket.due_ns or decision.until_ns < bucket.due_ns:
            self._timers.look_again(target, bucket, decision.until_ns)
            return True
        return False

    def _push(self, target: Target, bucket: Bucket, device: str) -> None:
        pool = self._pools.get(device)
        if pool is None:
            pool = self._pools[device] = _Pool()
        heappush(pool.ready, (bucket.head.enqueued_ns, next(self._ties), target, bucket))
        self._has_ready = True

    def _flush(self, target: Target, buckets: Iterable[Bucket], now_ns: int) -> None:
        """Under preserve_ordering a newer shape must not wait behind an older one's delay."""
        for bucket in list(buckets):
            bucket.must_leave = True
            if target.free and not bucket.is_ready and bucket.rows:
                self._consider(target, bucket, now_ns)


def _bucket_key(entry: Entry, target: Target, match: Hashable = None) -> Hashable:
    key = match_key(entry.request, target.spec) if match is None and target.batch_policy.merges else match
    return (key, target.spec.version) if entry.is_pinned else key
