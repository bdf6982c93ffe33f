"""Deadlines of one connection on one cheap timer, and the rule for slow bodies. Runs on: event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

from .limits import HttpLimits

NEVER = inf


class Deadline:
    """A point in loop time that may move at every request without touching the loop.

    The loop's timer is only re-armed when the deadline comes nearer than the timer; moved back or cleared, the timer
    fires for nothing once and re-arms itself. A busy keep-alive connection thus costs one timer per keep-alive time
    instead of two timer operations per request.
    """

    __slots__ = ("_call_at", "_callback", "_handle", "_time", "due_s", "fires_at_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._call_at = loop.call_at
        self._time = loop.time
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        self.due_s = NEVER
        self.fires_at_s = NEVER

    def set(self, due_s: float) -> None:
        """Call back at `due_s` unless the deadline is moved or cleared before."""
        self.due_s = due_s
        if due_s < self.fires_at_s:
            self._arm(due_s)

    def clear(self) -> None:
        """No deadline for now."""
        self.due_s = NEVER

    def close(self) -> None:
        """No deadline any more; lets go of the loop's timer."""
        self.due_s = NEVER
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._callback = _nothing

    def _arm(self, when_s: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._call_at(when_s, self._fire)
        self.fires_at_s = when_s

    def _fire(self) -> None:
        self._handle = None
        self.fires_at_s = NEVER
        if self.due_s == NEVER:
            return
        if self._time() < self.due_s:
            self._arm(self.due_s)
            return
        self.due_s = NEVER
        self._callback()


def _nothing() -> None:
    """What a closed deadline calls; so that it no longer refers to its connection."""


def next_body_check(started_s: float, now_s: float, received: int, limits: HttpLimits) -> float | None:
    """When to look again at a body that is being received; None: it is too slow already.

    The whole body may take `body_timeout_s`; after `body_grace_s` it must also have come at `body_min_rate` on average.
    """
    elapsed_s = now_s - started_s
    if elapsed_s >= limits.body_timeout_s:
        return None
    if elapsed_s >= limits.body_grace_s and received < limits.body_min_rate * elapsed_s:
        return None
    next_s = started_s + limits.body_grace_s if elapsed_s < limits.body_grace_s else now_s + limits.body_grace_s
    return min(started_s + limits.body_timeout_s, next_s)
