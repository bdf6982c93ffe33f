"""Stopping under load: ready turns first, nothing accepted is lost, exit code 0."""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
from fixture_models import write_repository
from server_process import ServerProcess
from v2_http import body, tensor


class Load:
    """Keep-alive clients that ask until the server says no more; every answer is kept."""

    def __init__(self, url: str, clients: int) -> None:
        self.url = url
        self.answers: list[int] = []
        self.broken: list[str] = []
        self.readiness: list[int] = []
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        with httpx.Client(timeout=20) as client:
            while True:
                try:
                    status = client.post(
                        f"{self.url}/v2/models/two_out/infer", json=body(tensor("X", np.ones((1, 4))))
                    ).status_code
                except httpx.ConnectError:
                    return
                except httpx.TransportError as error:
                    self.broken.append(repr(error))
                    return
                self.answers.append(status)
                if status != 200:
                    return
                time.sleep(0.01)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(30)


def test_sigterm_under_load_serves_on_while_not_ready_and_loses_nothing(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    with ServerProcess(repository, "--host", "127.0.0.1", "--drain-delay-s", "1") as server:
        load = Load(server.url, 8)
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
        ready = httpx.get(f"{server.url}/v2/health/ready")
        assert ready.status_code == 503
        assert httpx.get(f"{server.url}/v2/health/live").status_code == 200
        during = len(load.answers)
        assert set(load.answers) == {200}
        load.join()
        assert server.process.wait(30) == 0
        assert len(load.answers) > during
        assert set(load.answers) <= {200, 503}
        # A keep-alive connection may be closed while its next request is on its way; no accepted request is cut off.
        assert not [text for text in load.broken if "ReadError" in text and "Reset" in text], load.broken


def test_an_idle_server_told_to_stop_by_hand_goes_at_once(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    with ServerProcess(repository, "--host", "127.0.0.1") as server:
        assert server.stop(signal.SIGINT) == 0
    assert "Traceback" not in server.output


def test_a_second_signal_ends_the_process_at_once(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    with ServerProcess(repository, "--host", "127.0.0.1", "--drain-delay-s", "60") as server:
        server.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while "SIGTERM" not in server.output and time.monotonic() < deadline:
            time.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 128 + signal.SIGTERM


def test_a_request_that_outlives_the_limit_is_told_to_come_back(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["slow"])
    (repository / "slow" / "config.pbtxt").write_text("max_batch_size: 1\n")
    options = ("--host", "127.0.0.1", "--drain-delay-s", "0", "--exit-timeout-s", "1")
    with ServerProcess(repository, *options) as server:
        answer: list[httpx.Response] = []
        inputs = body(tensor("ITERS", [[1_000_000]], "INT64"), tensor("X", np.ones((1, 4))))
        asking = threading.Thread(
            target=lambda: answer.append(httpx.post(f"{server.url}/v2/models/slow/infer", json=inputs, timeout=60))
        )
        asking.start()
        time.sleep(0.5)
        assert server.stop(signal.SIGTERM) == 0
        asking.join(30)
        assert answer[0].status_code == 503
        assert "stopped before" in answer[0].json()["error"]


def test_sighup_does_nothing_and_sigusr1_shows_every_stack(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    with ServerProcess(repository, "--host", "127.0.0.1") as server:
        server.process.send_signal(signal.SIGHUP)
        server.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 20
        while "kernelport/workers/lane.py" not in server.output and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "kernelport/workers/lane.py" in server.output or "app/workers/lane.py" in server.output
        assert httpx.get(f"{server.url}/v2/health/live").status_code == 200


def test_a_port_that_is_taken_is_a_sentence_not_a_traceback(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = ServerProcess(repository, "--host", "127.0.0.1", "--port", str(port))
        assert server.process.wait(60) != 0
        server.stop()
    assert f"cannot listen on 127.0.0.1:{port}" in server.output
    assert "Traceback" not in server.output


def test_a_unix_socket_serves_and_is_gone_afterwards(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["two_out"])
    path = tmp_path / "kernelport.sock"
    server = ServerProcess(repository, "--uds", str(path))
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path), retries=3), base_url="http://kernelport") as client:
        assert client.get("/v2/health/live").status_code == 200
    assert server.stop() == 0
    assert not path.exists()
    assert urlsplit(server.url).netloc == ""
