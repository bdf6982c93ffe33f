"""One model name through loads, failures, reloads and unloads; the loader is a fake, everything else is real."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes.batching import Doubler, request, spec
from kernelport.batcher.dispatcher import Dispatcher
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.config.model import ModelConfig
from kernelport.config.version_policy import AllPolicy, VersionPolicy
from kernelport.core.clock import SystemClock
from kernelport.core.errors import LoadError, ModelNotFound, ModelNotReady, QueueFull
from kernelport.core.model import ModelState, ModelStatus
from kernelport.lifecycle.actor import ModelActor
from kernelport.lifecycle.catalog import Catalog
from kernelport.lifecycle.loaded import LoadedVersion
from kernelport.repository.model import RepositoryModel
from kernelport.workers.lanes import Lanes

ALL = ModelConfig(version_policy=VersionPolicy(all=AllPolicy()))


def source(*versions: str, stamp: str = "a", config: ModelConfig | None = None, error: str = "") -> RepositoryModel:
    return RepositoryModel(
        name="m",
        model_dir=Path("m"),
        versions={version: Path("m") / version for version in versions},
        config=None if error else config or ModelConfig(),
        config_error=error,
        version_fingerprints=dict.fromkeys(versions, stamp),
    )


class Copy(Doubler):
    """A loaded copy that can be held at work and knows whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def execute(self, inputs: object, outputs: object) -> dict[str, np.ndarray]:
        assert not self.is_closed, "a closed copy was run"
        self.entered.set()
        assert self.gate.wait(20)
        return super().execute(inputs, outputs)  # type: ignore[arg-type]

    def close(self) -> None:
        self.is_closed = True


class FakeLoader:
    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.copies: list[Copy] = []
        self.broken: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.limit = 1024

    def __call__(self, wanted: RepositoryModel, version: str) -> LoadedVersion:
        assert self.gate.wait(20)
        self.loaded.append(version)
        if version in self.broken:
            raise LoadError(f"{version} is broken")
        copy = Copy()
        self.copies.append(copy)
        return LoadedVersion(
            replace(spec(0), version=version), BatchPolicy(), QueuePolicy(self.limit), {"cpu": [copy]}, (copy,), {},  # type: ignore[list-item,arg-type]
        )  # fmt: skip


class World:
    """An actor with a real dispatcher and one real lane."""

    def __init__(self) -> None:
        self.loader = FakeLoader()
        self.catalog = Catalog()
        clock = SystemClock(asyncio.get_running_loop())
        self.dispatcher = Dispatcher(clock)
        self.lanes = Lanes("cpu", 1, self.dispatcher, clock)
        self.lanes.start()
        self.executor = ThreadPoolExecutor(4)
        self.events: list[ModelStatus] = []
        self.actor = ModelActor(
            "m", self.loader, self.dispatcher, self.catalog, self.executor, 20.0, self.events.append
        )

    def states(self) -> dict[str, tuple[ModelState, str]]:
        return {one.version: (one.state, one.reason) for one in self.actor.statuses()}

    async def infer(self, version: str | None = None) -> tuple[str, float]:
        call = self.catalog.find("m", version).submit(request(3.0), 1, 0)
        done = asyncio.get_running_loop().create_future()
        call.add_done_callback(lambda finished: done.set_result(None))
        await asyncio.wait_for(done, 20)
        assert call.error is None, call.error
        assert call.response is not None
        return call.response.version, float(call.response.outputs[0].array[0, 0])

    def close(self) -> None:
        for copy in self.loader.copies:
            copy.gate.set()
        self.loader.gate.set()
        assert self.lanes.stop(20)
        self.executor.shutdown()


def run(scenario: Callable[[World], object]) -> None:
    async def main() -> None:
        world = World()
        try:
            await scenario(world)  # type: ignore[misc]
        finally:
            world.close()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the condition never came true")


def test_a_load_serves_the_latest_version() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1", "3"))
        assert await world.infer() == ("3", 6.0)
        assert world.states() == {"3": (ModelState.READY, "")}
        assert world.actor.is_ready
        with pytest.raises(ModelNotFound, match="version 1 is not found"):
            world.catalog.find("m", "1")

    run(scenario)


def test_the_same_load_twice_loads_once_and_a_changed_file_reloads() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        await world.actor.load(source("1"))
        assert world.loader.loaded == ["1"]
        await world.actor.load(source("1", stamp="b"))
        assert world.loader.loaded == ["1", "1"]

    run(scenario)


def test_concurrent_loads_of_one_model_join() -> None:
    async def scenario(world: World) -> None:
        world.loader.gate.clear()
        jobs = [asyncio.ensure_future(world.actor.load(source("1"))) for _ in range(8)]
        await until(lambda: world.states().get("1", (None,))[0] is ModelState.LOADING)
        with pytest.raises(ModelNotReady):
            world.catalog.find("m", None)
        world.loader.gate.set()
        await asyncio.gather(*jobs)
        assert world.loader.loaded == ["1"]

    run(scenario)


