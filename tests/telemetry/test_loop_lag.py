"""The loop's lateness is sampled four times a second and counted exactly."""

from collections.abc import Callable
from typing import Any

import pytest
from kernelport.telemetry.loop_lag import INTERVAL_NS, LoopLag

MS = 1_000_000


class Timer:
    """A call planned on the clock below."""

    def __init__(self, when_ns: int, callback: Callable[[], None]) -> None:
        self.when_ns = when_ns
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class LateClock:
    """A clock moved by hand that runs what is due only when asked, as a busy loop does."""

    def __init__(self) -> None:
        self.time_ns = 1_000
        self.timers: list[Timer] = []

    def now_ns(self) -> int:
        return self.time_ns

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(when_ns, callback)
        self.timers.append(timer)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def call_soon_threadsafe(self, callback: Callable[..., None], *args: Any) -> None:
        callback(*args)

    def advance(self, by_ns: int) -> None:
        """Move time, then run what is due by then."""
        self.time_ns += by_ns
        due = [timer for timer in self.timers if timer.when_ns <= self.time_ns]
        self.timers = [timer for timer in self.timers if timer.when_ns > self.time_ns]
        for timer in due:
            if not timer.is_cancelled:
                timer.callback()


@pytest.fixture
def clock() -> LateClock:
    return LateClock()


def test_a_punctual_loop_has_no_lag(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.start()
    for _ in range(4):
        clock.advance(INTERVAL_NS)
    assert (lag.lateness.count, lag.lateness.total, lag.last_ns, lag.max_ns) == (4, 0, 0, 0)


def test_lateness_is_last_largest_and_summed(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.start()
    for late_ns in (2 * MS, 70 * MS, 1 * MS):
        clock.advance(INTERVAL_NS + late_ns)
    assert (lag.last_ns, lag.max_ns) == (1 * MS, 70 * MS)
    assert (lag.lateness.count, lag.lateness.total) == (3, 73 * MS)


def test_one_stall_is_one_late_sample(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.start()
    clock.advance(10 * INTERVAL_NS)
    clock.advance(INTERVAL_NS)
    assert (lag.lateness.count, lag.last_ns, lag.max_ns) == (2, 0, 9 * INTERVAL_NS)


def test_a_timer_that_fires_early_counts_as_punctual(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.start()
    clock.timers[0].callback()
    assert (lag.last_ns, lag.lateness.total) == (0, 0)


def test_starting_twice_samples_once(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.start()
    lag.start()
    clock.advance(INTERVAL_NS)
    assert lag.lateness.count == 1


def test_stopping_ends_the_samples_and_keeps_the_counts(clock: LateClock) -> None:
    lag = LoopLag(clock)
    lag.stop()
    lag.start()
    clock.advance(INTERVAL_NS)
    lag.stop()
    clock.advance(INTERVAL_NS)
    assert lag.lateness.count == 1
    lag.start()
    clock.advance(INTERVAL_NS)
    assert lag.lateness.count == 2
