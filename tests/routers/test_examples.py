"""Example requests: small, of the right shape and type, and never too long for a browser."""

from __future__ import annotations

import json
import math
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import BYTES, DATATYPES, FP32, TensorSpec
from kernelport.routers.examples import (
    MAX_ELEMENTS,
    curl_command,
    example_data,
    example_request,
    example_shape,
    example_size,
)


def _model(*inputs: TensorSpec, name: str = "m") -> ModelSpec:
    return ModelSpec(name, "1", "onnxruntime_onnx", "onnxruntime", 0, inputs, ())


@given(
    shape=st.lists(st.integers(-1, 4), max_size=5).map(tuple),
    known=st.none() | st.lists(st.integers(0, 4), max_size=5).map(tuple),
    datatype=st.sampled_from(list(DATATYPES.values())),
)
def test_an_example_fits_the_declaration_it_was_made_from(shape, known, datatype):
    spec = TensorSpec("x", datatype, shape)
    chosen = example_shape(spec, known)
    assert spec.accepts(chosen)
    body = example_request(_model(spec), {} if known is None else {"x": known})
    [tensor] = body["inputs"]
    assert tensor["shape"] == list(chosen)
    assert len(tensor["data"]) == math.prod(chosen)
    json.dumps(body, allow_nan=False)


def test_a_shape_that_the_model_has_run_with_is_preferred():
    images = TensorSpec("images", FP32, (-1, 3, -1, -1))
    assert example_shape(images, (1, 3, 32, 32)) == (1, 3, 32, 32)
    assert example_shape(images) == (1, 3, 1, 1)
    assert example_shape(images, (3, 32, 32)) == (1, 3, 1, 1), "as the framework sees it, not as clients send it"
    assert example_shape(TensorSpec("any", FP32, None), (2, 5)) == (2, 5)


def test_optional_inputs_are_left_out():
    body = example_request(_model(TensorSpec("a", FP32, (1,)), TensorSpec("b", FP32, (1,), optional=True)), {})
    assert [one["name"] for one in body["inputs"]] == ["a"]


@pytest.mark.parametrize("datatype", DATATYPES.values(), ids=str)
def test_values_are_of_the_json_type_of_their_datatype(datatype):
    kinds = {"float": float, "bool": bool, "bytes": str, "int": int, "uint": int}
    assert {type(value) for value in example_data(datatype, 12)} == {kinds[datatype.kind]}


def test_a_long_input_gets_a_shell_command_with_exact_sizes_instead():
    sound = TensorSpec("it's:0", FP32, (-1, MAX_ELEMENTS + 1, 1))
    texts = TensorSpec("texts", BYTES, (3,))
    model = _model(sound, texts, name="a b")
    assert example_size(model, {}) > MAX_ELEMENTS
    words = shlex.split(curl_command(model, {}, "http://localhost:8080"))
    head = words[words.index("%s") + 1].removesuffix(";")
    assert f"Inference-Header-Content-Length: {len(head.encode())}" in words
    sizes = [one["parameters"]["binary_data_size"] for one in json.loads(head)["inputs"]]
    assert sizes == [4 * (MAX_ELEMENTS + 1), 12]
    assert str(sum(sizes)) == words[words.index("-c") + 1]
    assert words[-1] == "http://localhost:8080/v2/models/a%20b/infer"
