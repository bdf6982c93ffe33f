"""A backend without a framework: echoes, and misbehaves on demand. Runs on: worker thread (load: loader thread).

It stands where a real backend stands in tests, documentation and load tests, so none of them needs to patch anything.
Its artifact is a small JSON file, `model.fake`:

    {"inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}],
     "outputs": [{"name": "Y", "datatype": "FP32", "shape": [-1, 4]}],
     "fail_on": 13, "extra_rows": 0, "load_error": "", "is_thread_safe": true}
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..core.errors import BackendError, BackendInputError, LoadError
from ..core.model import ModelArtifact, Signature
from ..core.tensor import Array, TensorSpec, datatype
from ..devices.device import Device
from .base import BackendModel, BackendOptions

DEFAULT_FILENAME = "model.fake"
PLATFORM = "fake"
Answer = Callable[[Mapping[str, Array]], dict[str, Array]]


@dataclass(slots=True, frozen=True)
class FakeBehaviour:
    """What a FakeModel does besides echoing.

    `gate`: every run waits until it is set. `fail_on`: a run whose input holds this value blames the input;
    `break_on`: it fails as if the framework had. `extra_rows` are added to every output (negative: taken away).
    `answer` computes the outputs instead of the echo.
    """

    gate: threading.Event | None = None
    fail_on: float | None = None
    break_on: float | None = None
    extra_rows: int = 0
    answer: Answer | None = None
    is_thread_safe: bool = True


class FakeModel(BackendModel):
    """Output number i is input number i (the last one when there are fewer), in the output's datatype.

    `calls` holds the first input's shape of every run in the order they began; `entered` is released at each start,
    so a test can wait for a run to be inside without sleeping.
    """

    def __init__(self, signature: Signature, behaviour: FakeBehaviour | None = None) -> None:
        self.signature = signature
        self.behaviour = behaviour or FakeBehaviour()
        self.is_thread_safe = self.behaviour.is_thread_safe
        self.calls: list[tuple[int, ...]] = []
        self.entered = threading.Semaphore(0)
        self.is_closed = False
        self._running = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    @classmethod
    def load(cls, artifact: ModelArtifact, device: Device, options: BackendOptions) -> Self:
        """Read `model.fake`; LoadError when it is no such file or asks for one."""
        path = artifact.path / DEFAULT_FILENAME if artifact.path.is_dir() else artifact.path
        try:
            text: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            signature = Signature(_specs(text["inputs"]), _specs(text["outputs"]), PLATFORM)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LoadError(f"model {artifact.name!r}: {path.name} is no fake model ({error!r})") from error
        if text.get("load_error"):
            raise LoadError(f"model {artifact.name!r}: {text['load_error']}")
        known = {"fail_on", "break_on", "extra_rows", "is_thread_safe"}
        return cls(signature, FakeBehaviour(**{key: text[key] for key in known & text.keys()}))

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        """See `BackendModel.execute`."""
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            self.calls.append(next(iter(inputs.values())).shape if inputs else ())
        self.entered.release()
        try:
            if self.behaviour.gate is not None:
                self.behaviour.gate.wait()
            return self._answer(inputs, outputs)
        finally:
            with self._lock:
                self._running -= 1

    def close(self) -> None:
        """Remember that it happened."""
        self.is_closed = True

    def _answer(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        if self.is_closed:
            raise BackendError("the fake model is closed")
        for name, array in inputs.items():
            if _holds(array, self.behaviour.fail_on):
                raise BackendInputError(f"input {name!r} holds {self.behaviour.fail_on}")
            if _holds(array, self.behaviour.break_on):
                raise BackendError(f"broken by {self.behaviour.break_on} in input {name!r}")
        compute = self.behaviour.answer or self._echo
        results = {name: self._with_extra_rows(array) for name, array in compute(inputs).items()}
        return {name: results[name] for name in (results if outputs is None else outputs)}

    def _echo(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        given = [inputs[spec.name] for spec in self.signature.inputs if spec.name in inputs]
        return {
            spec.name: given[min(at, len(given) - 1)].astype(spec.datatype.dtype)
            for at, spec in enumerate(self.signature.outputs)
        }

    def _with_extra_rows(self, array: Array) -> Array:
        extra = self.behaviour.extra_rows
        if extra < 0:
            return array[:extra]
        return np.concatenate([array, *[array[:1]] * extra]) if extra else array


def _holds(array: Array, value: float | None) -> bool:
    return value is not None and bool((array == value).any())


def _specs(entries: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(one["name"], datatype(one["datatype"]), tuple(one["shape"])) for one in entries)


BACKEND = FakeModel
