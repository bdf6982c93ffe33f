"""Deadlines on a loop whose time is moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.http.deadlines import NEVER, Deadline, next_body_check
from kernelport.http.limits import HttpLimits

LIMITS = HttpLimits(body_timeout_s=60, body_grace_s=20, body_min_rate=1000)


class Loop:
    """`time`, `call_at` and nothing else of an event loop."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[Timer] = []
        self.armed = 0

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> Timer:
        self.armed += 1
        timer = Timer(self, when_s, callback)
        self.timers.append(timer)
        return timer

    def advance(self, to_s: float) -> None:
        while due := [timer for timer in self.timers if timer.when_s <= to_s]:
            first = min(due, key=lambda timer: timer.when_s)
            self.timers.remove(first)
            self.now_s = max(self.now_s, first.when_s)
            first.callback()
        self.now_s = to_s


class Timer:
    def __init__(self, loop: Loop, when_s: float, callback: Callable[[], None]) -> None:
        self.loop, self.when_s, self.callback = loop, when_s, callback

    def cancel(self) -> None:
        self.loop.timers.remove(self)


class Bench:
    def __init__(self) -> None:
        self.loop = Loop()
        self.fired: list[float] = []
        loop: Any = self.loop
        self.deadline = Deadline(loop, lambda: self.fired.append(self.loop.now_s))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_it_fires_when_due(bench: Bench) -> None:
    bench.deadline.set(5)
    bench.loop.advance(10)
    assert bench.fired == [5]
    assert not bench.loop.timers


def test_moved_back_it_fires_once_at_the_new_time(bench: Bench) -> None:
    bench.deadline.set(5)
    bench.deadline.set(8)
    bench.loop.advance(10)
    assert bench.fired == [8]


def test_moved_forward_it_fires_at_the_new_time(bench: Bench) -> None:
    bench.deadline.set(8)
    bench.deadline.set(5)
    bench.loop.advance(10)
    assert bench.fired == [5]


def test_cleared_it_never_fires(bench: Bench) -> None:
    bench.deadline.set(5)
    bench.deadline.clear()
    bench.loop.advance(10)
    assert bench.fired == []
    assert not bench.loop.timers


def test_closed_it_leaves_no_timer(bench: Bench) -> None:
    bench.deadline.set(5)
    bench.deadline.close()
    assert not bench.loop.timers


def test_a_busy_connection_arms_few_timers(bench: Bench) -> None:
    for number in range(1000):
        bench.loop.advance(number * 0.1)
        bench.deadline.clear()
        bench.deadline.set(bench.loop.now_s + 75)
    assert bench.fired == []
    assert bench.loop.armed <= 3


@given(st.lists(st.tuples(st.floats(0, 5), st.none() | st.floats(0, 20)), max_size=30))
def test_it_fires_exactly_when_the_last_setting_says(steps: list[tuple[float, float | None]]) -> None:
    bench = Bench()
    due_s = NEVER
    expected: list[float] = []
    for wait_s, delay_s in steps:
        then_s = bench.loop.now_s + wait_s
        if due_s <= then_s:
            expected.append(due_s)
            due_s = NEVER
        bench.loop.advance(then_s)
        if delay_s is None:
            bench.deadline.clear()
            due_s = NEVER
        else:
            due_s = then_s + delay_s
            bench.deadline.set(due_s)
    assert bench.fired == expected


@pytest.mark.parametrize(
    ("elapsed_s", "received", "next_s"),
    [(0, 0, 20), (19, 0, 20), (20, 0, None), (20, 20_000, 40), (20, 19_999, None), (45, 50_000, 60), (60, 10**9, None)],
)
def test_a_body_must_come_fast_enough(elapsed_s: float, received: int, next_s: float | None) -> None:
    found = next_body_check(100, 100 + elapsed_s, received, LIMITS)
    assert found == (None if next_s is None else 100 + next_s)
