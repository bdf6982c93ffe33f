"""A server process from its start to its exit code, where the end is not the usual one."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes.models import put_model
from fixture_models import write_model
from server_process import ServerProcess

ENDLESS = """\
max_batch_size: 0
model_warmup:
- name: endless
  inputs:
    ITERS: {dims: [1, 1], input_data_file: iterations.bin}
    X: {dims: [1, 4], zero_data: true}
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """The process's folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def start(scratch: Path, *arguments: str | Path) -> ServerProcess:
    return ServerProcess(*arguments, "--host", "127.0.0.1", "--device", "cpu", environment={"TMPDIR": str(scratch)})


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)


def endless_model(folder: Path) -> None:
    """A model whose warm-up does not end in the time of a test."""
    write_model(folder, "slow")
    (folder / "slow" / "model.yaml").write_text(ENDLESS)
    (folder / "slow" / "warmup").mkdir()
    (folder / "slow" / "warmup" / "iterations.bin").write_bytes(np.array([10**9], np.int64).tobytes())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_told_to_stop_while_it_loads_goes_without_waiting_for_the_load(
    tmp_path: Path, scratch: Path, number: signal.Signals
) -> None:
    endless_model(tmp_path / "models")
    server = start(scratch, tmp_path / "models", "--exit-timeout-s", "0.5", "--drain-delay-s", "60")
    until(lambda: list(scratch.glob("kernelport-models-*/*/**/model.onnx")), "the private copy of the model")
    assert server.stop(number) == 0
    assert "told to stop while models are loading" in server.output
    assert "ending without waiting for kernelport-loader" in server.output
    assert "Traceback" not in server.output
    assert list(scratch.iterdir()) == []


def test_a_server_that_must_not_start_with_a_broken_model_exits_with_1_and_leaves_nothing(
    tmp_path: Path, scratch: Path
) -> None:
    put_model(tmp_path / "models", "good")
    put_model(tmp_path / "models", "bad", load_error="a file is missing")
    server = start(scratch, tmp_path / "models", "--exit-on-error", "--drain-delay-s", "60")
    assert server.process.wait(60) == 1
    server.stop()
    assert "stopping because model 'bad' failed to load (--exit-on-error)" in server.output
    assert "a file is missing" in server.output
    assert "Traceback" not in server.output
    assert list(scratch.iterdir()) == []


def test_a_server_that_cannot_listen_leaves_nothing_behind(tmp_path: Path, scratch: Path) -> None:
    put_model(tmp_path / "models", "m")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = start(scratch, tmp_path / "models", "--port", str(taken.getsockname()[1]))
        assert server.process.wait(60) == 2
        server.stop()
    assert "cannot listen on 127.0.0.1" in server.output
    assert list(scratch.iterdir()) == []
