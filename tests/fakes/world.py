"""A model manager over a folder, with a scripted loader and everything else real."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fakes.batching import request
from fakes.models import ScriptedLoader, put_model
from kernelport.batcher.dispatcher import Dispatcher
from kernelport.core.clock import SystemClock
from kernelport.core.model import ModelStatus
from kernelport.core.request import Call
from kernelport.lifecycle.catalog import Catalog
from kernelport.lifecycle.manager import ModelManager
from kernelport.repository.repository import ModelRepository
from kernelport.workers.lanes import Lanes


class World:
    """A manager over a folder; the loader is scripted, the rest is real."""

    def __init__(self, folder: Path, drain_limit_s: float = 20.0) -> None:
        self.folder = folder
        self.loader = ScriptedLoader()
        self.catalog = Catalog()
        self.events: list[ModelStatus] = []
        self.fault: Exception | None = None  # raised by whoever hears of events
        self.executor = ThreadPoolExecutor(4)
        clock = SystemClock(asyncio.get_running_loop())
        dispatcher = Dispatcher(clock)
        self.lanes = Lanes("cpu", 2, dispatcher, clock)
        self.manager = ModelManager(
            ModelRepository([folder]), self.loader, dispatcher, self.catalog, self.executor, drain_limit_s, self.heard
        )

    def heard(self, status: ModelStatus) -> None:
        self.events.append(status)
        if self.fault is not None:
            raise self.fault

    def put(self, name: str, *versions: str, config: str = "") -> None:
        put_model(self.folder, name, *versions, config=config)

    def index(self) -> list[tuple[str, str, str, str]]:
        return [(one.name, one.version, one.state.value, one.reason) for one in self.manager.statuses()]

    def served(self) -> list[str]:
        return [f"{one.spec.name}/{one.spec.version}" for one in self.catalog.served()]

    def max_batch_size(self, name: str) -> int:
        return self.catalog.find(name, None).spec.max_batch_size

    def submit(self, name: str, version: str | None = None) -> asyncio.Future[Call]:
        done: asyncio.Future[Call] = asyncio.get_running_loop().create_future()
        self.catalog.find(name, version).submit(request(1.0), 1, 0).add_done_callback(done.set_result)
        return done

    def close(self) -> None:
        self.loader.open_gates()
        assert self.lanes.stop(20)
        self.executor.shutdown()


Run = Callable[..., None]


def runner(folder: Path) -> Run:
    """Runs scenarios, each in a loop of its own, over a repository with the models `a` and `b`."""
    for name in ("a", "b"):
        put_model(folder, name)

    def run(scenario: Callable[[World], Awaitable[None]], drain_limit_s: float = 20.0) -> None:
        async def main() -> None:
            world = World(folder, drain_limit_s)
            world.lanes.start()
            try:
                await scenario(world)
            finally:
                world.close()

        asyncio.run(main())

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other threads bring about."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came true")
