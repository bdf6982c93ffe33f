"""What `infer` sends and reads is the protocol's, in JSON and in binary."""

import json
import math
from typing import Any

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernelport.cli.wire import Output, decode_answer, encode_binary, encode_json, json_ready
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import BF16, BOOL, BYTES, DATATYPES, FP16, FP32, INT64, DataType, TensorSpec
from kernelport.protocol.binary import write_tensor
from kernelport.protocol.limits import DECODE_DEFAULTS
from kernelport.protocol.v2_decode import decode_request

NUMERIC = [one for one in DATATYPES.values() if one not in (BYTES, BF16)]


def body_of(name: str, datatype: DataType, array: Any) -> dict[str, Any]:
    return {"inputs": [{"name": name, "datatype": datatype.name, "shape": list(array.shape), "data": array}]}


def arrived(content: bytes, headers: dict[str, str], datatype: DataType, rank: int) -> Any:
    """What the server's own decoder reads."""
    spec = ModelSpec("m", "1", "p", "b", 0, (TensorSpec("x", datatype, (-1,) * rank),), ())
    length = headers.get("Inference-Header-Content-Length")
    request = decode_request(content, None if length is None else int(length), spec, DECODE_DEFAULTS)
    return request.inputs["x"].array


@given(st.data())
def test_the_server_reads_the_same_array_from_json_and_from_binary(data: st.DataObject) -> None:
    datatype = data.draw(st.sampled_from(NUMERIC))
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=4))
    elements = {"allow_nan": False, "allow_infinity": False} if datatype.kind == "float" else None
    array = data.draw(hnp.arrays(datatype.dtype, shape, elements=elements))
    body = body_of("x", datatype, array)
    for encode in (encode_json, encode_binary):
        content, headers = encode(body)
        read = arrived(content, headers, datatype, array.ndim)
        assert read.dtype == array.dtype
        assert np.array_equal(read, array)


@pytest.mark.parametrize("encode", [encode_json, encode_binary])
def test_values_that_are_no_numbers_arrive(encode: Any) -> None:
    array = np.array([math.nan, math.inf, -math.inf, 1.5], np.float32)
    content, headers = encode(body_of("x", FP32, array))
    assert np.array_equal(arrived(content, headers, FP32, 1), array, equal_nan=True)


def test_lists_travel_in_binary_too() -> None:
    for datatype, values, raw in (
        (FP16, [1.0, 2.0], np.array([1, 2], np.float16)),
        (BF16, [1.0, -2.0], np.array([0x3F80, 0xC000], np.uint16)),
        (BOOL, [True, False], np.array([True, False])),
        (INT64, [2**62], np.array([2**62])),
    ):
        body = {"inputs": [{"name": "x", "datatype": datatype.name, "shape": [len(values)], "data": values}]}
        content, headers = encode_binary(body)
        assert np.array_equal(arrived(content, headers, datatype, 1), raw)


def test_texts_travel_in_binary_with_their_lengths() -> None:
    body = {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [2], "data": ["ä", "b"]}]}
    content, headers = encode_binary(body)
    assert arrived(content, headers, BYTES, 1).tolist() == ["ä".encode(), b"b"]


def test_bytes_that_are_no_text_need_binary() -> None:
    array = np.array([b"\xff"], dtype=object)
    content, headers = encode_binary(body_of("x", BYTES, array))
    assert arrived(content, headers, BYTES, 1).tolist() == [b"\xff"]
    with pytest.raises(click.UsageError, match="--binary"):
        encode_json(body_of("x", BYTES, array))


def test_what_does_not_fit_the_datatype_is_refused_by_name() -> None:
    with pytest.raises(click.UsageError, match="'x' cannot be sent as binary"):
        encode_binary({"inputs": [{"name": "x", "datatype": "INT8", "shape": [1], "data": ["many"]}]})


def test_everything_else_of_a_request_is_kept() -> None:
    body = {"id": "7", "parameters": {"a": 1}, "inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
    assert json.loads(encode_json(body)[0]) == body
    content, headers = encode_binary(body)
    header = json.loads(content[: int(headers["Inference-Header-Content-Length"])])
    assert header["id"] == "7"
    assert header["parameters"] == {"a": 1, "binary_data_output": True}


def answer(datatype: DataType, shape: list[int], data: list[Any]) -> bytes:
    entry = {"name": "y", "datatype": datatype.name, "shape": shape, "data": data}
    return json.dumps({"model_name": "m", "outputs": [entry]}).encode()


def test_json_outputs_become_arrays() -> None:
    _, (numbers,) = decode_answer(answer(FP32, [1, 3], [1.5, None, 2]), None)
    assert np.array_equal(numbers.array, np.array([[1.5, math.nan, 2]], np.float32), equal_nan=True)
    _, (texts,) = decode_answer(answer(BYTES, [2], ["a", "b"]), None)
    assert texts.array.tolist() == ["a", "b"]


def test_binary_outputs_become_arrays() -> None:
    first, second = np.array([[1, 2]], np.int64), np.array([b"a", b"bc"], dtype=object)
    parts = [bytes(write_tensor(INT64, first)), bytes(write_tensor(BYTES, second))]
    entries = [
        {"name": name, "datatype": kind, "shape": shape, "parameters": {"binary_data_size": len(part)}}
        for (name, kind, shape), part in zip([("a", "INT64", [1, 2]), ("b", "BYTES", [2])], parts, strict=True)
    ]
    header = json.dumps({"outputs": entries}).encode()
    _, outputs = decode_answer(b"".join([header, *parts]), str(len(header)))
    assert [output.array.tolist() for output in outputs] == [[[1, 2]], [b"a", b"bc"]]


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"error": "no"}'])
def test_an_answer_of_something_else_is_said_to_be_that(content: bytes) -> None:
    with pytest.raises(click.ClickException, match="is it an inference server"):
        decode_answer(content, None)


def test_outputs_are_printed_as_valid_json() -> None:
    numbers = json_ready(Output("y", FP32, np.array([[1.5, math.inf]], np.float32)))
    assert numbers == {"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1.5, None]}
    assert json_ready(Output("t", BYTES, np.array([b"a"], dtype=object)))["data"] == ["a"]
