"""The whole server inside this process: what it builds, and the order in which it starts and stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.batching import Doubler
from fakes.models import put_model
from fakes.world import until
from kernelport.backends.fake import FakeBehaviour, FakeModel
from kernelport.config.server import ServerSettings
from kernelport.core.errors import ConfigError
from kernelport.server import Server
from kernelport.serving.overview import ModelRow

BODY = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}


class Report:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def loading(self, label: str) -> None:
        self.begun.append(label)

    def settled(self, label: str) -> None:
        self.ended.append(label)

    def started(self, rows: Sequence[ModelRow], urls: Sequence[tuple[str, str]]) -> None:
        raise AssertionError("only the process says that it has started")


class Running:
    """A server and a client of it, in one loop."""

    def __init__(self, settings: ServerSettings) -> None:
        self.report = Report()
        self.server = Server(settings, self.report)
        self.failures: dict[str, str] = {}
        self.is_stopped = False

    async def infer(self, model: str = "a") -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.post(f"{self.server.listener.address}/v2/models/{model}/infer", json=BODY, timeout=20)

    async def ready(self) -> int:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"{self.server.listener.address}/v2/health/ready")).status_code

    def hold(self, model: str = "a") -> tuple[FakeModel, threading.Event]:
        """Let the model's runs wait for the event."""
        copy: Any = self.server.catalog.versions(model)["1"].loaded.copies[0]
        gate = threading.Event()
        copy.behaviour = FakeBehaviour(gate=gate)
        copy.entered = threading.Semaphore(0)  # the warm-up has entered before
        return copy, gate

    async def entered(self, copy: FakeModel) -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, copy.entered.acquire, True, 20)

    async def stop(self, drain_delay_s: float = 0.0) -> bool:
        self.is_stopped = True
        return await self.server.stop(drain_delay_s)

    @property
    def names(self) -> list[str]:
        return self.server.control.model_names()


Scenario = Callable[[Running], Awaitable[None]]
Serve = Callable[..., None]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go, so that a test can look at what is left."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        put_model(tmp_path / "models", name, config="max_batch_size: 0")
    return tmp_path / "models"


@pytest.fixture
def serve(repository: Path, scratch: Path) -> Serve:
    """Runs a scenario against a started server, and stops it if the scenario did not."""

    def serve(scenario: Scenario, **settings: Any) -> None:
        options = {"models": (str(repository),), "device": "cpu", "host": "127.0.0.1", "port": 0, **settings}

        async def main() -> None:
            running = Running(ServerSettings(**options))
            running.failures = await running.server.start()
            try:
                await scenario(running)
            finally:
                if not running.is_stopped:
                    assert await running.stop()

        asyncio.run(main())
        assert list(scratch.iterdir()) == []

    return serve


def folders(scratch: Path, pattern: str) -> list[Path]:
    return list(scratch.glob(pattern))


def lane_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("kernelport-lane")]


# -- start -------------------------------------------------------------------------------------------------------------


def test_a_started_server_answers_is_ready_and_goes_without_leaving_anything(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        assert running.failures == {}
        assert sorted(running.report.begun) == ["a 1", "b 1"]
        assert sorted(running.report.ended[:2]) == ["a 1", "b 1"]
        answer = await running.infer()
        assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]
        assert await running.ready() == 200
        assert [(row.name, row.state, row.device) for row in running.server.rows()] == [
            ("a", "READY", "cpu"), ("b", "READY", "cpu"),
        ]  # fmt: skip
        assert lane_threads()
        address = running.server.listener.address
        assert await running.stop()
        assert lane_threads() == []
        async with httpx.AsyncClient() as client:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{address}/v2/health/live")

    serve(scenario)


