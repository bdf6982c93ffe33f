"""Infer replies: JSON, binary, both."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from infer_bodies import (
    MODEL,
    array_of,
    binary_body,
    body,
    bytes_content,
    decode,
    entry,
    model,
    request,
    response,
    same_bits,
)
from kernelport.core.errors import InvalidRequest, PayloadTooLarge
from kernelport.core.request import RequestedOutput
from kernelport.core.tensor import BF16, BOOL, BYTES, DATATYPES, FP16, FP32, FP64, INT64, DataType, Tensor, TensorSpec
from kernelport.protocol.limits import EncodeLimits
from kernelport.protocol.v2_decode import decode_request
from kernelport.protocol.v2_encode import Encoded, encode_response

VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False],
    "BYTES": [b"a", "h\u00e9".encode()],
    "FP16": [1.5, -0.0],
    "FP32": [0.1, 3.4028235e38],
    "FP64": [0.1, 5e-324],
    **{one.name: [one.minimum, one.maximum] for one in DATATYPES.values() if one.kind in ("int", "uint")},
    "BF16": [0x3F80, 0xC000],
}


def document(encoded: Encoded) -> Any:
    """The JSON part, parsed by a parser that knows no NaN."""

    def refuse(token: str) -> None:
        raise ValueError(token)

    return json.loads(bytes(encoded.parts[0]), parse_constant=refuse)


def tensor(datatype: DataType, values: list[Any], shape: list[int] | None = None, name: str = "y") -> Tensor:
    return Tensor(name, datatype, array_of(datatype, values, shape))


def test_a_reply_has_the_members_of_the_protocol_and_no_others() -> None:
    encoded = encode_response(response(tensor(FP32, [1, 2], [1, 2])), request(), MODEL, "null")
    assert document(encoded) == {
        "model_name": "m",
        "model_version": "1",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}],
    }
    assert encoded.json_length is None
    assert encoded.nonfinite == ()


def test_the_id_and_the_models_parameters_are_passed_on() -> None:
    encoded = encode_response(response(s="x", i=1, b=True, d=1.5), request(id="é\0"), MODEL, "null")
    assert document(encoded)["id"] == "é\0"
    assert document(encoded)["parameters"] == {"s": "x", "i": 1, "b": True, "d": 1.5}
    assert "id" not in document(encode_response(response(), request(id=""), MODEL, "null"))


@pytest.mark.parametrize("datatype", DATATYPES.values(), ids=repr)
@pytest.mark.parametrize("shape", [[2], [2, 1], [1, 2, 1]])
def test_json_outputs_read_back_as_the_same_tensor(datatype: DataType, shape: list[int]) -> None:
    sent = tensor(datatype, VALUES[datatype.name], shape)
    output = document(encode_response(response(sent), request(), MODEL, "null"))["outputs"][0]
    assert (output["name"], output["datatype"], output["shape"]) == ("y", datatype.name, shape)
    assert "parameters" not in output
    back = decode(body(entry(output["data"], shape, datatype.name))).inputs["x"].array
    assert same_bits(back, sent.array)


@pytest.mark.parametrize("datatype", DATATYPES.values(), ids=repr)
def test_binary_outputs_read_back_as_the_same_tensor(datatype: DataType) -> None:
    sent = tensor(datatype, VALUES[datatype.name], [1, 2])
    encoded = encode_response(response(sent), request(binary_output=True), MODEL, "null")
    output = document(encoded)["outputs"][0]
    assert "data" not in output
    assert encoded.json_length == len(encoded.parts[0])
    content = b"".join(encoded.parts[1:])
    assert output["parameters"] == {"binary_data_size": len(content)}
    text, length = binary_body(("x", datatype.name, [1, 2], content))
    assert same_bits(decode_request(text, length, MODEL).inputs["x"].array, sent.array)


@pytest.mark.parametrize("datatype", DATATYPES.values(), ids=repr)
@pytest.mark.parametrize("binary", [False, True])
def test_scalars_and_empty_tensors_have_their_shape(datatype: DataType, binary: bool) -> None:
    scalar = tensor(datatype, VALUES[datatype.name][:1], [])
    empty = tensor(datatype, [], [2, 0], "z")
    encoded = encode_response(response(scalar, empty), request(binary_output=binary), MODEL, "null")
    outputs = document(encoded)["outputs"]
    assert [one["shape"] for one in outputs] == [[], [2, 0]]
    if binary:
        assert outputs[1]["parameters"] == {"binary_data_size": 0}
    else:
        assert len(outputs[0]["data"]) == 1
        assert outputs[1]["data"] == []


def test_a_binary_part_of_no_bytes_is_no_binary_part() -> None:
    encoded = encode_response(response(tensor(FP32, [], [0, 4])), request(binary_output=True), MODEL, "null")
    assert encoded.json_length is None
    assert len(encoded.parts) == 1


def test_outputs_come_in_the_models_order_in_the_form_each_was_asked_for() -> None:
    answer = response(tensor(INT64, [1], name="a"), tensor(INT64, [2], name="b"), tensor(INT64, [3], name="c"))
    asked = request(RequestedOutput("c", binary=True), RequestedOutput("a"), binary_output=True)
    encoded = encode_response(answer, asked, MODEL, "null")
    assert [one["name"] for one in document(encoded)["outputs"]] == ["a", "c"]
    assert document(encoded)["outputs"][0]["data"] == [1]
    assert b"".join(encoded.parts[1:]) == (3).to_bytes(8, "little")


def test_requested_outputs_that_the_model_left_out_are_missing() -> None:
    encoded = encode_response(response(tensor(INT64, [1], name="a")), request(RequestedOutput("b")), MODEL, "null")
    assert document(encoded)["outputs"] == []


@pytest.mark.parametrize("datatype", [FP16, FP32, FP64, BF16])
def test_non_finite_values_become_null_and_are_named(datatype: DataType) -> None:
    bits = [0x7FC0, 0x7F80, 0xFF80, 0x3F80]
    values = bits if datatype is BF16 else [np.nan, np.inf, -np.inf, 1]
    answer = response(tensor(datatype, values), tensor(FP32, [1], name="fine"), tensor(BYTES, [b"null"], name="s"))
    encoded = encode_response(answer, request(id="null"), MODEL, "null")
    assert encoded.nonfinite == ("y",)
    assert document(encoded)["outputs"][0]["data"] == [None, None, None, 1.0]
    literal = encode_response(answer, request(), MODEL, "literal")
    assert b'"data":[NaN,Infinity,-Infinity,1.0]' in bytes(literal.parts[0])
    assert literal.nonfinite == ()


def test_the_word_null_elsewhere_is_not_mistaken() -> None:
    answer = response(tensor(FP32, [1], name="null"), tensor(BYTES, [b"null"], name="s"))
    for policy in ("null", "literal"):
        encoded = encode_response(answer, request(id="null"), MODEL, policy)
        assert encoded.nonfinite == ()
        assert document(encoded)["outputs"][0]["data"] == [1.0]


def test_non_finite_values_in_binary_outputs_are_kept_and_not_named() -> None:
    encoded = encode_response(response(tensor(FP32, [np.nan])), request(binary_output=True), MODEL, "null")
    assert encoded.nonfinite == ()
    assert b"".join(encoded.parts[1:]) == np.array([np.nan], "<f4").tobytes()


def test_bytes_that_are_no_text_need_binary_output() -> None:
    with pytest.raises(InvalidRequest, match=r"output 'y'.*binary_data"):
        encode_response(response(tensor(BYTES, [b"\xff"])), request(), MODEL, "null")
    encoded = encode_response(response(tensor(BYTES, [b"\xff"])), request(binary_output=True), MODEL, "null")
    assert encoded.parts[1] == bytes_content(b"\xff")


def test_classified_outputs_become_bytes_in_either_form() -> None:
    spec = model(outputs=[TensorSpec("y", FP32, (-1, 3), labels=("a", "b", "c"))], max_batch_size=4)
    answer = response(tensor(FP32, [1, 3, 2], [1, 3]))
    encoded = encode_response(answer, request(RequestedOutput("y", False, 2)), spec, "null")
    assert document(encoded)["outputs"] == [
        {"name": "y", "datatype": "BYTES", "shape": [1, 2], "data": ["3.000000:1:b", "2.000000:2:c"]}
    ]
    encoded = encode_response(answer, request(RequestedOutput("y", True, 1)), spec, "null")
    assert encoded.parts[1] == bytes_content(b"3.000000:1:b")
    with pytest.raises(InvalidRequest, match="classification"):
        encode_response(response(tensor(BOOL, [True])), request(RequestedOutput("y", False, 1)), spec, "null")


@pytest.mark.parametrize("binary", [False, True])
def test_replies_above_the_limit_are_refused(binary: bool) -> None:
    limits = EncodeLimits(max_response_bytes=1000)
    with pytest.raises(PayloadTooLarge, match=r"model 'm'.*at most 1000"):
        encode_response(response(tensor(FP32, [1] * 900)), request(binary_output=binary), MODEL, "null", limits)
    with pytest.raises(PayloadTooLarge):
        encode_response(response(tensor(FP64, [0.1] * 230)), request(binary_output=binary), MODEL, "null", limits)
    assert encode_response(response(tensor(FP32, [1] * 50)), request(binary_output=binary), MODEL, "null", limits).parts


@given(st.lists(st.text(max_size=6), max_size=6))
def test_any_text_survives_json_and_binary_alike(texts: list[str]) -> None:
    sent = tensor(BYTES, [text.encode() for text in texts])
    output = document(encode_response(response(sent), request(), MODEL, "null"))["outputs"][0]
    assert output["data"] == texts
    assert same_bits(decode(body(entry(texts, [len(texts)], "BYTES"))).inputs["x"].array, sent.array)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=50))
def test_floats_read_back_to_the_same_bits(values: list[float]) -> None:
    sent = tensor(FP32, values)
    output = document(encode_response(response(sent), request(), MODEL, "null"))["outputs"][0]
    assert same_bits(np.array(output["data"], "<f4"), sent.array)