def test_a_broken_model_fails_every_time_with_the_same_reason() -> None:
    async def scenario(world: World) -> None:
        world.loader.broken = {"1"}
        for _ in range(3):
            with pytest.raises(LoadError, match="version 1 is at UNAVAILABLE state: 1 is broken;"):
                await world.actor.load(source("1"))
            assert world.states() == {"1": (ModelState.UNAVAILABLE, "1 is broken")}
            assert not world.actor.is_ready
        assert len(world.loader.loaded) == 3
        world.loader.broken = set()
        await world.actor.load(source("1"))
        assert await world.infer() == ("1", 6.0)

    run(scenario)


def test_a_failed_reload_leaves_the_old_serving_and_the_reason_visible() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        world.loader.broken = {"1"}
        with pytest.raises(LoadError):
            await world.actor.load(source("1", stamp="b"))
        state, reason = world.states()["1"]
        assert state is ModelState.READY
        assert "1 is broken" in reason
        assert await world.infer() == ("1", 6.0)
        assert world.actor.is_ready

    run(scenario)


def test_a_new_version_that_fails_leaves_the_old_version_serving() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        world.loader.broken = {"2"}
        with pytest.raises(LoadError):
            await world.actor.load(source("1", "2"))
        assert await world.infer() == ("1", 6.0)
        assert world.states()["2"] == (ModelState.UNAVAILABLE, "2 is broken")

    run(scenario)


def test_a_new_version_is_up_before_the_old_one_drains_and_nothing_is_lost() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        old = world.loader.copies[0]
        old.gate.clear()
        running = asyncio.ensure_future(world.infer())
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(world.executor, old.entered.wait, 20)
        waiting = [asyncio.ensure_future(world.infer()) for _ in range(5)]
        pinned = asyncio.ensure_future(world.infer("1"))
        await asyncio.sleep(0)
        await world.actor.load(source("1", "2"))
        assert not old.is_closed
        assert world.states()["1"][0] is ModelState.UNLOADING
        old.gate.set()
        assert await running == ("1", 6.0)
        assert await pinned == ("1", 6.0)
        assert {version for version, _ in await asyncio.gather(*waiting)} == {"2"}
        await until(lambda: old.is_closed)
        await until(lambda: world.states()["1"] == (ModelState.UNAVAILABLE, "unloaded"))

    run(scenario)


def test_unload_answers_what_was_accepted_and_frees_the_copy() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        copy = world.loader.copies[0]
        copy.gate.clear()
        requests = [asyncio.ensure_future(world.infer()) for _ in range(4)]
        await asyncio.sleep(0)
        unloading = asyncio.ensure_future(world.actor.unload())
        await asyncio.sleep(0.01)
        with pytest.raises(ModelNotFound, match="has no available versions"):
            world.catalog.find("m", None)
        copy.gate.set()
        await unloading
        assert copy.is_closed
        assert all(answer == ("1", 6.0) for answer in await asyncio.gather(*requests))
        assert world.states() == {"1": (ModelState.UNAVAILABLE, "unloaded")}
        assert not world.actor.is_expected

    run(scenario)


def test_unload_and_load_again_end_loaded_however_fast_they_follow() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        await asyncio.gather(
            world.actor.unload(), world.actor.load(source("1")), world.actor.unload(), world.actor.load(source("1"))
        )
        assert await world.infer() == ("1", 6.0)
        assert [copy.is_closed for copy in world.loader.copies] == [True, True, False]

    run(scenario)


def test_all_versions_are_served_side_by_side_and_share_one_queue_limit() -> None:
    async def scenario(world: World) -> None:
        world.loader.limit = 3
        await world.actor.load(source("1", "2", config=ALL))
        assert await world.infer("1") == ("1", 6.0)
        assert await world.infer() == ("2", 6.0)
        for copy in world.loader.copies:
            copy.gate.clear()
        calls = [world.catalog.find("m", str(1 + number % 2)).submit(request(1.0), 1, 0) for number in range(12)]
        assert any(isinstance(call.error, QueueFull) for call in calls)

    run(scenario)


def test_a_broken_configuration_is_a_reason_for_every_version() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(LoadError, match="line 3"):
            await world.actor.load(source("1", "2", error="config.pbtxt line 3: oops"))
        assert world.states() == {
            "1": (ModelState.UNAVAILABLE, "config.pbtxt line 3: oops"),
            "2": (ModelState.UNAVAILABLE, "config.pbtxt line 3: oops"),
        }
        assert "oops" in world.actor.why_not_ready

    run(scenario)


def test_counters_of_a_version_survive_its_reload() -> None:
    async def scenario(world: World) -> None:
        await world.actor.load(source("1"))
        await world.infer()
        await world.actor.load(source("1", stamp="b"))
        await world.infer()
        assert world.actor.served["1"].stats.outcomes["success"] == 2

    run(scenario)


def test_a_client_that_hangs_up_does_not_stop_the_load_it_asked_for() -> None:
    async def scenario(world: World) -> None:
        world.loader.gate.clear()
        job = asyncio.ensure_future(world.actor.load(source("1")))
        await until(lambda: world.states().get("1", (None,))[0] is ModelState.LOADING)
        job.cancel()
        world.loader.gate.set()
        await until(lambda: world.actor.is_ready)
        assert await world.infer() == ("1", 6.0)

    run(scenario)
