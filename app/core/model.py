"""Models as values: identity, signature, artifact, state. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from .tensor import TensorSpec


class ModelState(Enum):
    """States of one model version, in the words of the repository extension."""

    UNKNOWN = "UNKNOWN"  # in the repository, never asked for
    LOADING = "LOADING"
    READY = "READY"
    UNLOADING = "UNLOADING"  # draining what it accepted
    UNAVAILABLE = "UNAVAILABLE"  # failed or unloaded; the reason says which


@dataclass(slots=True, frozen=True)
class ModelSpec:
    """The signature of one model version, with batching folded in.

    `max_batch_size` 0 means the model has no batch dimension and requests are never merged.
    Shapes of the specs are what clients send: batch dimension included when `max_batch_size` > 0.
    """

    name: str
    version: str
    platform: str
    backend: str
    max_batch_size: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    is_decoupled: bool = False
    inputs_by_name: Mapping[str, TensorSpec] = field(init=False, repr=False, compare=False)
    outputs_by_name: Mapping[str, TensorSpec] = field(init=False, repr=False, compare=False)
    reply_heads: dict[Hashable, bytes] = field(init=False, repr=False, compare=False)  # the encoder's; see there

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs_by_name", {one.name: one for one in self.inputs})
        object.__setattr__(self, "outputs_by_name", {one.name: one for one in self.outputs})
        object.__setattr__(self, "reply_heads", {})


@dataclass(slots=True, frozen=True)
class ModelArtifact:
    """The files of one model version as they were when the load began; nobody changes them under a backend."""

    name: str
    version: str
    model_dir: Path  # <repository>/<name>: labels, warm-up files
    path: Path  # the model file or folder itself
    files: tuple[Path, ...] = ()


@dataclass(slots=True, frozen=True)
class Signature:
    """Inputs and outputs as the artifact itself declares them, before any configuration: true full shapes.

    `first_dim_is_dynamic` of the specs is read from shape[0] == -1.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    platform: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ModelStatus:
    """One line of the repository index."""

    name: str
    version: str
    state: ModelState
    reason: str = ""
