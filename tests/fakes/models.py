"""Loaded model versions without a framework, a loader that does as it is told, and repositories of tiny files."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fakes.batching import Doubler, spec
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.core.errors import LoadError
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import Array
from kernelport.lifecycle.loaded import LoadedVersion
from kernelport.repository.model import RepositoryModel


class GatedCopy(Doubler):
    """A loaded copy that can be held at work, and that knows whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        assert not self.is_closed, "a closed copy was run"
        self.entered.set()
        assert self.gate.wait(20)
        return super().execute(inputs, outputs)

    def close(self) -> None:
        assert not self.is_closed, "a copy was closed twice"
        self.is_closed = True


def loaded(
    copy: Any = None,
    *,
    model: ModelSpec | None = None,
    policy: BatchPolicy | None = None,
    queue_policy: QueuePolicy | None = None,
    permits: int = 1,
    **more: Any,
) -> LoadedVersion:
    """A loaded version of model `m` that doubles its input."""
    copy = copy or GatedCopy()
    return LoadedVersion(
        model or spec(0),
        policy or BatchPolicy(),
        queue_policy or QueuePolicy(),
        {"cpu": [copy] * permits},
        (copy,),
        more.pop("config", {}),
        **more,
    )


class ScriptedLoader:
    """Stands where the loader stands: loads anything, except what is in `broken` (names or "name/version").

    `seen` holds what was asked for, as (name, version, configuration), `copies` what was made of it, by "name/version";
    loads wait while `gate` is closed.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.copies: dict[str, list[GatedCopy]] = {}
        self.broken: dict[str, str | Exception] = {}
        self.notes: tuple[str, ...] = ()
        self.gate = threading.Event()
        self.gate.set()

    @property
    def loads(self) -> list[str]:
        """What was asked for, as name/version."""
        return [f"{name}/{version}" for name, version, _ in self.seen]

    def __call__(self, source: RepositoryModel, version: str) -> LoadedVersion:
        assert self.gate.wait(20)
        self.seen.append((source.name, version, source.config))
        reason = self.broken.get(source.name) or self.broken.get(f"{source.name}/{version}")
        if reason:
            raise reason if isinstance(reason, Exception) else LoadError(reason)
        copy = GatedCopy()
        self.copies.setdefault(f"{source.name}/{version}", []).append(copy)
        rows = source.config.max_batch_size if source.config is not None else 0
        model = replace(spec(rows), name=source.name, version=version)
        return loaded(
            copy, model=model, config={"name": source.name, "max_batch_size": rows}, load_ns=7_000_000, notes=self.notes
        )

    def open_gates(self) -> None:
        """Let everything that is held go on, at the end of a test."""
        self.gate.set()
        for copies in self.copies.values():
            for copy in copies:
                copy.gate.set()


def fake_file(**behaviour: Any) -> str:
    """A `model.fake` that echoes rows of four floats."""
    tensor = {"datatype": "FP32", "shape": [-1, 4]}
    return json.dumps({"inputs": [{"name": "X", **tensor}], "outputs": [{"name": "Y", **tensor}], **behaviour})


def put_model(folder: Path, name: str, *versions: str, config: str = "", **behaviour: Any) -> Path:
    """Write versions (default: 1) of a fake model into a repository; `config` becomes its model.yaml."""
    for version in versions or ("1",):
        path = folder / name / version / "model.fake"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fake_file(**behaviour))
    if config:
        (folder / name / "model.yaml").write_text(config)
    return folder / name
