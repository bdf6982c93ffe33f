"""How late the event loop runs its timers: what stalls every request at once. Runs on: event loop."""

from __future__ import annotations

from ..core.clock import LoopClock, TimerHandle
from .stats import LATENCY_BOUNDS_NS, Histogram

INTERVAL_NS = 250_000_000


class LoopLag:
    """A timer that fires every 250 ms and counts by how much it was late."""

    def __init__(self, clock: LoopClock, interval_ns: int = INTERVAL_NS) -> None:
        self._clock = clock
        self._interval_ns = interval_ns
        self._due_ns = 0
        self._timer: TimerHandle | None = None
        self.lateness = Histogram(LATENCY_BOUNDS_NS)
        self.last_ns = 0
        self.max_ns = 0

    def start(self) -> None:
        """Begin sampling; harmless when it already began."""
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """End sampling; the counts stay."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        # From now, not from the last due time: one stall is one late sample, not a burst of them.
        self._due_ns = self._clock.now_ns() + self._interval_ns
        self._timer = self._clock.call_at(self._due_ns, self._sample)

    def _sample(self) -> None:
        late_ns = max(0, self._clock.now_ns() - self._due_ns)
        self.last_ns = late_ns
        self.max_ns = max(self.max_ns, late_ns)
        self.lateness.observe(late_ns)
        self._arm()
