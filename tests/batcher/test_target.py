"""A model version as the batcher sees it: permits, and when nothing refers to them any more."""

from __future__ import annotations

from fakes.batching import Bench, Doubler, request, spec
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import ModelQueue
from kernelport.batcher.target import Copy, Target
from kernelport.telemetry.stats import ModelStats


def test_every_instance_on_every_device_is_a_permit() -> None:
    shared, other = Doubler(), Doubler()
    permits: dict[str, list[Copy]] = {"cpu": [shared, shared, shared], "cuda:0": [other]}
    target = Target(spec(), BatchPolicy(), QueuePolicy(), ModelQueue("m"), ModelStats(), permits)
    assert target.free == 4
    target.idle_copies["cpu"].pop()
    assert len(permits["cpu"]) == 3


def test_a_target_is_drained_when_nothing_waits_and_nothing_runs() -> None:
    bench = Bench()
    assert bench.target.is_drained
    bench.submit(request(1.0))
    assert not bench.target.is_drained
    batch = bench.take()
    assert batch is not None
    bench.run(batch)
    assert not bench.target.is_drained
    bench.take(batch)
    assert bench.target.is_drained


def test_a_batch_holds_the_copy_it_runs_on_until_its_permit_comes_back() -> None:
    bench = Bench(permits=2)
    bench.submit(request(1.0))
    batch = bench.take()
    assert batch is not None
    assert batch.copy is bench.copy
    assert (bench.target.free, bench.target.busy) == (1, 1)
    bench.run(batch)
    bench.take(batch)
    assert (bench.target.free, bench.target.busy) == (2, 0)
