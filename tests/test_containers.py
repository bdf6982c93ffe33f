"""Dockerfile and compose file: clean, valid, and their entry point really serves. No container engine is needed."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from server_process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent


def _instructions(stage: str) -> list[tuple[str, str]]:
    """The Dockerfile's instructions of one stage and of those it is built from, oldest first."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    stages: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            current = []
            stages[name] = (base, current)
        elif word and not word.startswith("#"):
            current.append((word, rest.strip()))
    base, own = stages[stage]
    return [*(_instructions(base) if base in stages else []), *own]


def _last(stage: str, word: str) -> str:
    return [rest for name, rest in _instructions(stage) if name == word][-1]


def _environment(stage: str) -> dict[str, str]:
    pairs = " ".join(rest for name, rest in _instructions(stage) if name == "ENV").split()
    return dict(pair.split("=", 1) for pair in pairs)


def test_hadolint_finds_nothing() -> None:
    tool = TOOLS / "hadolint"
    if not tool.exists():
        pytest.skip("hadolint is not installed")
    result = subprocess.run([tool, ROOT / "Dockerfile"], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout
    assert result.stdout == ""


def test_compose_file_is_valid_by_the_compose_specification() -> None:
    tool = TOOLS / "check-jsonschema"
    if not tool.exists():
        pytest.skip("check-jsonschema is not installed")
    command = [str(tool), "--builtin-schema", "vendor.compose-spec", str(ROOT / "docker-compose.yml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def _compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return parsed


def test_compose_asks_for_a_gpu_only_in_the_gpu_profile() -> None:
    services = _compose()["services"]
    assert "deploy" not in services["cpu"]
    assert "profiles" not in services["cpu"]
    assert services["gpu"]["profiles"] == ["gpu"]
    (device,) = services["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]


def test_compose_builds_the_targets_of_the_dockerfile_and_publishes_the_port() -> None:
    for name, service in _compose()["services"].items():
        assert service["build"]["target"] == name
        assert service["image"] == f"kernelport:{name}"
        assert service["ports"][0].endswith(f":{_environment(name)['KERNELPORT_PORT']}")
        assert _last(name, "EXPOSE") == _environment(name)["KERNELPORT_PORT"]


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_run_as_an_ordinary_user_with_health_check_and_plain_entry_point(target: str) -> None:
    assert _last(target, "USER").split(":")[0] not in ("root", "0")
    assert json.loads(_last(target, "ENTRYPOINT"))[0] == "kernelport"
    assert "/v2/health/live" in _last(target, "HEALTHCHECK")
    assert f"[{target}]" in " ".join(rest for name, rest in _instructions(f"{target}-packages") if name == "RUN")


def test_build_context_holds_all_that_is_copied() -> None:
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    for stage in ("wheel", "cpu-packages", "gpu-packages", "cpu", "gpu"):
        for name, rest in _instructions(stage):
            if name == "COPY" and not rest.startswith("--from"):
                assert set(rest.split()[:-1]) <= kept


def test_the_entry_point_of_the_cpu_image_serves_as_documented(tmp_path: Path) -> None:
    """`docker run -p 8080:8080 kernelport:cpu --device cpu`, without the container."""
    entry_point = json.loads(_last("cpu", "ENTRYPOINT"))
    health_check = json.loads(_last("cpu", "HEALTHCHECK").partition("CMD ")[2])
    settings = {name: value for name, value in _environment("cpu").items() if name.startswith("KERNELPORT_")}
    command = (sys.executable, "-m", *entry_point)
    with ServerProcess("--device", "cpu", environment={**settings, "KERNELPORT_PORT": "0"}, command=command) as server:
        answer = httpx.get(f"{server.url}/v2/models/tiny/ready")
        assert answer.status_code == 200
        port = server.url.rpartition(":")[2]
        result = subprocess.run(
            [sys.executable, *health_check[1:]],
            env={**os.environ, "KERNELPORT_PORT": port},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        assert server.stop(signal.SIGINT) == 0
    assert "serving the built-in tiny model" in server.output
    gone = subprocess.run(
        [sys.executable, *health_check[1:]],
        env={**os.environ, "KERNELPORT_PORT": port},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert gone.returncode != 0
