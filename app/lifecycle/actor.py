"""Everything that happens to one model name, one operation after the other. Runs on: event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

from ..batcher.dispatcher import Dispatcher
from ..batcher.queue import ModelQueue
from ..core.errors import IllegalTransition, KernelPortError, LoadError
from ..core.model import ModelState, ModelStatus
from ..repository.model import RepositoryModel
from ..telemetry.stats import ModelStats
from .catalog import Catalog, CatalogEntry
from .loaded import LoadedVersion
from .served_model import ServedModel
from .state import UNLOADED, VersionState

_log = logging.getLogger(__name__)

VersionLoader = Callable[[RepositoryModel, str], LoadedVersion]
"""Loads one version completely on a loader thread; raises KernelPortError with a reason a user can act on."""


def load_key(source: RepositoryModel, version: str) -> object:
    """Equal for two scans exactly when loading that version again would give the same."""
    return source.version_fingerprints.get(version), source.config_fingerprint, source.config


class ModelActor:
    """The state of one model name. Operations queue up; a load equal to the one asked for last joins it.

    A load builds and warms every wanted version first, then replaces the catalog's entry in one step, then lets the
    versions that went drain. When a version fails, what served before goes on serving and the reason is kept.
    """

    def __init__(
        self,
        name: str,
        load_version: VersionLoader,
        dispatcher: Dispatcher,
        catalog: Catalog,
        executor: Executor,
        drain_limit_s: float,
        on_event: Callable[[ModelStatus], None],
    ) -> None:
        self.name = name
        self.is_expected = False  # it was asked for, and not unloaded since
        self._load_version = load_version
        self._dispatcher = dispatcher
        self._catalog = catalog
        self._executor = executor
        self._drain_limit_s = drain_limit_s
        self._on_event = on_event
        self._queue = ModelQueue(name)
        self._served: dict[str, ServedModel] = {}
        self._keys: dict[str, object] = {}
        self._states: dict[str, VersionState] = {}
        self._wanted: tuple[str, ...] = ()
        self._mailbox = asyncio.Lock()
        self._last: tuple[object, asyncio.Task[None]] | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    # -- what others read ------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Every version it should serve is served; a reload that failed does not count while the old ones serve."""
        return bool(self._wanted) and all(version in self._served for version in self._wanted)

    @property
    def served(self) -> dict[str, ServedModel]:
        """Versions that take requests."""
        return self._served

    @property
    def why_not_ready(self) -> str:
        """The reasons, in one line; empty when ready."""
        if self.is_ready:
            return ""
        reasons = [
            f"version {state.version} {state.state.value}: {state.reason}" if state.reason else state.state.value
            for state in self._states.values()
            if state.version not in self._served
        ]
        return f"model '{self.name}': " + ("; ".join(reasons) or "not loaded")

    def statuses(self) -> list[ModelStatus]:
        """One line per known version; one without a version if the model was never loaded."""
        if not self._states:
            return [ModelStatus(self.name, "", ModelState.UNKNOWN)]
        ordered = sorted(self._states.values(), key=lambda one: int(one.version or 0))
        return [ModelStatus(one.name, one.version, one.state, one.reason) for one in ordered]

    # -- operations ------------------------------------------------------------------------------------------------

    async def load(self, source: RepositoryModel) -> None:
        """Serve what the source wants; raises LoadError naming every version that failed, after serving the rest."""
        key = (source.problem, tuple((version, load_key(source, version)) for version in source.chosen.versions))
        if self._last is not None and self._last[0] == key and not self._last[1].done():
            task = self._last[1]
        else:
            self.is_expected = True
            task = self._start(self._load(source), key)
        await asyncio.shield(task)

    async def unload(self) -> None:
        """Stop serving; returns when all accepted requests are answered and the copies freed, or the limit is over."""
        self.is_expected = False
        await asyncio.shield(self._start(self._unload(), None))

    def _start(self, operation: object, key: object) -> asyncio.Task[None]:
        # The job belongs to the server: a client that hangs up does not stop it.
        task: asyncio.Task[None] = asyncio.ensure_future(operation)  # type: ignore[call-overload]
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._last = (key, task)
        return task

    async def _load(self, source: RepositoryModel) -> None:
        async with self._mailbox:
            await self._await_retired()
            wanted = source.chosen.versions
            if not self._served:
                self._wanted = wanted
            if source.problem:
                self._fail_all(source.versions or ("",), source.problem)
                raise LoadError(f"load failed for model '{self.name}': {source.problem}")
            self._states.pop("", None)
            fresh: dict[str, ServedModel] = {}
            failures: dict[str, str] = {}
            stale = [v for v in wanted if v not in self._served or self._keys.get(v) != load_key(source, v)]
            self._begin(stale)
            for version in stale:
                try:
                    fresh[version] = await self._load_one(source, version)
                except KernelPortError as error:
                    failures[version] = str(error)
                    self._fail(version, str(error))
            self._switch(fresh, () if failures else set(self._served) - set(wanted))
            self._forget_gone(source.versions)
            if failures:
                texts = "".join(
                    f"version {version} is at UNAVAILABLE state: {reason};" for version, reason in failures.items()
                )
                raise LoadError(f"load failed for model '{self.name}': {texts}")
            self._wanted = wanted

    def _begin(self, versions: Sequence[str]) -> None:
        for version in versions:
            if self._is_draining(version):  # told before any other version is touched
                raise IllegalTransition(
                    f"model '{self.name}' version {version} still answers what it accepted before it was unloaded; "
                    "load it again later"
                )
        for version in versions:
            state = self._states.setdefault(version, VersionState(self.name, version))
            if version not in self._served:
                state.move(ModelState.LOADING)
                self._on_event(ModelStatus(self.name, version, ModelState.LOADING))
        self._catalog.publish(self.name, CatalogEntry.of(self._served, is_loading=not self._served))

    async def _load_one(self, source: RepositoryModel, version: str) -> ServedModel:
        loop = asyncio.get_running_loop()
        self._keys.pop(version, None)
        try:
            loaded: LoadedVersion = await loop.run_in_executor(self._executor, self._load_version, source, version)
        except KernelPortError:
            raise
        except Exception as error:
            _log.exception("model '%s' version %s: loading raised", self.name, version)
            raise LoadError(f"{type(error).__name__} while loading: {error}") from error
        self._keys[version] = load_key(source, version)
        old = self._served.get(version)
        stats = old.stats if old is not None else ModelStats()
        stats.load_ns = loaded.load_ns
        return ServedModel(loaded, self._dispatcher, self._queue, stats)

    def _switch(self, fresh: dict[str, ServedModel], gone: Iterable[str]) -> None:
        """Publish the new versions in one step, then retire what they replace and what nobody wants."""
        before = dict(self._served)
        self._served = {**{v: m for v, m in before.items() if v not in gone}, **fresh}
        entry = CatalogEntry.of(self._served)
        self._catalog.publish(self.name, entry)
        for version, model in fresh.items():
            state = self._states[version]
            if state.state is ModelState.LOADING:
                state.move(ModelState.READY)
            state.reason = ""
            self._on_event(ModelStatus(self.name, version, ModelState.READY))
            for note in model.loaded.notes:
                _log.info("model '%s' version %s: %s", self.name, version, note)
        for version, model in before.items():
            if version in gone:
                self._retire(version, model, entry.default, is_gone=True)
            elif version in fresh:
                self._retire(version, model, fresh[version], is_gone=False)

    def _retire(self, version: str, model: ServedModel, successor: ServedModel | None, is_gone: bool) -> None:
        if is_gone:
            self._keys.pop(version, None)
            self._states[version].move(ModelState.UNLOADING)
        drained = model.retire(successor)
        task = asyncio.ensure_future(self._finish_retirement(version, model, drained, is_gone))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _finish_retirement(
        self, version: str, model: ServedModel, drained: asyncio.Future[None], is_gone: bool
    ) -> None:
        await drained
        await asyncio.get_running_loop().run_in_executor(self._executor, model.close)
        state = self._states.get(version)
        if is_gone and state is not None and state.state is ModelState.UNLOADING:
            state.move(ModelState.UNAVAILABLE, UNLOADED)
        if is_gone:
            self._on_event(ModelStatus(self.name, version, ModelState.UNAVAILABLE, UNLOADED))

    async def _unload(self) -> None:
        async with self._mailbox:
            await self._await_retired()
            self._wanted = ()
            for version, state in list(self._states.items()):
                if state.state is ModelState.UNAVAILABLE:
                    state.reason = UNLOADED
                if not version:
                    del self._states[version]
            if self._served:
                self._switch({}, set(self._served))
                await self._await_retired()

    async def _await_retired(self) -> None:
        """Give versions that are draining their time, so that memory never holds more than one set too many."""
        if self._retiring:
            await asyncio.wait(set(self._retiring), timeout=self._drain_limit_s)

    # -- failures --------------------------------------------------------------------------------------------------

    def _fail(self, version: str, reason: str) -> None:
        state = self._states[version]
        if version in self._served:
            state.reason = f"reload failed, the version loaded before serves on: {reason}"
        else:
            state.move(ModelState.UNAVAILABLE, reason)
        _log.error("model '%s' version %s failed to load: %s", self.name, version, reason)
        self._on_event(ModelStatus(self.name, version, ModelState.UNAVAILABLE, reason))

    def _fail_all(self, versions: Iterable[str], reason: str) -> None:
        if self._served:
            versions = tuple(self._served)
        for version in versions:
            if self._is_draining(version):
                continue
            state = self._states.setdefault(version, VersionState(self.name, version))
            if version not in self._served:
                state.move(ModelState.LOADING)
            self._fail(version, reason)
        self._catalog.publish(self.name, CatalogEntry.of(self._served))

    def _is_draining(self, version: str) -> bool:
        state = self._states.get(version)
        return state is not None and state.state is ModelState.UNLOADING

    def _forget_gone(self, on_disk: Iterable[str]) -> None:
        """Versions that are neither on disk nor served have no place in the index."""
        keep = {*on_disk, *self._served}
        for version in [v for v, s in self._states.items() if v not in keep and s.state is ModelState.UNAVAILABLE]:
            del self._states[version]
