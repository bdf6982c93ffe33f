"""Models as values."""

from dataclasses import FrozenInstanceError

import pytest
from kernelport.core.model import ModelSpec, ModelState, ModelStatus
from kernelport.core.tensor import FP32, INT64, TensorSpec

X, N, Y = TensorSpec("x", FP32, (-1, 4)), TensorSpec("n", INT64, (-1,)), TensorSpec("y", FP32, (-1, 3))


def spec(*inputs: TensorSpec) -> ModelSpec:
    return ModelSpec("m", "1", "onnxruntime_onnx", "onnxruntime", 8, inputs, (Y,))


def test_tensors_are_found_by_name_and_keep_their_order() -> None:
    model = spec(X, N)
    assert list(model.inputs_by_name) == ["x", "n"]
    assert model.inputs_by_name["n"] is N
    assert model.outputs_by_name == {"y": Y}


def test_specs_are_equal_by_what_they_declare() -> None:
    assert spec(X) == spec(TensorSpec("x", FP32, (-1, 4)))
    assert spec(X) != spec(N)


def test_specs_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        spec(X).name = "other"  # type: ignore[misc]


def test_states_are_the_words_of_the_repository_extension() -> None:
    assert {state.value for state in ModelState} == {"UNKNOWN", "LOADING", "READY", "UNLOADING", "UNAVAILABLE"}
    assert ModelStatus("m", "1", ModelState.READY).reason == ""
