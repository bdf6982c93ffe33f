"""One real worker thread over a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.batching import Bench, request, values
from fakes.models import GatedCopy
from kernelport.core.tensor import Array
from kernelport.workers.lane import Lane


class Rig:
    def __init__(self, copy: GatedCopy | None = None) -> None:
        self.copy = copy or GatedCopy()
        self.bench = Bench(copy=self.copy)
        self.deaths: list[tuple[Lane, BaseException]] = []
        self.lane = Lane("lane", "cpu", self.bench.dispatcher, self.bench.clock, self.died)

    def died(self, lane: Lane, error: BaseException) -> None:
        self.deaths.append((lane, error))


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.copy.gate.set()
    rig.lane.stop()
    assert rig.lane.join(20)


def test_a_lane_takes_what_came_before_it_and_what_comes_later(rig: Rig) -> None:
    early = rig.bench.submit(request(1.0))
    rig.lane.start()
    while not early.is_done:
        rig.bench.clock.wait_soon()
    late = rig.bench.submit(request(2.0))
    while not late.is_done:
        rig.bench.clock.wait_soon()
    assert values(late).tolist() == [[4.0, 4.0]]
    assert rig.deaths == []


def test_a_lane_says_what_it_is_at(rig: Rig) -> None:
    rig.copy.gate.clear()
    rig.lane.start()
    entry = rig.bench.submit(request(1.0))
    assert rig.copy.entered.wait(20)
    assert rig.lane.batch is not None
    assert rig.lane.batch.entries == [entry]
    rig.copy.gate.set()
    while not entry.is_done:
        rig.bench.clock.wait_soon()
    assert rig.lane.batch is None


def test_a_lane_that_is_told_to_stop_finishes_what_it_is_at(rig: Rig) -> None:
    rig.copy.gate.clear()
    rig.lane.start()
    running = rig.bench.submit(request(1.0))
    assert rig.copy.entered.wait(20)
    rig.lane.stop()
    assert not rig.lane.join(0)
    rig.copy.gate.set()
    assert rig.lane.join(20)
    rig.bench.clock.run_soon()
    assert running.response is not None


def test_being_woken_for_nothing_is_harmless(rig: Rig) -> None:
    rig.lane.start()
    rig.lane.wake()
    entry = rig.bench.submit(request(1.0))
    while not entry.is_done:
        rig.bench.clock.wait_soon()
    assert entry.response is not None


def test_whatever_ends_a_lane_is_seen_on_the_event_loop() -> None:
    class Deadly(GatedCopy):
        def execute(self, inputs: object, outputs: object) -> dict[str, Array]:
            raise SystemExit("user code called exit()")

    rig = Rig(Deadly())
    rig.lane.start()
    entry = rig.bench.submit(request(1.0))
    rig.bench.clock.wait_soon()
    ((lane, error),) = rig.deaths
    assert lane is rig.lane
    assert isinstance(error, SystemExit)
    assert lane.batch is not None
    assert lane.batch.entries == [entry]
    assert lane.join(20)
