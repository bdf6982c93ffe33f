"""Loading, reloading and unloading as seen from outside."""

from __future__ import annotations

import base64
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from fixture_models import build, write_external, write_repository
from server_process import ServerProcess
from v2_http import body, infer, outputs, tensor

ROW = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)


def index(url: str) -> dict[tuple[str, str], tuple[str, str]]:
    lines = httpx.post(f"{url}/v2/repository/index").raise_for_status().json()
    return {(one["name"], one.get("version", "")): (one.get("state", ""), one.get("reason", "")) for one in lines}


def load(url: str, name: str, **parameters: str) -> httpx.Response:
    content = {"parameters": parameters} if parameters else {}
    return httpx.post(f"{url}/v2/repository/models/{name}/load", json=content, timeout=60)


def unload(url: str, name: str) -> httpx.Response:
    return httpx.post(f"{url}/v2/repository/models/{name}/unload", json={}, timeout=60)


def until(condition: Callable[[], bool], limit_s: float = 30) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


class Traffic:
    """Asks the unversioned URL all the time, and keeps every answer's status and version."""

    def __init__(self, url: str, model: str) -> None:
        self.statuses: list[int] = []
        self.versions: list[str] = []
        self._stop = threading.Event()
        self._url, self._model = url, model
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client() as client:
            while not self._stop.is_set():
                answer = client.post(f"{self._url}/v2/models/{self._model}/infer", json=body(tensor("X", ROW)))
                self.statuses.append(answer.status_code)
                if answer.status_code == 200:
                    self.versions.append(answer.json()["model_version"])
                time.sleep(0.005)


