"""How long to wait before a worker is started again. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections import deque

_SECOND_NS = 1_000_000_000


class Backoff:
    """1, 2, 4 .. 60 s between restarts; at most `limit` restarts within `window_s`, then None: give up."""

    def __init__(self, limit: int = 5, window_s: int = 600, longest_s: int = 60) -> None:
        self._limit = limit
        self._window_ns = window_s * _SECOND_NS
        self._longest_ns = longest_s * _SECOND_NS
        self._starts: deque[int] = deque()

    def next_delay_ns(self, now_ns: int) -> int | None:
        """The delay before the restart that is asked for at `now_ns`; it is remembered."""
        while self._starts and now_ns - self._starts[0] > self._window_ns:
            self._starts.popleft()
        if len(self._starts) >= self._limit:
            return None
        delay_ns: int = min(_SECOND_NS << len(self._starts), self._longest_ns)
        self._starts.append(now_ns)
        return delay_ns
