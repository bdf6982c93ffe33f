"""The ONNX format's own conformance cases through the backend: equal to the runtime, and to the expected outputs.

Cases that the installed onnxruntime cannot run by itself are nobody's fault here and are left out; those whose
tensors the protocol cannot carry (sequences, optionals, 4- and 8-bit floats) must be refused at load by name.
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from kernelport.backends.onnxruntime.runtime import ort
from kernelport.backends.onnxruntime.signature import ELEMENT_TYPES
from kernelport.core.errors import KernelPortError, LoadError
from kernelport.core.tensor import BF16, BYTES, Array, TensorSpec
from onnx_backend import load_file

SAMPLE_STEP = 31  # a fixed sample of about sixty cases for the everyday run


@cache
def cases() -> tuple[Any, ...]:
    """All cases, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases compute NaN and overflow on purpose
        from onnx.backend.test.case.node import collect_testcases

        return tuple(sorted((one for one in collect_testcases(None) if one.model), key=lambda one: str(one.name)))


def runtime_session(path: Path) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0)


def as_array(value: Any) -> Array:
    """Some cases hold their values as files would."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def carrier(value: Any, spec: TensorSpec) -> Array:
    """An expected or given value in the types that cross the backend's border."""
    array = as_array(value)
    if spec.datatype is BF16:
        return array.astype(ml_dtypes.bfloat16).view(np.uint16) if array.dtype != np.uint16 else array
    if spec.datatype is BYTES:
        encoded = np.empty(array.size, object)
        encoded[:] = [one if isinstance(one, bytes) else str(one).encode() for one in array.ravel().tolist()]
        return encoded.reshape(array.shape)
    return array


def judge(case: Any, folder: Path) -> str:
    """What became of a case: "equal", or the reason why it does not count. Raises AssertionError for a difference."""
    path = folder / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, path)
    try:
        session = runtime_session(path)
    except Exception:  # any of the runtime's refusals: not implemented, invalid graph, ...
        return "the runtime does not load it"
    kinds = [one.type for one in (*session.get_inputs(), *session.get_outputs())]
    if any(kind not in ELEMENT_TYPES for kind in kinds):
        with pytest.raises(LoadError, match="which the Open Inference Protocol cannot carry"):
            load_file(path)
        return "the protocol cannot carry it"
    model = load_file(path)
    outcomes = {compare(case, model, session, given, expected) for given, expected in case.data_sets}
    return outcomes.pop() if len(outcomes) == 1 else "mixed"


def compare(case: Any, model: Any, session: Any, given: Any, expected: Any) -> str:
    """One data set: bit for bit what the runtime gives, and what the standard expects where the runtime does."""
    specs = [one for one in model.signature.inputs if not one.optional]
    inputs = {spec.name: carrier(value, spec) for spec, value in zip(specs, given, strict=True)}
    direct = None
    if not any(one.datatype is BF16 for one in (*model.signature.inputs, *model.signature.outputs)):
        feeds = {spec.name: as_array(value) for spec, value in zip(specs, given, strict=True)}
        direct = direct_run(session, feeds)
        if direct is None:
            with pytest.raises(KernelPortError):
                model.execute(inputs, None)
            return "the runtime refuses to run it"
    results = model.execute(inputs, None)
    outcome = "equal"
    for at, (spec, value) in enumerate(zip(model.signature.outputs, expected, strict=True)):
        ours, wanted = results[spec.name], carrier(value, spec)
        assert (ours.shape, ours.dtype) == (wanted.shape, wanted.dtype), f"{case.name}: {spec.name}"
        if is_random(case):
            outcome = "random"
        elif direct is not None and not is_same(ours, carrier(direct[at], spec), spec):
            raise AssertionError(f"{case.name}: {spec.name} is not what the runtime gives")
        elif not is_close(ours, wanted, spec, case):
            assert direct is not None, f"{case.name}: {spec.name} is not what the standard expects"
            outcome = "the runtime differs from the standard"
    return outcome


def is_same(one: Array, other: Array, spec: TensorSpec) -> bool:
    return one.tolist() == other.tolist() if spec.datatype is BYTES else one.tobytes() == other.tobytes()


def direct_run(session: Any, feeds: dict[str, Array]) -> Any:
    try:
        return session.run(None, feeds)
    except Exception:  # the runtime refuses its own case: then so must we
        return None


def is_random(case: Any) -> bool:
    return any(node.op_type in ("Bernoulli", "RandomUniformLike", "Dropout") for node in case.model.graph.node)


def is_close(one: Array, other: Array, spec: TensorSpec, case: Any) -> bool:
    if one.shape != other.shape:
        return False
    if spec.datatype.kind != "float":
        return bool(one.tolist() == other.tolist())
    if spec.datatype is BF16:
        one, other = (array.view(ml_dtypes.bfloat16).astype(np.float32) for array in (one, other))
    rtol, atol = max(case.rtol or 1e-3, 1e-3 if spec.datatype.item_size > 2 else 2e-2), max(case.atol or 1e-7, 1e-6)
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def judge_all(chosen: tuple[Any, ...], folder: Path) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    problems = []
    for number, case in enumerate(chosen):
        try:
            outcomes[judge(case, folder / str(number))] += 1
        except (AssertionError, KernelPortError) as error:
            problems.append(f"{case.name}: {error}".splitlines()[0])
    assert not problems, "\n".join(problems)
    return outcomes


def test_a_sample_of_the_operator_cases(tmp_path: Path) -> None:
    chosen = cases()[::SAMPLE_STEP]
    outcomes = judge_all(chosen, tmp_path)
    assert outcomes["equal"] > len(chosen) * 0.6, outcomes


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_operator_cases(tmp_path: Path) -> None:
    outcomes = judge_all(cases(), tmp_path)
    assert outcomes.total() == len(cases())
    assert outcomes["equal"] > len(cases()) * 0.6, outcomes
