"""Infer bodies that nobody thought of: both JSON parsers decide alike, and no bytes break the decoder."""

import json
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from infer_bodies import MODEL, NUMERIC, binary_body, body, bytes_content, decode, decode_one, entry, model, same_bits
from kernelport.core.errors import ErrorCode, KernelPortError
from kernelport.core.request import InferenceRequest
from kernelport.core.tensor import DATATYPES, DataType
from kernelport.protocol.v2_decode import decode_request

# An unknown member NaN, which simdjson refuses, makes the slow parser decide. Of two faults either may be told first.
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.integers(-130, 260) | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.0, 1.0, 65504.0, 65520.0, 3.5e38, 1e300])
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=3), one, max_size=3),
    max_leaves=12,
)
ELEMENTS = {"bool": st.booleans(), "bytes": st.text(max_size=4), "float": st.floats(-1e5, 1e5) | st.integers(-9, 9)}


def _elements(datatype: DataType) -> st.SearchStrategy[Any]:
    if datatype.kind in ELEMENTS:
        return ELEMENTS[datatype.kind]
    return st.integers(datatype.minimum, datatype.maximum)


def _nest(flat: list[Any], shape: list[int]) -> list[Any]:
    for dim in reversed(shape[1:]):
        flat = [flat[start : start + dim] for start in range(0, len(flat), dim)] if dim else [[]] * shape[0]
    return flat


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    datatype = draw(st.sampled_from(list(DATATYPES.values())))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape, dtype=np.int64))
    exact = _elements(datatype)
    element = draw(st.sampled_from([exact, exact, exact, exact | SCALARS]))
    data: Any = draw(st.lists(element, min_size=count, max_size=count))
    form = draw(st.sampled_from(["flat", "nested", "nested", "other", "anything"]))
    if form == "nested" and count:
        data = _nest(data, shape)
    elif form == "other" and count:
        data = _nest(data, draw(st.permutations(shape)))
    elif form == "anything":
        data = draw(ANYTHING)
    one = entry(data, shape, datatype.name, draw(st.sampled_from(["x", "y", "é"])))
    if draw(st.integers(0, 9)) == 0:
        one[draw(st.sampled_from(["name", "shape", "datatype", "parameters", "extra"]))] = draw(ANYTHING)
    return one


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = {"inputs": draw(st.lists(inputs(), max_size=3))}
    if draw(st.booleans()):
        document["id"] = draw(st.text(max_size=5) | SCALARS)
    if draw(st.booleans()):
        keys = st.sampled_from(
            ["a", "priority", "timeout", "sequence_id", "sequence_start", "binary_data_output", "triton_x"]
        )
        document["parameters"] = draw(st.dictionaries(keys, SCALARS | ANYTHING, max_size=3) | ANYTHING)
    if draw(st.booleans()):
        parameters = st.dictionaries(st.sampled_from(["binary_data", "classification"]), SCALARS, max_size=2) | ANYTHING
        output = st.fixed_dictionaries({"name": st.sampled_from(["y", "z"])}, optional={"parameters": parameters})
        document["outputs"] = draw(st.lists(output, max_size=2) | ANYTHING)
    if draw(st.booleans()):
        document["unknown"] = draw(ANYTHING)
    return document


def _outcome(text: bytes) -> InferenceRequest | ErrorCode:
    try:
        return decode(text)
    except KernelPortError as error:
        str(error).encode()  # every message can go into a reply
        return error.code


def assert_same(fast: Any, slow: Any) -> None:
    assert type(fast) is type(slow), (fast, slow)
    if isinstance(fast, ErrorCode):
        assert fast is slow
        return
    assert list(fast.inputs) == list(slow.inputs)
    for one, other in zip(fast.inputs.values(), slow.inputs.values(), strict=True):
        assert one.datatype is other.datatype
        assert same_bits(one.array, other.array), (one.array, other.array)
    assert (fast.outputs, fast.id, fast.parameters) == (slow.outputs, slow.id, slow.parameters)
    assert (fast.binary_output, fast.priority, fast.timeout_us) == (slow.binary_output, slow.priority, slow.timeout_us)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_both_parsers_decide_alike(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    assert_same(_outcome(text.encode()), _outcome(('{"z0":NaN,' + text[1:]).encode()))


@settings(max_examples=300)
@given(st.data())
def test_numbers_arrive_bit_for_bit_as_numpy_reads_them(data: st.DataObject) -> None:
    datatype = data.draw(st.sampled_from([one for one in NUMERIC if one.name != "BF16"]))
    numbers = st.floats(allow_nan=False, allow_infinity=False) if datatype.kind == "float" else _elements(datatype)
    values = data.draw(st.lists(numbers, max_size=80))
    if datatype.kind == "float":
        top = float(np.finfo(datatype.dtype).max)
        values = [min(max(value, -top), top) for value in values]
    assert same_bits(decode_one(values, [len(values)], datatype.name), np.array(values, datatype.dtype))


VALID = [
    (
        body(
            entry([0.1, 0.2, 0.3, 0.4], [1, 4]),
            id="a",
            parameters={"a": 1},
            outputs=[{"name": "y", "parameters": {"binary_data": True}}],
        ),
        None,
    ),
    (body(entry(["a", "é"], [2], "BYTES"), entry([[1], [2]], [2, 1], "INT8", "y")), None),
    binary_body(
        ("x", "FP32", [2], b"\0" * 8), ("b", "BYTES", [2], bytes_content(b"q", b"")), ("c", "BOOL", [3], b"\0\1\2")
    ),
]


@settings(max_examples=300)
@given(st.data())
def test_no_bytes_whatever_cause_anything_but_a_refusal(data: st.DataObject) -> None:
    valid, length = data.draw(st.sampled_from(VALID))
    text = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        change = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if change == "set" and at < len(text):
            text[at] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del text[at : at + data.draw(st.integers(1, 9))]
        else:
            text[at:at] = data.draw(
                st.binary(max_size=5) | st.sampled_from([b"[", b"]", b'"', b"\\", b"null", b"NaN,", b"1e9"])
            )
    if data.draw(st.booleans()):
        length = data.draw(st.none() | st.integers(-2, len(text) + 2))
    try:
        decode_request(bytes(text), length, data.draw(st.sampled_from([MODEL, model(max_batch_size=4)])))
    except KernelPortError as error:
        str(error).encode()


@given(st.binary(max_size=200), st.none() | st.integers(0, 200))
def test_random_bytes_are_refused_politely(text: bytes, length: int | None) -> None:
    outcome = "model 'm': decoded"
    try:
        decode_request(text, length, MODEL)
    except KernelPortError as error:
        outcome = str(error)
    assert outcome.startswith("model 'm': ")
