"""The composition root: builds every object once, starts and stops them in order. Runs on: event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from . import __version__
from .asgi import create_app
from .backends.probe import cuda_device_count
from .batcher.dispatcher import Dispatcher
from .config.server import ServerSettings
from .core.clock import SystemClock
from .core.errors import ServerStopping
from .core.model import ModelState, ModelStatus
from .devices.cpu import effective_cpus
from .devices.select import resolve_device
from .http.budget import decode_limits, encode_limits, http_limits
from .http.endpoint import InferEndpoint
from .http.gate import Gate
from .http.lane import lane_protocol
from .http.listener import Listener
from .http.reception import plain_protocol
from .lifecycle.brought import BroughtFiles
from .lifecycle.catalog import Catalog
from .lifecycle.loader import Loader
from .lifecycle.manager import ModelManager
from .repository.model import RepositoryModel
from .repository.repository import ModelRepository
from .repository.watcher import Changes, start_watching, watch
from .serving.control import ControlPlane
from .serving.dataplane import DataPlane
from .serving.overview import ModelRow, model_rows
from .telemetry.loop_lag import LoopLag
from .telemetry.metrics import Metrics
from .telemetry.request_log import request_log
from .workers.lanes import Lanes

_log = logging.getLogger(__name__)


class StartReport(Protocol):
    """Who is told how the start goes."""

    def loading(self, label: str) -> None:
        """A model version has begun to load."""

    def settled(self, label: str) -> None:
        """It is ready, or has failed."""

    def started(self, rows: Sequence[ModelRow], urls: Sequence[tuple[str, str]]) -> None:
        """Everything that loads at start is settled, and the server listens."""


class Server:
    """One server: `start` it, `stop` it once. Its attributes are the doors for tests and embedding."""

    def __init__(self, settings: ServerSettings, report: StartReport) -> None:
        self.settings = settings
        self._report = report
        self._is_stopping = False
        cpus = effective_cpus()
        self.device = resolve_device(settings.device, cuda_device_count)
        clock = SystemClock(asyncio.get_running_loop())
        repository = ModelRepository(
            settings.repositories, Path(settings.model_path) if settings.model_path else None, settings.model_name
        )
        self._loaders = ThreadPoolExecutor(max(2, cpus), thread_name_prefix="kernelport-loader")
        self.dispatcher = Dispatcher(clock)
        self.catalog = Catalog()
        # At least two, so that a slow model does not keep a quick one from its turn.
        number = settings.cpu_lanes or max(2, cpus)
        self.lanes = [Lanes("cpu", number, self.dispatcher, clock)]
        if self.device.kind != "cpu":
            self.lanes.append(Lanes(str(self.device), 1, self.dispatcher, clock))
        self._brought = (
            BroughtFiles(self._loaders, settings.max_request_bytes) if settings.allow_file_override else None
        )
        self._loader = Loader(settings, self.device, cpus)
        self.manager = ModelManager(
            repository,
            self._loader.load,
            self.dispatcher,
            self.catalog,
            self._loaders,
            settings.exit_timeout_s,
            self._on_event,
        )
        faults = (self._lane_fault, self._stop_fault)
        self.control = ControlPlane(
            self.manager, self.catalog, settings.model_control_mode, settings.strict_readiness, faults, self._brought
        )
        self.gate = Gate(http_limits(settings))
        plane = DataPlane(self.catalog, clock.now_ns)
        self.endpoint = InferEndpoint(
            plane, self.gate, decode_limits(settings), encode_limits(settings), request_log(settings.slow_request_ms)
        )
        self._lag = LoopLag(clock)
        self.metrics = Metrics(
            self.control.statistics,
            version=__version__,
            statuses=self.control.index,
            gate=self.gate,
            loop_lag=self._lag,
        )
        app = create_app(self.endpoint, self.control, self.metrics, self.gate)
        protocol = (
            lane_protocol(self.endpoint, settings.root_path) if settings.infer_lane else plain_protocol(self.gate)
        )
        self.listener = Listener(app, protocol, settings)
        self._follower: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, str]:
        """Listen, then load what is to be loaded; returns the reason per model that failed."""
        settings = self.settings
        await self.listener.start()
        self._lag.start()
        for lanes in self.lanes:
            lanes.start()
        names: list[str] | None = None
        if settings.model_control_mode == "explicit" and "*" not in settings.load_model:
            names = list(settings.load_model)
        failures = await self.manager.start(names)
        if settings.model_control_mode == "poll":
            state = start_watching(self.manager.found)
            self._follower = asyncio.ensure_future(
                watch(state, self.manager.scan, self._apply, settings.repository_poll_secs, asyncio.sleep)
            )
        return failures

    async def stop(self, drain_delay_s: float) -> bool:
        """Stop in order, losing no accepted request; True if all of them were finished within the limit."""
        limit_s = self.settings.exit_timeout_s
        self._is_stopping = True
        if self._follower is not None:
            self._follower.cancel()
        self.gate.begin_drain()
        if drain_delay_s:
            _log.info("not ready any more; serving for another %g s", drain_delay_s)
            await asyncio.sleep(drain_delay_s)
        self.gate.close_admission()
        _log.info("admission is closed; %d requests are in flight", self.gate.in_flight)
        finished = await _within(limit_s, self.gate.until_idle())
        if not finished:
            _log.error("%d requests did not finish within %g s", self.gate.in_flight, limit_s)
            self._fail_rest()
        await self.listener.stop(5.0)
        unloaded = finished and await _within(limit_s, self.manager.close())
        self._lag.stop()
        ended = [lanes.stop(1.0 if finished else 0.1) for lanes in self.lanes]
        self._loaders.shutdown(wait=False, cancel_futures=True)
        if self._brought is not None:
            self._brought.close()
        self._loader.close()
        return finished and unloaded and all(ended)

    def rows(self) -> list[ModelRow]:
        """The models as lines for people."""
        return model_rows(self.control)

    def urls(self) -> list[tuple[str, str]]:
        """Where what is."""
        base = self.listener.address
        if base.startswith("unix:"):
            return [("socket", base)]
        base += self.settings.root_path
        return [
            ("infer", f"{base}/v2/models/<model>/infer"),
            ("docs", f"{base}/docs"),
            ("metrics", f"{base}/metrics"),
            ("ready", f"{base}/v2/health/ready"),
        ]

    async def _apply(self, changes: Changes, models: Mapping[str, RepositoryModel]) -> None:
        await self.manager.apply((*changes.added, *changes.changed), changes.removed)

    def _fail_rest(self) -> None:
        """The limit is over: whoever still waits is told to come back, rather than cut off."""
        error = ServerStopping("the server stopped before this request was finished")
        running = [batch for lanes in self.lanes for batch in lanes.running]
        # What runs may belong to a version that was replaced or unloaded and is only finishing.
        targets = [*(served.target for served in self.catalog.served()), *(batch.target for batch in running)]
        for target in dict.fromkeys(targets):
            self.dispatcher.fail(target, running, error)

    def _on_event(self, status: ModelStatus) -> None:
        label = f"{status.name} {status.version}"
        if status.state is ModelState.LOADING:
            self._report.loading(label)
        else:
            self._report.settled(label)

    def _lane_fault(self) -> str:
        for lanes in self.lanes:
            if not lanes.is_healthy:
                return f"{lanes.number - lanes.alive} of {lanes.number} workers on {lanes.device} are down"
        return ""

    def _stop_fault(self) -> str:
        return "the server is shutting down" if self._is_stopping else ""


async def _within(limit_s: float, work: Coroutine[None, None, object]) -> bool:
    """True if the work ends in time; it is cancelled otherwise."""
    try:
        await asyncio.wait_for(work, limit_s)
    except TimeoutError:
        return False
    return True
