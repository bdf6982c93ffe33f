"""All models of a server: what should be loaded, and what is. Runs on: event loop; disk work on loader threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor

from ..batcher.dispatcher import Dispatcher
from ..config.model import ModelConfig
from ..core.errors import KernelPortError, ModelNotFound, ServerStopping
from ..core.model import ModelState, ModelStatus
from ..repository.model import RepositoryModel
from ..repository.repository import ModelRepository, with_config
from .actor import ModelActor, VersionLoader
from .catalog import Catalog

_log = logging.getLogger(__name__)


class ModelManager:
    """Keeps one actor per model name, and turns what the repository holds into what they should do.

    `on_event` hears of every version that begins to load, is ready or has failed.
    """

    def __init__(
        self,
        repository: ModelRepository,
        load_version: VersionLoader,
        dispatcher: Dispatcher,
        catalog: Catalog,
        executor: Executor,
        drain_limit_s: float,
        on_event: Callable[[ModelStatus], None],
    ) -> None:
        self._repository = repository
        self._load_version = load_version
        self._dispatcher = dispatcher
        self._catalog = catalog
        self._executor = executor
        self._drain_limit_s = drain_limit_s
        self._on_event = on_event
        self._actors: dict[str, ModelActor] = {}
        self._found: dict[str, RepositoryModel] = {}
        # What load requests brought, until the model is unloaded: another configuration, or files with theirs.
        self._brought: dict[str, tuple[ModelConfig | None, RepositoryModel | None]] = {}
        self._has_scanned = False
        self._is_stopping = False
        self._scanning = asyncio.Lock()

    # -- what others read ------------------------------------------------------------------------------------------

    @property
    def found(self) -> dict[str, RepositoryModel]:
        """The repository as the last scan saw it."""
        return self._found

    @property
    def actors(self) -> dict[str, ModelActor]:
        """Every name that was ever loaded or asked for."""
        return self._actors

    def brought(self, name: str) -> RepositoryModel | None:
        """The model as its files came with a load request, until it is unloaded."""
        return self._brought.get(name, (None, None))[1]

    @property
    def why_not_ready(self) -> str:
        """Empty when every model that should be loaded is; else the reasons."""
        if not self._has_scanned:
            return "the model repository has not been read yet"
        reasons = [actor.why_not_ready for actor in self._actors.values() if actor.is_expected and not actor.is_ready]
        return "; ".join(reasons)

    def statuses(self) -> list[ModelStatus]:
        """The repository index, by name, then version."""
        lines: list[ModelStatus] = []
        for name in sorted({*self._found, *self._actors}):
            actor = self._actors.get(name)
            lines += actor.statuses() if actor is not None else [ModelStatus(name, "", ModelState.UNKNOWN)]
        return lines

    # -- operations ------------------------------------------------------------------------------------------------

    async def scan(self) -> dict[str, RepositoryModel]:
        """Read the repository anew, off the loop."""
        async with self._scanning:
            loop = asyncio.get_running_loop()
            self._found = await loop.run_in_executor(self._executor, self._repository.scan)
            self._has_scanned = True
            for warning in self._repository.warnings:
                _log.warning("%s", warning)
            return self._found

    async def start(self, names: Iterable[str] | None) -> dict[str, str]:
        """Scan, and load these models (None: all) side by side; returns the reason per model that failed."""
        found = await self.scan()
        # No await from here on: readiness must know what is expected as soon as it knows that the scan is over.
        wanted = list(found) if names is None else list(names)
        for name in wanted:
            self._actor(name).is_expected = True
        return await self.load_all(wanted)

    async def load_all(self, names: Iterable[str]) -> dict[str, str]:
        """Load several models from the last scan side by side; returns the reason per model that failed."""
        wanted = list(names)
        outcomes = await asyncio.gather(*(self._load_found(name) for name in wanted), return_exceptions=True)
        failures: dict[str, str] = {}
        for name, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, KernelPortError):
                failures[name] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return failures

    async def load(self, name: str, config: ModelConfig | None = None, brought: RepositoryModel | None = None) -> None:
        """Load one model from the repository as it is now, with another configuration or with files of its own.

        Raises ModelNotFound for a name that the repository does not have, LoadError when the model fails.
        """
        self._refuse_when_stopping()
        before = self._brought.get(name)
        if config is not None or brought is not None:
            self._brought[name] = (config, brought or self.brought(name))
        await self.scan()
        try:
            await self._load_found(name)
        except KernelPortError as error:
            # What did not work must not stand in the way of the next plain load.
            self._brought.pop(name, None)
            if before is not None:
                self._brought[name] = before
            actor = self._actors.get(name)
            if isinstance(error, ModelNotFound) and actor is not None and not actor.served:
                actor.is_expected = False
            raise

    async def unload(self, name: str) -> None:
        """Unload one model; unknown and unloaded names are fine."""
        self._refuse_when_stopping()
        self._brought.pop(name, None)
        actor = self._actors.get(name)
        if actor is not None:
            await actor.unload()

    async def apply(self, changed: Iterable[str], removed: Iterable[str]) -> None:
        """What a poll has found: load what was added or changed, unload what has gone."""
        failures = await self.load_all(changed)
        for name, reason in failures.items():
            _log.error("model '%s': %s", name, reason)
        await asyncio.gather(*(self.unload(name) for name in removed))

    async def close(self) -> None:
        """Unload everything, at shutdown."""
        self._is_stopping = True
        await asyncio.gather(*(actor.unload() for actor in self._actors.values()))

    async def _load_found(self, name: str) -> None:
        config, brought = self._brought.get(name, (None, None))
        source = brought or self._found.get(name)
        if source is None:
            raise ModelNotFound(f"failed to load '{name}': no such model in the repository")
        if config is not None:
            source = with_config(source, config)
        await self._actor(name).load(source)

    def _actor(self, name: str) -> ModelActor:
        actor = self._actors.get(name)
        if actor is None:
            actor = self._actors[name] = ModelActor(
                name,
                self._load_version,
                self._dispatcher,
                self._catalog,
                self._executor,
                self._drain_limit_s,
                self._on_event,
            )
        return actor

    def _refuse_when_stopping(self) -> None:
        if self._is_stopping:
            raise ServerStopping("the server is stopping; models are neither loaded nor unloaded any more")
