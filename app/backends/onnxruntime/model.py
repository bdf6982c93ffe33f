"""One ONNX model in one runtime session. Runs on: worker thread (load: loader thread).

Why plain `run` and not IOBinding: for contiguous arrays `run` shares the input's memory and hands outputs out as
views, so there is no copy left to save. Measured on one core (identity and sum models, 1.32): 16 bytes 4.5 us by
`run` against 12 us by a fresh binding; 600 KB 18 against 25 us; 19 MB 664 against 718 us. A binding kept across
calls would be faster only for fixed addresses, and a shared one mixes up concurrent requests. bfloat16 is the
exception: numpy has no such type, so models with such outputs run on typed OrtValues over uint16 bit patterns (41 us a
call; a binding takes 13, but loses the error code that tells a bad input from a broken runtime).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ...core.errors import BackendError, KernelPortError, LoadError
from ...core.model import ModelArtifact, Signature
from ...core.tensor import BF16, BYTES, Array, TensorSpec
from ...devices.device import Device
from ...devices.memory import return_freed_memory
from ...protocol.onnx_file import GraphFacts, read_graph_facts
from ..base import BackendModel, BackendOptions
from .carriers import as_value, bf16_array, bf16_value, decode_strings, encode_strings, plain_array
from .external_data import check_external_data
from .failures import run_error
from .plan import SessionPlan, plan_session
from .sessions import create_session, run_options
from .signature import tensor_specs

PLATFORM = "onnxruntime_onnx"
DEFAULT_FILENAME = "model.onnx"


class OnnxRuntimeModel(BackendModel):
    """A session and what is needed to feed it; instances on one device share it, because a CPU session is reentrant."""

    def __init__(self, name: str, session: Any, signature: Signature, plan: SessionPlan, hidden: Sequence[str]) -> None:
        self.signature = signature
        self.is_thread_safe = plan.is_thread_safe
        self._name = name
        self._hidden = tuple(hidden)
        self._session: Any = session
        self._run_options = run_options(plan)
        self._output_names = tuple(one.name for one in signature.outputs)
        self._special_inputs = {one.name: one for one in signature.inputs if one.datatype in (BF16, BYTES)}
        self._bytes_outputs = frozenset(one.name for one in signature.outputs if one.datatype is BYTES)
        self._bf16_outputs = frozenset(one.name for one in signature.outputs if one.datatype is BF16)

    @classmethod
    def load(cls, artifact: ModelArtifact, device: Device, options: BackendOptions) -> Self:
        """Check the file and its weights, create the session, read the signature; LoadError says what is wrong."""
        path = artifact.path / DEFAULT_FILENAME if artifact.path.is_dir() else artifact.path
        hidden = _host_folders(artifact, path)
        try:
            facts = read_graph_facts(path)
            check_external_data(path.parent, facts.external)
            plan = plan_session(options, device, _has_free_dims(facts), _has_free_batch(facts))
        except LoadError as error:
            raise LoadError(f"model {artifact.name!r}: {error}") from error
        session = create_session(path, plan, artifact.name, hidden)
        try:
            signature = _signature(session, facts, plan)
        except LoadError as error:
            raise LoadError(f"model {artifact.name!r}: {error}") from error
        return cls(artifact.name, session, signature, plan, hidden)

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        """See `BackendModel.execute`; safe on several threads at once when `is_thread_safe`."""
        session = self._session
        if session is None:
            raise BackendError(f"model {self._name!r} is closed")
        names = self._output_names if outputs is None else outputs
        try:
            feeds: dict[str, Any] = {name: plain_array(array) for name, array in inputs.items()}
            if self._special_inputs:
                self._convert_special(feeds)
            if self._bf16_outputs and not self._bf16_outputs.isdisjoint(names):
                return self._run_values(session, names, feeds)
            results = dict(zip(names, session.run(names, feeds, self._run_options), strict=False))
            if self._bytes_outputs:
                for name in self._bytes_outputs.intersection(names):
                    results[name] = encode_strings(results[name])
        except KernelPortError:
            raise
        except Exception as error:  # the runtime's exceptions have no common base of their own
            raise run_error(error, self._name, self._hidden) from error
        return results

    def close(self) -> None:
        """Drop the session. It is in no reference cycle (tested), so it is freed here and now, without a collection."""
        self._session = None
        return_freed_memory()

    def _convert_special(self, feeds: dict[str, Any]) -> None:
        for name, spec in self._special_inputs.items():
            if name in feeds:
                convert = decode_strings if spec.datatype is BYTES else bf16_value
                feeds[name] = convert(name, feeds[name])

    def _run_values(self, session: Any, names: tuple[str, ...], feeds: dict[str, Any]) -> dict[str, Array]:
        values = session.run_with_ort_values(
            names, {name: as_value(feed) for name, feed in feeds.items()}, self._run_options
        )
        results: dict[str, Array] = {}
        for name, value in zip(names, values, strict=True):
            if name in self._bf16_outputs:
                results[name] = bf16_array(value)
            else:
                array = value.numpy()
                results[name] = encode_strings(array) if name in self._bytes_outputs else array
        return results


def _signature(session: Any, facts: GraphFacts, plan: SessionPlan) -> Signature:
    inputs = tensor_specs(session.get_inputs(), facts.inputs, "input")
    # graph inputs with a default value: clients may leave them out
    optional = tensor_specs(session.get_overridable_initializers(), facts.inputs, "input", is_optional=True)
    outputs = tensor_specs(session.get_outputs(), facts.outputs, "output")
    _refuse_mixed_carriers((*inputs, *optional), outputs)
    return Signature(
        inputs=inputs + optional,
        outputs=outputs,
        platform=PLATFORM,
        details={
            "providers": tuple(session.get_providers()),
            "intra_op_threads": plan.intra_op_threads,
            "has_arena": plan.has_arena,
            "warnings": plan.warnings,
        },
    )


def _refuse_mixed_carriers(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
    text = next((one.name for one in inputs if one.datatype is BYTES), None)
    bf16 = next((one.name for one in outputs if one.datatype is BF16), None)
    if text is not None and bf16 is not None:
        raise LoadError(
            f"input {text!r} is BYTES and output {bf16!r} is BF16; onnxruntime's Python interface cannot carry both "
            "in one run, so add a Cast to FP32 before that output"
        )


def _has_free_dims(facts: GraphFacts) -> bool:
    return any(shape is None or any(isinstance(dim, str) for dim in shape[1:]) for shape in facts.inputs.values())


def _has_free_batch(facts: GraphFacts) -> bool:
    return any(shape and isinstance(shape[0], str) for shape in facts.inputs.values())


def _host_folders(artifact: ModelArtifact, path: Path) -> list[str]:
    folders = [artifact.model_dir.parent, artifact.model_dir, path.parent, path.parent.resolve()]
    return [str(folder) for folder in folders if folder.is_absolute() and len(folder.parts) > 1]
