"""KernelPort itself, as a user starts it: a model repository without any configuration."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ..models import DEFAULT_MAX_BATCH_SIZE, BenchModel
from ..workloads import Encoding
from .base import Command, Launch, Server


def write_repository(repository: Path, model: BenchModel, file: Path) -> None:
    """Adds one model; it gets a configuration only where the workload fixes the batch size."""
    version = repository / model.name / "1"
    version.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, version / "model.onnx")
    if model.max_batch_size != DEFAULT_MAX_BATCH_SIZE:
        (repository / model.name / "model.yaml").write_text(f"max_batch_size: {model.max_batch_size}\n")


class KernelPort(Server):
    """The server of this repository, optionally with other settings than the defaults."""

    def __init__(
        self, name: str = "kernelport", flags: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.about = "this repository" + (f", {' '.join(flags)}" if flags else "")
        self._flags = flags
        self._env = dict(env or {})

    def refuses(self, model: BenchModel, encoding: Encoding) -> str:
        return ""

    def command(self, launch: Launch) -> Command:
        repository = launch.directory / "repository"
        write_repository(repository, launch.model, launch.file)
        arguments = [self.python, "-m", "kernelport", "serve", str(repository), "--host", "127.0.0.1"]
        return Command([*arguments, "--port", str(launch.port), *self._flags], self._env)
