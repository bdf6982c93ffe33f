"""The nearest moments at which the batcher must look again. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from .queue import Bucket, Entry
from .target import Target

_COMPACT_ABOVE = 512


class Timers:
    """Queue timeouts of entries, and buckets whose batching delay ends; ordered by time.

    An entry that leaves the queue stays in the heap as a stale item; when stale ones are the majority, they are
    swept, so that finished requests are not kept alive by a long timeout.
    """

    __slots__ = ("_heap", "_stale", "_ties")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Entry | None, Target | None, Bucket | None]] = []
        self._ties = count()
        self._stale = 0

    def __len__(self) -> int:
        return len(self._heap)

    def expire(self, entry: Entry) -> None:
        """Remember the entry's `expires_ns`."""
        heappush(self._heap, (entry.expires_ns, next(self._ties), entry, None, None))

    def look_again(self, target: Target, bucket: Bucket, when_ns: int) -> None:
        """Remember to plan for the bucket at `when_ns`."""
        bucket.due_ns = when_ns
        heappush(self._heap, (when_ns, next(self._ties), None, target, bucket))

    def forget(self, entry: Entry) -> None:
        """The entry has left the queue."""
        if not entry.expires_ns:
            return
        self._stale += 1
        if self._stale > _COMPACT_ABOVE and self._stale * 2 > len(self._heap):
            self._heap = [item for item in self._heap if item[2] is None or item[2].bucket is not None]
            heapify(self._heap)
            self._stale = 0

    def nearest_ns(self) -> int:
        """When the next event is due; 0 when there is none."""
        return self._heap[0][0] if self._heap else 0

    def pop_due(self, now_ns: int) -> Iterator[tuple[Entry | None, Target | None, Bucket | None]]:
        """Remove and yield what is due; stale entries are dropped silently."""
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, entry, target, bucket = heappop(self._heap)
            if entry is not None and entry.bucket is None:
                self._stale -= 1
                continue
            yield entry, target, bucket
