"""Measures servers side by side: all are started, then one window each in turn, again and again.

Machines drift (neighbours, clocks, caches). Alternating windows spread that over all servers alike, which is why a
ratio of medians from one run means something where two runs on their own do not.
"""

from __future__ import annotations

import http.client
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from .console import Say
from .models import MODELS, model_file
from .process import ServerProcess, free_port, machine_busy_s, wait_until
from .servers.base import QUIET_ENVIRONMENT, Launch, Server
from .servers.url import AnyUrl
from .workloads import RequestBody, Workload, decode_answer, encode_request, expected_answer, sample_rows
from .wrk import Window, run_window, write_script

RESULTS = Path(__file__).resolve().parent / "results"
START_TIMEOUT_S = 120.0
SETTLE_LIMIT_S = 15.0
SETTLE_PROBE_S = 0.25
SETTLED_CORES = 0.3
SERVER_CORE = 0
LOAD_CORE = 1


class WrongAnswer(ValueError):
    """The server answered something else than onnxruntime."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is measured."""

    windows: int = 5
    seconds: float = 4.0
    warmup_seconds: float = 2.0
    pinned: bool = True

    def describe(self) -> str:
        where = "server on core 0, wrk on core 1" if self.pinned else "server and wrk share both cores"
        return f"{where}; medians of {self.windows} alternating windows of {self.seconds:g} s"


@dataclass(slots=True)
class ServerResult:
    """The windows of one server in one run."""

    server: str
    version: str
    windows: list[Window] = field(default_factory=list)
    foreign_cpu: list[float] = field(default_factory=list)  # cores busy with neither this server nor wrk
    failure: str = ""


@dataclass(slots=True)
class Running:
    """A started server together with what one window of it needs."""

    result: ServerResult
    server: Server
    url: str
    process: ServerProcess | None


def ask(url: str, body: RequestBody, timeout_s: float = 30.0) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("POST", parts.path, body.content, body.headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def check_answer(url: str, body: RequestBody, workload: Workload) -> None:
    """A fast wrong answer is worth nothing: the server must agree with onnxruntime before it is measured."""
    model = MODELS[workload.model]
    expected = expected_answer(model_file(model.name, RESULTS / "models"), model)
    status, headers, content = ask(url, body)
    if status != 200:
        raise WrongAnswer(f"{url} answered {status}: {content[:300]!r}")
    answer = decode_answer(content, headers)
    if answer.shape != expected.shape or not np.allclose(answer, expected, rtol=1e-4, atol=1e-5):
        raise WrongAnswer(f"{url} answered {answer}, onnxruntime answers {expected}")


@contextmanager
def started(server: Server, workload: Workload, plan: Plan, body: RequestBody, scratch: Path) -> Iterator[Running]:
    """One server, ready and checked; ended on exit."""
    result = ServerResult(server.name, server.version())
    if isinstance(server, AnyUrl):
        url = server.url + server.infer_path(workload.model)
        check_answer(url, body, workload)
        yield Running(result, server, url, None)
        return
    directory = scratch / server.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    port = free_port()
    launch = Launch(MODELS[workload.model], model_file(workload.model, RESULTS / "models"), port, directory)
    command = server.command(launch)
    core = SERVER_CORE if plan.pinned else None
    environment = {**QUIET_ENVIRONMENT, **command.env}
    process = ServerProcess(command.arguments, environment, directory / "log.txt", directory, core)
    try:
        url = f"http://127.0.0.1:{port}{server.infer_path(workload.model)}"
        wait_until(lambda: check_answer(url, body, workload), process, START_TIMEOUT_S)
        yield Running(result, server, url, process)
        process.check_alive()
    finally:
        process.stop()


def measure_window(running: Running, workload: Workload, script: Path, plan: Plan, seconds: float) -> Window:
    """One window; also notes how much of the machine was busy with something else."""
    process = running.process
    if process is not None:
        process.resume()
    busy, own, began = machine_busy_s(), process.cpu_s() if process else 0.0, time.monotonic()
    window = run_window(running.url, script, workload.connections, seconds, LOAD_CORE if plan.pinned else None)
    elapsed = time.monotonic() - began
    if process is not None:
        # The generator's own share is what its core can give at most; the rest of the machine should be idle.
        used = process.cpu_s() - own
        window = replace(window, server_cpu_us=used / window.requests * 1e6 if window.requests else 0.0)
        rest = machine_busy_s() - busy - used - window.load_cpu_s
        running.result.foreign_cpu.append(max(0.0, rest / elapsed))
        settle(process)
        if running.server.busy_when_idle:
            process.pause()
    return window


def settle(process: ServerProcess) -> None:
    """Waits until the server has done with requests that wrk gave up at the end of the window.

    Else that work would fall into the next server's window, or into this one's own next.
    """
    deadline = time.monotonic() + SETTLE_LIMIT_S
    while time.monotonic() < deadline:
        before = process.cpu_s()
        time.sleep(SETTLE_PROBE_S)
        if process.cpu_s() - before < SETTLED_CORES * SETTLE_PROBE_S:
            return


def measure(workload: Workload, servers: Sequence[Server], plan: Plan, say: Say) -> list[ServerResult]:
    """Runs one workload against all servers in alternating windows. A server that fails is reported, not fatal."""
    model = MODELS[workload.model]
    body = encode_request(model, sample_rows(model), workload.encoding)
    results: list[ServerResult] = []
    with tempfile.TemporaryDirectory(prefix="kernelport-bench-") as scratch_name, ExitStack() as stack:
        scratch = Path(scratch_name)
        script = write_script(body, scratch, workload.name)
        fleet: list[Running] = []
        for server in servers:
            refusal = server.refuses(model, workload.encoding)
            if refusal:
                results.append(ServerResult(server.name, "", failure=refusal))
                continue
            say(f"{workload.name}: starting {server.name}")
            try:
                running = stack.enter_context(started(server, workload, plan, body, scratch))
                measure_window(running, workload, script, plan, plan.warmup_seconds)
            except Exception as error:
                say(f"{workload.name}: {server.name} failed: {error}")
                results.append(ServerResult(server.name, "", failure=f"{type(error).__name__}: {error}"))
                continue
            running.result.foreign_cpu.clear()
            fleet.append(running)
            results.append(running.result)
        for number in range(plan.windows):
            for running in fleet:
                window = measure_window(running, workload, script, plan, plan.seconds)
                running.result.windows.append(window)
                say(
                    f"{workload.name} {number + 1}/{plan.windows} {running.server.name}: {window.requests_per_s:,.0f}/s"
                )
    return results