def test_the_path_through_fastapi_answers_the_same(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        answer = await running.infer()
        assert (answer.status_code, answer.json()["outputs"][0]["data"]) == (200, [1, 2, 3, 4])

    serve(scenario, infer_lane=False)


@pytest.mark.parametrize(("asked", "loaded"), [((), []), (("b",), ["b"]), (("*",), ["a", "b"])])
def test_explicit_mode_loads_what_was_named(serve: Serve, asked: tuple[str, ...], loaded: list[str]) -> None:
    async def scenario(running: Running) -> None:
        assert running.names == loaded
        assert await running.ready() == 200
        await running.server.control.load("a")
        assert "a" in running.names

    serve(scenario, model_control_mode="explicit", load_model=asked)


def test_one_broken_model_is_told_by_name_and_the_server_serves_the_rest(serve: Serve, repository: Path) -> None:
    put_model(repository, "c", load_error="a file is missing")

    async def scenario(running: Running) -> None:
        assert list(running.failures) == ["c"]
        assert "a file is missing" in running.failures["c"]
        assert running.names == ["a", "b"]
        assert await running.ready() == 503

    serve(scenario)


def test_poll_mode_follows_the_repository(serve: Serve, repository: Path) -> None:
    async def scenario(running: Running) -> None:
        put_model(repository, "c", config="max_batch_size: 0")
        await until(lambda: running.names == ["a", "b", "c"])
        (repository / "b" / "1" / "model.fake").unlink()
        (repository / "b" / "1").rmdir()
        (repository / "b" / "model.yaml").unlink()
        (repository / "b").rmdir()
        await until(lambda: running.names == ["a", "c"])

    serve(scenario, model_control_mode="poll", repository_poll_secs=0.02)


def test_addresses_are_told_as_one_would_type_them(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        base = running.server.listener.address
        assert dict(running.server.urls()) == {
            "infer": f"{base}/models/v2/models/<model>/infer",
            "docs": f"{base}/models/docs",
            "metrics": f"{base}/models/metrics",
            "ready": f"{base}/models/v2/health/ready",
        }

    serve(scenario, root_path="/models")


def test_a_server_on_a_unix_socket_tells_its_path_and_takes_it_away(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def scenario(running: Running) -> None:
        assert running.server.urls() == [("socket", f"unix:{path}")]
        assert path.is_socket()
        assert await running.stop()
        assert not path.exists()

    serve(scenario, uds=str(path))


def test_a_server_that_cannot_listen_leaves_nothing_and_takes_nothing_away(
    serve: Serve, repository: Path, tmp_path: Path
) -> None:
    path = tmp_path / "s"

    async def scenario(running: Running) -> None:
        other = Server(running.server.settings, Report())
        with pytest.raises(ConfigError, match="another server is listening there"):
            await other.start()
        assert await other.stop(0.0)
        assert path.is_socket()
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as client:
            assert (await client.get("http://kernelport/v2/health/ready")).status_code == 200

    serve(scenario, uds=str(path))


def test_a_gpu_that_is_not_there_is_told_before_anything_is_built(
    scratch: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    async def main() -> None:
        with pytest.raises(ConfigError, match="device cuda:99 does not exist"):
            Server(ServerSettings(models=(str(repository),), device="cuda:99"), Report())

    asyncio.run(main())
    assert list(scratch.iterdir()) == []


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_worker_that_died_makes_the_server_unready_with_the_reason(serve: Serve) -> None:
    class Deadly(Doubler):
        def execute(self, inputs: Any, outputs: Any) -> Any:
            raise SystemExit("user code called exit()")

    async def scenario(running: Running) -> None:
        running.server.catalog.versions("a")["1"].target.idle_copies["cpu"] = [Deadly()]
        answer = await running.infer()
        assert answer.status_code == 500
        assert "the worker that ran this request died" in answer.json()["error"]
        assert running.server.control.why_not_ready() == "1 of 2 workers on cpu are down"
        assert await running.ready() == 503
        assert (await running.infer("b")).status_code == 200

    serve(scenario, cpu_lanes=2, strict_readiness=False)


# -- stop --------------------------------------------------------------------------------------------------------------


def test_while_it_drains_a_server_is_not_ready_and_still_serves(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        stopping = asyncio.ensure_future(running.stop(0.5))
        await asyncio.sleep(0)
        assert running.server.control.why_not_ready() == "the server is shutting down"
        assert await running.ready() == 503
        answer = await running.infer()
        assert answer.status_code == 200
        assert answer.headers["connection"] == "close"
        assert await stopping

    serve(scenario)


def test_a_stop_waits_for_what_was_accepted_and_refuses_what_comes(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        copy, gate = running.hold()
        accepted = asyncio.ensure_future(running.infer())
        await running.entered(copy)
        stopping = asyncio.ensure_future(running.stop())
        await until(lambda: not running.server.gate.is_open)
        refused = await running.infer("b")
        assert refused.status_code == 503
        assert "is stopping" in refused.json()["error"]
        assert not stopping.done()
        gate.set()
        assert (await accepted).status_code == 200
        assert await stopping
        assert copy.is_closed

    serve(scenario)


def test_when_the_limit_is_over_who_still_waits_is_told_to_come_back(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        copy, gate = running.hold()
        running_one = asyncio.ensure_future(running.infer())
        await running.entered(copy)
        waiting = asyncio.ensure_future(running.infer())
        await until(lambda: running.server.gate.in_flight == 2)
        try:
            assert not await running.stop()
            for answer in (await running_one, await waiting):
                assert answer.status_code == 503
                assert "the server stopped before this request was finished" in answer.json()["error"]
                assert answer.headers["retry-after"]
        finally:
            gate.set()

    serve(scenario, exit_timeout_s=0.1)


def test_requests_of_a_version_that_was_replaced_are_told_to_come_back_too(serve: Serve) -> None:
    async def scenario(running: Running) -> None:
        copy, gate = running.hold()
        started = asyncio.ensure_future(running.infer())
        await running.entered(copy)
        await running.server.control.load("a", {"max_batch_size": 0, "instance_group": [{"count": 2}]})
        assert (await running.infer()).status_code == 200
        try:
            assert not await running.stop()
            assert (await started).status_code == 503
        finally:
            gate.set()

    serve(scenario, exit_timeout_s=0.1, model_control_mode="explicit", load_model=("*",))


def test_a_stop_ends_the_polling_too(serve: Serve, repository: Path) -> None:
    async def scenario(running: Running) -> None:
        assert await running.stop()
        put_model(repository, "late")
        assert running.server._follower is not None
        await asyncio.wait([running.server._follower])
        assert running.server._follower.cancelled()

    serve(scenario, model_control_mode="poll", repository_poll_secs=0.02)


def test_files_that_came_with_load_requests_go_with_the_server(serve: Serve, scratch: Path) -> None:
    async def scenario(running: Running) -> None:
        content = (Path(running.server.settings.models[0]) / "a" / "1" / "model.fake").read_bytes()
        await running.server.control.load("new", {"max_batch_size": 0}, {"1/model.fake": content})
        assert (await running.infer("new")).status_code == 200
        assert folders(scratch, "kernelport-brought-*")

    serve(scenario, model_control_mode="explicit", allow_file_override=True)
