"""Time as the server sees it: integer monotonic nanoseconds, and timers on the event loop. Runs on: anywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol


class TimerHandle(Protocol):
    """A scheduled call that can be called off."""

    def cancel(self) -> None:
        """The call will not happen; harmless when it already did."""


class LoopClock(Protocol):
    """The event loop's two services that the batcher needs, so that tests can move time by hand."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds; callable from any thread."""

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` on the event loop about `when_ns`, which it must check; call on the event loop only."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Run `callback` when the loop has handled what is at hand; call on the event loop only."""

    def call_soon_threadsafe(self, callback: Callable[..., None], *args: Any) -> None:
        """Run `callback(*args)` on the event loop soon; callable from any thread."""


class SystemClock:
    """The real clock over a running asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now_ns: Callable[[], int] = time.monotonic_ns
        self.call_soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self.call_soon_threadsafe: Callable[..., Any] = loop.call_soon_threadsafe

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """See `LoopClock`. uvloop rounds to whole milliseconds, so a timer may fire up to half of one early."""
        delay_s = max(0, when_ns - time.monotonic_ns()) / 1e9
        return self._loop.call_later(delay_s, callback)
