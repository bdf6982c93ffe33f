"""Servers in processes of their own, as users start them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fixture_models import ECHO_TYPES, write_model, write_repository
from server_process import ServerProcess

MODELS = (
    *(f"echo_{name}" for name in ECHO_TYPES), "echo_flex", "fixed_batch1", "nanmaker", "optional_input", "scalar_io",
    "state_axis1", "sub_ab", "two_in", "two_out", "varlen_sum", "weird_names",
)  # fmt: skip

Serve = Callable[..., ServerProcess]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers with any arguments of `kernelport serve`; they are stopped after the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(ServerProcess(*arguments))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that `server` serves; of `versions` it has 1 and 3."""
    folder = write_repository(tmp_path_factory.mktemp("models"), MODELS)
    content = write_model(tmp_path_factory.mktemp("model"), "echo_fp32").read_bytes()
    for version in ("1", "3"):
        (folder / "versions" / version).mkdir(parents=True)
        (folder / "versions" / version / "model.onnx").write_bytes(content)
    (folder / "versions" / "model.yaml").write_text("version_policy: {all: {}}\n")
    return folder


@pytest.fixture(scope="session", params=["--infer-lane", "--no-infer-lane"], ids=["lane", "fastapi"])
def server(models: Path, request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """One server for all tests that leave it as it was; a second one whose inferences go through FastAPI."""
    with ServerProcess(models, request.param) as one:
        yield one
