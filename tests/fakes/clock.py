"""Time that tests move by hand: a LoopClock whose loop is the test itself."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """`advance` fires timers on the exact nanosecond; `run_soon` does what other threads asked the loop to do."""

    def __init__(self, start_ns: int = 1_000_000_000) -> None:
        self.time_ns = start_ns
        self._timers: list[tuple[int, int, FakeTimer]] = []
        self._ties = count()
        self._soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._arrived = threading.Semaphore(0)

    def now_ns(self) -> int:
        return self.time_ns

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heappush(self._timers, (when_ns, next(self._ties), timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.call_soon_threadsafe(callback)

    def call_soon_threadsafe(self, callback: Callable[..., None], *args: Any) -> None:
        self._soon.append((callback, args))
        self._arrived.release()

    def run_soon(self) -> None:
        """Run everything that was asked for so far."""
        while self._soon:
            self._arrived.acquire()
            callback, args = self._soon.popleft()
            callback(*args)

    def wait_soon(self, timeout_s: float = 20) -> None:
        """Wait until another thread asks the loop for something, and run it."""
        assert self._arrived.acquire(timeout=timeout_s), "no thread asked the loop for anything"
        callback, args = self._soon.popleft()
        callback(*args)

    def advance(self, by_ns: int) -> None:
        """Let `by_ns` nanoseconds pass, firing every timer at its own moment."""
        until_ns = self.time_ns + by_ns
        while self._timers and self._timers[0][0] <= until_ns:
            when_ns, _, timer = heappop(self._timers)
            self.time_ns = max(self.time_ns, when_ns)
            if timer.callback is not None:
                callback, timer.callback = timer.callback, None
                callback()
                self.run_soon()
        self.time_ns = until_ns

    @property
    def armed(self) -> list[int]:
        """When the timers that are still wanted will fire."""
        return sorted(when_ns for when_ns, _, timer in self._timers if timer.callback is not None)
