"""A loader over a repository in `tmp_path`, as fixtures; nothing may be left of it at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from kernelport.config.server import ServerSettings
from kernelport.devices.device import CPU, Device
from kernelport.lifecycle.loaded import LoadedVersion
from kernelport.lifecycle.loader import Loader
from kernelport.repository.repository import ModelRepository

Load = Callable[..., LoadedVersion]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where private copies go, so that a test can look at what is left."""
    folder = tmp_path / ".scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def load(tmp_path: Path, scratch: Path) -> Iterator[Load]:
    """Loads a model of the repository `tmp_path`; everything is closed at the end, and then nothing is left."""
    loaders: list[Loader] = []
    versions: list[LoadedVersion] = []

    def load(name: str, version: str = "1", device: Device = CPU, cpus: int = 2, **settings: Any) -> LoadedVersion:
        loaders.append(Loader(ServerSettings(**settings), device, cpus))
        versions.append(loaders[-1].load(ModelRepository([tmp_path]).scan()[name], version))
        return versions[-1]

    yield load
    for one in versions:
        one.close()
    for loader in loaders:
        assert list(loader._scratch.iterdir()) == []
        loader.close()
    assert list(scratch.iterdir()) == []


def configure(folder: Path, name: str, text: str) -> None:
    (folder / name / "model.yaml").write_text(dedent(text))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