@pytest.fixture
def explicit(tmp_path: Path) -> Iterator[tuple[ServerProcess, Path]]:
    repository = write_repository(tmp_path / "models", ["echo_fp32", "two_out", "heavy"])
    options = ("--model-control-mode", "explicit", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as server:
        yield server, repository


def test_explicit_mode_starts_empty_and_ready_and_loads_on_request(explicit: tuple[ServerProcess, Path]) -> None:
    server, _ = explicit
    url = server.url
    assert httpx.get(f"{url}/v2/health/ready").status_code == 200
    assert infer(url, "echo_fp32", tensor("X", ROW)).status_code == 404
    assert index(url)[("echo_fp32", "")] == ("", "")
    answer = load(url, "echo_fp32")
    assert (answer.status_code, answer.content) == (200, b"")
    assert outputs(infer(url, "echo_fp32", tensor("X", ROW)))["Y"].tolist() == ROW.tolist()
    assert unload(url, "echo_fp32").status_code == 200
    assert index(url)[("echo_fp32", "1")] == ("UNAVAILABLE", "unloaded")
    for path in ("", "/ready", "/config", "/stats"):
        assert httpx.get(f"{url}/v2/models/echo_fp32{path}").status_code in (400, 404)
    assert unload(url, "never_heard_of").status_code == 200
    assert load(url, "never_heard_of").status_code in (400, 404)
    assert httpx.get(f"{url}/v2/health/ready").status_code == 200


def test_unload_load_and_infer_follow_each_other_without_a_gap(explicit: tuple[ServerProcess, Path]) -> None:
    server, _ = explicit
    for _ in range(10):
        assert load(server.url, "heavy").status_code == 200
        assert infer(server.url, "heavy", tensor("X", ROW)).status_code == 200
        assert unload(server.url, "heavy").status_code == 200
        assert index(server.url)[("heavy", "1")] == ("UNAVAILABLE", "unloaded")


def test_a_broken_load_fails_the_same_way_each_time_until_it_is_mended(explicit: tuple[ServerProcess, Path]) -> None:
    server, repository = explicit
    file = repository / "heavy" / "1" / "model.onnx"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    reasons = set()
    for _ in range(3):
        answer = load(server.url, "heavy")
        assert answer.status_code == 400
        reasons.add(answer.json()["error"])
        assert index(server.url)[("heavy", "1")][0] == "UNAVAILABLE"
        assert httpx.get(f"{server.url}/v2/health/ready").status_code == 503
    assert len(reasons) == 1
    file.write_bytes(whole)
    assert load(server.url, "heavy").status_code == 200
    assert httpx.get(f"{server.url}/v2/health/ready").status_code == 200


def test_a_file_overwritten_in_place_changes_nothing_until_a_load(explicit: tuple[ServerProcess, Path]) -> None:
    server, repository = explicit
    load(server.url, "echo_fp32")
    file = repository / "echo_fp32" / "1" / "model.onnx"
    file.write_bytes(file.read_bytes()[:10])
    assert outputs(infer(server.url, "echo_fp32", tensor("X", ROW)))["Y"].tolist() == ROW.tolist()
    assert load(server.url, "echo_fp32").status_code == 400
    assert outputs(infer(server.url, "echo_fp32", tensor("X", ROW)))["Y"].tolist() == ROW.tolist()
    state, reason = index(server.url)[("echo_fp32", "1")]
    assert state == "READY"
    assert "reload failed" in reason
    assert httpx.get(f"{server.url}/v2/health/ready").status_code == 200


def test_a_reload_with_another_configuration_never_shows_to_clients(explicit: tuple[ServerProcess, Path]) -> None:
    server, _ = explicit
    load(server.url, "echo_fp32")
    with Traffic(server.url, "echo_fp32") as traffic:
        for count in (1, 2, 3):
            group = {"count": count, "kind": "KIND_CPU"}
            config = json.dumps({"max_batch_size": 8, "instance_group": [group]})
            assert load(server.url, "echo_fp32", config=config).status_code == 200
    assert set(traffic.statuses) == {200}
    shown = httpx.get(f"{server.url}/v2/models/echo_fp32/config").json()
    assert shown["instance_group"][0]["count"] == 3
    load(server.url, "echo_fp32")
    assert httpx.get(f"{server.url}/v2/models/echo_fp32/config").json()["instance_group"][0]["count"] == 3
    unload(server.url, "echo_fp32")
    load(server.url, "echo_fp32")
    assert httpx.get(f"{server.url}/v2/models/echo_fp32/config").json()["instance_group"][0]["count"] == 1


@pytest.mark.parametrize(
    "path", ["../../../tmp/kp_pwn", "/tmp/kp_pwn", "1/../../../tmp/kp_pwn", "..\\..\\x", "1/a\0b", "1"]
)
def test_files_in_a_load_request_cannot_leave_their_folder(tmp_path: Path, path: str) -> None:
    repository = write_repository(tmp_path / "models", ["echo_fp32"])
    options = ("--model-control-mode", "explicit", "--allow-file-override", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as server:
        answer = load(server.url, "m", config="{}", **{f"file:{path}": base64.b64encode(b"a").decode()})
        assert answer.status_code == 400
        assert not Path("/tmp/kp_pwn").exists()


def test_a_model_can_come_with_the_load_request_where_that_is_allowed(explicit: tuple[ServerProcess, Path]) -> None:
    server, repository = explicit
    content = base64.b64encode(build("two_out").SerializeToString()).decode()
    refused = load(server.url, "brought", config="{}", **{"file:1/model.onnx": content})
    assert refused.status_code in (400, 501)
    options = ("--model-control-mode", "explicit", "--allow-file-override", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as other:
        assert load(other.url, "brought", config="{}", **{"file:1/model.onnx": content}).status_code == 200
        assert outputs(infer(other.url, "brought", tensor("X", ROW)))["Y1"].tolist() == (-ROW).tolist()


def test_eight_loads_at_once_load_once(explicit: tuple[ServerProcess, Path]) -> None:
    server, _ = explicit
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(load(server.url, "heavy").status_code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    assert infer(server.url, "heavy", tensor("X", ROW)).status_code == 200


def test_load_and_unload_need_explicit_mode(tiny_server: ServerProcess) -> None:
    for answer in (load(tiny_server.url, "tiny"), unload(tiny_server.url, "tiny")):
        assert answer.status_code == 503
        assert "explicit" in answer.json()["error"]


def test_polling_never_serves_half_a_version_and_follows_once_it_is_whole(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["echo_fp32"])
    options = ("--model-control-mode", "poll", "--repository-poll-secs", "0.4", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as server, Traffic(server.url, "echo_fp32") as traffic:
        whole = (repository / "echo_fp32" / "1" / "model.onnx").read_bytes()
        folder = repository / "echo_fp32" / "2"
        folder.mkdir()
        with open(folder / "model.onnx", "wb") as file:
            step = len(whole) // 6 + 1
            for start in range(0, len(whole), step):
                file.write(whole[start : start + step])
                file.flush()
                time.sleep(0.25)
        until(lambda: "2" in traffic.versions[-1:])
        assert set(traffic.statuses) == {200}
        assert traffic.versions == sorted(traffic.versions)
        write_repository(repository, ["two_out"])
        until(lambda: infer(server.url, "two_out", tensor("X", ROW)).status_code == 200)
        shutil.rmtree(repository / "two_out")
        until(lambda: infer(server.url, "two_out", tensor("X", ROW)).status_code == 404)


def test_polling_looks_again_at_a_broken_model_after_any_change(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["echo_fp32", "two_out"])
    config = repository / "two_out" / "config.pbtxt"
    config.write_text("max_batch_size: 8\ninput [ { name: ")
    options = ("--model-control-mode", "poll", "--repository-poll-secs", "0.3", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as server:
        state, reason = index(server.url)[("two_out", "1")]
        assert state == "UNAVAILABLE"
        assert "config.pbtxt" in reason
        assert httpx.get(f"{server.url}/v2/health/ready").status_code == 503
        config.write_text("max_batch_size: 8\n")
        until(lambda: httpx.get(f"{server.url}/v2/health/ready").status_code == 200)
        assert infer(server.url, "two_out", tensor("X", ROW)).status_code == 200


def test_one_broken_model_neither_stops_the_server_nor_hides(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["echo_fp32"])
    broken = repository / "truncated" / "1"
    broken.mkdir(parents=True)
    (broken / "model.onnx").write_bytes(build("heavy").SerializeToString()[:5000])
    write_external(repository / "escape" / "1", "../../outside.bin")
    with ServerProcess(repository, "--host", "127.0.0.1") as server:
        assert infer(server.url, "echo_fp32", tensor("X", ROW)).status_code == 200
        lines = index(server.url)
        assert lines[("truncated", "1")][0] == "UNAVAILABLE"
        assert lines[("truncated", "1")][1]
        assert "outside" in lines[("escape", "1")][1] or "inside the model" in lines[("escape", "1")][1]
        assert httpx.get(f"{server.url}/v2/health/ready").status_code == 503
        assert httpx.get(f"{server.url}/v2/health/live").status_code == 200
        assert "truncated" in server.output
    strict = ServerProcess(repository, "--host", "127.0.0.1", "--exit-on-error")
    assert strict.process.wait(60) == 1
    strict.stop()
    assert "truncated" in strict.output
    with ServerProcess(repository, "--host", "127.0.0.1", "--no-strict-readiness") as lax:
        assert httpx.get(f"{lax.url}/v2/health/ready").status_code == 200


def test_only_whole_positive_numbers_are_versions(tmp_path: Path) -> None:
    repository = write_repository(tmp_path / "models", ["echo_fp32"])
    model = repository / "echo_fp32"
    for name in ("10", "01", "-1", "1.5", "1_0", " 3", "２", "model", ".ipynb_checkpoints", "lost+found"):
        shutil.copytree(model / "1", model / name)
    (model / "model.yaml").write_text("version_policy: {all: {}}\n")
    with ServerProcess(repository, "--host", "127.0.0.1") as server:
        assert httpx.get(f"{server.url}/v2/models/echo_fp32").json()["versions"] == ["1", "10"]
        for version, status in (("1", 200), ("10", 200), ("2", 404), ("01", 404), ("abc", 404), ("-1", 404)):
            answer = httpx.post(
                f"{server.url}/v2/models/echo_fp32/versions/{version}/infer", json=body(tensor("X", ROW))
            )
            assert answer.status_code == status, version
