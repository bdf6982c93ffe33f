"""What a server under test is: where it comes from, how it is started, and which encodings it speaks."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..models import BenchModel
from ..workloads import Encoding

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "envs"
INSIDE = Path(__file__).resolve().parent / "inside"

# One thread per native library: the servers are pinned to one core, and a pool would only fight over it.
QUIET_ENVIRONMENT = {
    "ORT_DISABLE_TELEMETRY": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class NotInstalled(Exception):
    """The server has no environment yet."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a server: the model it serves, its port, and a scratch directory of its own."""

    model: BenchModel
    file: Path
    port: int
    directory: Path


@dataclass(frozen=True, slots=True)
class Command:
    """The command line that starts a server, and the environment variables that it needs besides ours."""

    arguments: list[str]
    env: Mapping[str, str] = field(default_factory=dict)


class Server(ABC):
    """A server that the benchmark knows how to install and start."""

    name: str
    about: str
    requirements: tuple[str, ...] = ()  # empty: it runs in the interpreter that runs the benchmark
    encodings: frozenset[Encoding] = frozenset({"json"})
    # A server that works while nobody asks would disturb the others' windows; it is stopped (SIGSTOP) meanwhile.
    busy_when_idle = False

    @property
    def environment(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def python(self) -> str:
        if not self.requirements:
            return sys.executable
        interpreter = self.environment / "bin" / "python"
        if not interpreter.exists():
            raise NotInstalled(f"{self.name} is not installed: python -m benchmarks install {self.name}")
        return str(interpreter)

    def install(self) -> bool:
        """Makes the server's own environment with exactly its requirements; False when it stands already."""
        stamp = self.environment / "requirements.txt"
        wanted = "\n".join(self.requirements)
        if not self.requirements or (stamp.exists() and stamp.read_text() == wanted):
            return False
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.environment)], check=True)
        pip = [str(self.environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, *self.requirements], check=True, env={**os.environ, "PIP_NO_INPUT": "1"})
        stamp.write_text(wanted)
        return True

    def version(self) -> str:
        """Name and version of the distribution under test, as pip knows it."""
        distribution = self.requirements[0].split("==")[0] if self.requirements else "kernelport"
        script = f"import importlib.metadata as m; print(m.version({distribution!r}))"
        answer = subprocess.run([self.python, "-c", script], capture_output=True, text=True, check=False)
        return answer.stdout.strip() or "source"

    def refuses(self, model: BenchModel, encoding: Encoding) -> str:
        """Why it cannot take part, or nothing."""
        if encoding not in self.encodings:
            return f"has no {encoding} encoding"
        return "" if model.is_built else "its application knows only the built models"

    @abstractmethod
    def command(self, launch: Launch) -> Command:
        """How to start it for one model."""

    def infer_path(self, model: str) -> str:
        return f"/v2/models/{model}/infer"
