"""A real server in a process of its own, as users start it."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from fixture_models import ECHO_TYPES, write_model, write_repository

_ADDRESS = re.compile(r"https?://[^/\s]+(?=\S*/v2/)")
_START_LIMIT_S = 60
_STOP_LIMIT_S = 30

MODELS = (
    *(f"echo_{name}" for name in ECHO_TYPES), "echo_flex", "fixed_batch1", "nanmaker", "optional_input", "scalar_io",
    "state_axis1", "sub_ab", "two_in", "two_out", "varlen_sum", "weird_names",
)  # fmt: skip


@dataclass
class ServerProcess:
    """A running `kernelport serve` and everything it has printed."""

    process: subprocess.Popen[str]
    url: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """`host:port`, as Triton's clients take it."""
        return self.url.partition("://")[2]

    @property
    def output(self) -> str:
        """Standard output and error so far."""
        return "".join(self.lines)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"the server did not stop within {_STOP_LIMIT_S} s:\n{self.output}")


def launch(*arguments: str | Path) -> ServerProcess:
    """Start `kernelport serve ARGUMENTS` on a free port and wait until it says where it listens."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KERNELPORT_")}
    command = [sys.executable, "-m", "kernelport", "serve", "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--drain-delay-s", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean,
    )
    server = ServerProcess(process)
    address: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(server, address), daemon=True).start()
    try:
        server.url = address.get(timeout=_START_LIMIT_S)
    except queue.Empty:
        process.kill()
    if not server.url:
        process.wait(_STOP_LIMIT_S)
        pytest.fail(f"the server did not start (exit code {process.returncode}):\n{server.output}")
    return server


def _read(server: ServerProcess, address: queue.SimpleQueue[str]) -> None:
    """Keep the pipe empty; the first URL is the address, the end of the output without one is none."""
    assert server.process.stdout is not None
    for line in server.process.stdout:
        server.lines.append(line)
        found = _ADDRESS.search(line)
        if found:
            address.put(found[0])
    address.put("")


Serve = Callable[..., ServerProcess]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers with any arguments; each is stopped after the test and must end well."""
    servers: list[ServerProcess] = []

    def start(*arguments: str | Path) -> ServerProcess:
        servers.append(launch(*arguments))
        return servers[-1]

    yield start
    codes = [one.stop() for one in servers]
    assert codes == [0] * len(servers), "\n".join(one.output for one in servers)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that `server` serves; `versions` has the versions 1 and 3."""
    folder = write_repository(tmp_path_factory.mktemp("models"), MODELS)
    for version in (1, 3):
        path = folder / "versions" / str(version) / "model.onnx"
        path.parent.mkdir(parents=True)
        path.write_bytes(write_model(folder, "fixed_batch1").read_bytes())
    (folder / "versions" / "model.yaml").write_text("version_policy: {all: {}}\n")
    return folder


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[ServerProcess]:
    """One server for all tests that leave it as it was."""
    one = launch(models)
    yield one
    code = one.stop()
    assert code == 0, one.output


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    """A plain HTTP client for that server."""
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client
