"""The interface every backend implements. Runs on: worker thread (load: loader thread)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ..core.model import ModelArtifact, Signature
from ..core.tensor import Array
from ..devices.device import Device


@dataclass(slots=True, frozen=True)
class Accelerator:
    """One entry of Triton's `optimization.execution_accelerators`, e.g. name "tensorrt"."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class BackendOptions:
    """How a model is to be loaded; filled from its configuration and the server's.

    `threads` is the CPU thread budget of one run, already divided over instances.
    `parameters` are the model's own string parameters, `server_parameters` those of `--backend-config`
    for this backend (weaker), `settings` the `backend_options` mapping of model.yaml (strongest).
    """

    threads: int = 1
    parameters: Mapping[str, str] = field(default_factory=dict)
    server_parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    accelerators: tuple[Accelerator, ...] = ()


class BackendModel(ABC):
    """One loaded copy of a model version, run by its own framework.

    Arrays cross this border in the carrier types of `core.tensor.DataType`: BF16 as uint16 bit patterns,
    BYTES as object arrays of `bytes`, everything else as little-endian numpy arrays. Inputs are already checked
    against the signature. Framework exceptions never cross it: they become `LoadError` or `BackendError`
    (`BackendInputError` when the framework positively blames the input values).
    """

    is_thread_safe: bool = False  # one copy may execute on several lanes at once
    signature: Signature

    @classmethod
    @abstractmethod
    def load(cls, artifact: ModelArtifact, device: Device, options: BackendOptions) -> Self:
        """Load the artifact on `device`; raises LoadError with a reason a user can act on."""

    @abstractmethod
    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        """Run once; `outputs` None means all. Missing keys of `inputs` are absent optional inputs."""

    @abstractmethod
    def close(self) -> None:
        """Free everything; called once, after the last execute has returned."""
