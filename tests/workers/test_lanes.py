"""Real lane threads, fake time: death is seen, answered for and mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.batching import Bench, Doubler, request, values
from fakes.models import GatedCopy
from kernelport.core.errors import BackendError
from kernelport.workers.backoff import Backoff
from kernelport.workers.lanes import Lanes

SECOND = 1_000_000_000


class Killer(Doubler):
    """Ends the thread that runs it while `deadly`."""

    deadly = True

    def execute(self, inputs: Any, outputs: Any) -> Any:
        if self.deadly:
            raise SystemExit("user code called exit()")
        return super().execute(inputs, outputs)


class Rig:
    def __init__(self, copy: Any, lanes: int = 1) -> None:
        self.bench = Bench(copy=copy)
        self.lanes = Lanes("cpu", lanes, self.bench.dispatcher, self.bench.clock)

    def settle(self, entry: Any) -> None:
        """Do what the lanes ask of the loop until the entry has its answer."""
        while not entry.is_done:
            self.bench.clock.wait_soon()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig(Killer())
    rig.lanes.start()
    yield rig
    assert rig.lanes.stop(20)


def test_a_dead_lane_is_answered_for_seen_and_replaced_after_its_backoff(rig: Rig) -> None:
    entry = rig.bench.submit(request(1.0))
    rig.settle(entry)
    assert isinstance(entry.error, BackendError)
    assert "worker that ran this request died" in str(entry.error)
    assert not rig.lanes.is_healthy
    assert rig.lanes.alive == 0
    rig.bench.copy.deadly = False  # type: ignore[union-attr]
    waiting = rig.bench.submit(request(2.0))
    rig.bench.clock.advance(SECOND - 1)
    assert not rig.lanes.is_healthy
    rig.bench.clock.advance(1)
    assert rig.lanes.is_healthy
    rig.settle(waiting)
    assert values(waiting).tolist() == [[4.0, 4.0]]
    assert rig.lanes.restarts == 1


def test_the_permit_of_a_dead_lane_is_not_lost(rig: Rig) -> None:
    entry = rig.bench.submit(request(1.0))
    rig.settle(entry)
    assert rig.bench.target.free == 1
    assert rig.bench.target.is_drained


def test_a_lane_that_dies_too_often_stays_down(rig: Rig) -> None:
    for round_number in range(6):
        entry = rig.bench.submit(request(1.0))
        if round_number:
            rig.bench.clock.advance(60 * SECOND)
        rig.settle(entry)
    assert rig.lanes.alive == 0
    assert rig.lanes.restarts == 5
    rig.bench.clock.advance(3600 * SECOND)
    assert not rig.lanes.is_healthy


def test_lanes_share_the_work_and_every_caller_gets_its_own_rows() -> None:
    rig = Rig(Doubler(), lanes=4)
    rig.lanes.start()
    entries = [rig.bench.submit(request(float(number))) for number in range(200)]
    for entry in entries:
        rig.settle(entry)
    assert [float(values(entry)[0, 0]) for entry in entries] == [2.0 * number for number in range(200)]
    assert rig.lanes.stop(20)


def test_lanes_that_were_never_started_are_not_a_fault() -> None:
    assert Rig(Doubler()).lanes.is_healthy


def test_the_backoff_doubles_up_to_its_longest_and_forgets_old_restarts() -> None:
    backoff = Backoff(limit=8, window_s=600, longest_s=60)
    delays = [backoff.next_delay_ns(0) for _ in range(9)]
    assert [delay and delay // SECOND for delay in delays] == [1, 2, 4, 8, 16, 32, 60, 60, None]
    assert backoff.next_delay_ns(601 * SECOND) == SECOND


def test_a_dead_lane_is_not_replaced_once_the_others_are_told_to_stop() -> None:
    rig = Rig(Killer())
    rig.lanes.start()
    rig.settle(rig.bench.submit(request(1.0)))
    assert rig.lanes.restarts == 1
    assert rig.lanes.stop(20)
    rig.bench.clock.advance(60 * SECOND)
    assert rig.lanes.alive == 0


def test_a_lane_that_dies_while_it_is_stopped_is_answered_for_and_stays_down() -> None:
    class Slow(GatedCopy):
        def execute(self, inputs: Any, outputs: Any) -> Any:
            super().execute(inputs, outputs)
            raise SystemExit("user code called exit()")

    copy = Slow()
    copy.gate.clear()
    rig = Rig(copy)
    rig.lanes.start()
    entry = rig.bench.submit(request(1.0))
    assert copy.entered.wait(20)
    assert [batch.entries for batch in rig.lanes.running] == [[entry]]
    assert not rig.lanes.stop(0)
    copy.gate.set()
    rig.settle(entry)
    assert isinstance(entry.error, BackendError)
    assert rig.lanes.restarts == 0
