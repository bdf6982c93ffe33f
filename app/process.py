"""The life of a server process: signals, exit codes. Runs on: main thread."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from typing import Any

from .config.server import ServerSettings
from .server import Server, StartReport
from .telemetry.dumps import enable_crash_dumps, install_stack_dump
from .telemetry.logging import configure_logging

_log = logging.getLogger(__name__)

# A lane that comes back from native code waits for the GIL up to this long; the default of 5 ms shows in the p99.
_SWITCH_INTERVAL_S = 0.0005
# A batch of requests alone holds more than the default of 700 objects, so every batch would start a collection.
_GC_THRESHOLDS = (10_000, 20, 50)


def run(settings: ServerSettings, report: StartReport) -> int:
    """Serve until a signal says stop; returns the exit code.

    SIGTERM: drain delay, drain, exit 0. SIGINT: the same without the delay. A second signal ends the process at once.
    SIGHUP is ignored, SIGUSR1 writes all stacks to stderr. Raises ConfigError for what a user must mend first.
    """
    configure_logging(settings.log_level, settings.log_format, settings.access_log)
    enable_crash_dumps()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=_loop_factory) as runner:
        code = runner.run(_live(settings, report))
        if code >= 0:
            _leave_if_threads_linger(code)
    return code


async def _live(settings: ServerSettings, report: StartReport) -> int:
    loop = asyncio.get_running_loop()
    stop = _Signals(loop)
    install_stack_dump(loop)
    server = Server(settings, report)
    starting = asyncio.ensure_future(server.start())
    waited: tuple[asyncio.Future[Any], ...] = (starting, stop.received)
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    failed = False
    if starting.done():
        failures = await _started(server, starting)
        report.started(server.rows(), server.urls())
        failed = bool(failures) and settings.exit_on_error
        for name, reason in failures.items() if failed else ():
            _log.critical("stopping because model '%s' failed to load (--exit-on-error): %s", name, reason)
        if not failed:
            _spare_the_collector()
            await stop.received
    else:
        _log.info("told to stop while models are loading")
    is_interactive = stop.received.done() and stop.received.result() is signal.SIGINT
    idle_start = failed or not starting.done() or is_interactive
    await server.stop(0.0 if idle_start else settings.drain_delay_s)
    starting.cancel()
    return 1 if failed else 0


async def _started(server: Server, starting: asyncio.Task[dict[str, str]]) -> dict[str, str]:
    """The reason per model that failed; a server that could not start at all is taken down first."""
    try:
        return await starting
    except BaseException:
        await server.stop(0.0)
        raise


def _spare_the_collector() -> None:
    """What was built at start lives for ever, and requests leave no cycles: look for garbage less, and not there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


class _Signals:
    """The first signal to stop is a future; the second ends the process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.received: asyncio.Future[signal.Signals] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, _log.info, "SIGHUP is ignored")

    def _stop(self, number: signal.Signals) -> None:
        if not self.received.done():
            _log.info("%s: stopping; another signal ends the process at once", number.name)
            self.received.set_result(number)
            return
        _log.critical("%s again: ending at once", number.name)
        _end(128 + number)


def _leave_if_threads_linger(code: int) -> None:
    """A load or a model run that nobody can stop must not keep the process; what must be flushed is flushed here."""
    lingering = [thread.name for thread in threading.enumerate() if thread.name.startswith("kernelport-")]
    if lingering:
        _log.info("ending without waiting for %s", ", ".join(lingering))
        _end(code)


def _end(code: int) -> None:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _loop_factory() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()
