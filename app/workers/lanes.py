"""The lanes of one device, supervised: a dead one is answered for and replaced. Runs on: event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..batcher.dispatcher import Dispatcher
from ..batcher.target import Batch
from ..core.clock import LoopClock, TimerHandle
from ..core.errors import BackendError
from .backoff import Backoff
from .lane import Lane

_log = logging.getLogger(__name__)


class Lanes:
    """Keeps `number` lanes alive on a device.

    A lane that dies has its batch answered with an error and its permit freed at once; its successor starts after
    the backoff's delay. While any is missing, `is_healthy` is False; when the backoff gives up, it stays so.
    """

    def __init__(
        self,
        device: str,
        number: int,
        dispatcher: Dispatcher,
        clock: LoopClock,
        backoff: Callable[[], Backoff] = Backoff,
    ) -> None:
        self.device = device
        self.number = number
        self.restarts = 0
        self._dispatcher = dispatcher
        self._clock = clock
        self._backoff = backoff()
        self._lanes: list[Lane] = []
        self._timers: list[TimerHandle] = []
        self._started = 0
        self._is_stopping = False

    @property
    def is_healthy(self) -> bool:
        """Every lane is alive, or was never started."""
        return not self._started or len(self._lanes) == self.number

    @property
    def alive(self) -> int:
        """How many lanes there are now."""
        return len(self._lanes)

    @property
    def running(self) -> list[Batch]:
        """The batches that lanes are at."""
        return [batch for lane in self._lanes if (batch := lane.batch) is not None]

    def start(self) -> None:
        """Start all lanes."""
        for _ in range(self.number):
            self._start_one()

    def stop(self, timeout_s: float) -> bool:
        """End the lanes after what they are running; True if all have ended in time."""
        self._is_stopping = True
        for timer in self._timers:
            timer.cancel()
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.stop()
        return all(lane.join(timeout_s) for lane in lanes)

    def _start_one(self) -> None:
        if self._is_stopping:
            return
        self._started += 1
        name = f"kernelport-lane-{self.device}-{self._started}"
        lane = Lane(name, self.device, self._dispatcher, self._clock, self._died)
        self._lanes.append(lane)
        lane.start()

    def _died(self, lane: Lane, error: BaseException) -> None:
        _log.critical("%s died: %s: %s", lane.name, type(error).__name__, error, exc_info=error)
        if lane in self._lanes:
            self._lanes.remove(lane)
        self._dispatcher.forget_lane(lane, lane.device)
        batch, lane.batch = lane.batch, None
        if batch is not None:
            text = f"model '{batch.target.spec.name}': the worker that ran this request died"
            self._dispatcher.abandon(batch, BackendError(text))
        if self._is_stopping:
            return
        now_ns = self._clock.now_ns()
        delay_ns = self._backoff.next_delay_ns(now_ns)
        if delay_ns is None:
            _log.critical("lane on %s died too often; it is not started again", self.device)
            return
        self.restarts += 1
        self._timers.append(self._clock.call_at(now_ns + delay_ns, self._start_one))
