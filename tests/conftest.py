"""What all tests share: no telemetry, patient property tests, GPU tests only where there is a GPU."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from server_process import ServerProcess

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# A deadline would make a property test fail for a busy machine, not for a wrong answer.
hypothesis.settings.register_profile("kernelport", deadline=None)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "kernelport"))


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """The folder with pyproject.toml."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def tiny_server() -> Iterator[ServerProcess]:
    """A server process with the built-in tiny model, shared by tests that only ask it things."""
    with ServerProcess("--device", "cpu", "--host", "127.0.0.1") as running:
        yield running


@pytest.fixture(autouse=True)
def _clean_settings_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Server settings of the developer's shell must not reach the tests."""
    for name in list(os.environ):
        if name.startswith("KERNELPORT_"):
            monkeypatch.delenv(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a GPU are skipped, not failed, where there is none."""
    if Path("/dev/nvidia0").exists():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)
