"""A model version that has been loaded and warmed, not yet served. Runs on: loader thread makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..backends.base import BackendModel
from ..batcher.policy import BatchPolicy, QueuePolicy
from ..core.model import ModelSpec
from ..core.tensor import Shape


@dataclass(slots=True)
class LoadedVersion:
    """What the loader hands to the actor.

    `permits` holds, per device, the copies that may run at once: a thread-safe copy stands there once per instance.
    `copies` are the distinct ones, to be closed at the end; `release` then frees the private files of the load.
    `notes` say in words what was filled in or decided (why batching is off, say); `sample_shapes` are the shapes
    of inputs that the warm-up ran with.
    """

    spec: ModelSpec
    batch_policy: BatchPolicy
    queue_policy: QueuePolicy
    permits: Mapping[str, list[BackendModel]]
    copies: tuple[BackendModel, ...]
    config: Mapping[str, Any]
    json_nonfinite: str = "null"
    notes: tuple[str, ...] = ()
    load_ns: int = 0
    sample_shapes: Mapping[str, Shape] = field(default_factory=dict)
    release: Callable[[], None] = field(default=lambda: None)

    def close(self) -> None:
        """Free the copies and their files."""
        for copy in self.copies:
            copy.close()
        self.release()
