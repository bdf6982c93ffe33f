"""Loads fixture models and files through the ONNX Runtime backend, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fixture_models import write_model
from kernelport.backends.base import Accelerator, BackendOptions
from kernelport.backends.onnxruntime import OnnxRuntimeModel
from kernelport.core.model import ModelArtifact
from kernelport.devices.device import CPU, Device


def load_file(path: Path, name: str = "m", device: Device = CPU, **options: Any) -> OnnxRuntimeModel:
    """The model file at <folder>/<name>/<version>/<file>."""
    artifact = ModelArtifact(name, "1", path.parent.parent, path)
    return OnnxRuntimeModel.load(artifact, device, BackendOptions(**options))


def load_fixture(folder: Path, name: str, **options: Any) -> OnnxRuntimeModel:
    """A model of `fixture_models`, written below `folder`."""
    return load_file(write_model(folder, name), name, **options)


def accelerator(name: str, parameters: Mapping[str, str] | None = None) -> tuple[Accelerator, ...]:
    """One execution accelerator."""
    return (Accelerator(name, parameters or {}),)
