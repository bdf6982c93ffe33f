"""Infer bodies as they come over the wire, good and bad."""

from typing import Any

import numpy as np
import pytest
from infer_bodies import (
    INTEGERS,
    MODEL,
    binary_body,
    body,
    decode,
    decode_one,
    entry,
)
from kernelport.core.errors import InvalidRequest, KernelPortError, MalformedBody, TensorMismatch
from kernelport.core.tensor import DATATYPES
from kernelport.protocol.v2_decode import decode_request

GOOD = entry([0.1, 0.2, 0.3, 0.4], [1, 4])

# JSON texts per form; the last two have the wrong number of elements for shape [2]
FORMS = {
    "BOOL": ("[true,false]", "[true]", "[true,false,true]"),
    "BYTES": ('["a","h\\u00e9"]', '["a"]', '["a","b","c"]'),
    **{one.name: (f"[{one.minimum},{one.maximum}]", "[1]", "[1,2,3]") for one in INTEGERS},
    **dict.fromkeys(("FP16", "BF16", "FP32", "FP64"), ("[0.5,-2.0]", "[1.5]", "[1,2,3]")),
}
NOT_ELEMENTS = {
    "BOOL": ["0", "1", '"true"', "null", "1.0", "{}"],
    "BYTES": ["1", "true", "null", "{}", "1.5"],
    "int": ["1.0", "1e2", "true", '"7"', "null", "{}", "NaN"],
    "float": ["true", '"1"', "{}", '"NaN"'],
}


@pytest.mark.parametrize("datatype", DATATYPES)
def test_json_data_becomes_the_array_of_its_datatype(datatype: str) -> None:
    array = decode_one(FORMS[datatype][0], [2], datatype)
    assert array.dtype == DATATYPES[datatype].dtype
    assert array.shape == (2,)
    if DATATYPES[datatype] in INTEGERS:
        assert array.tolist() == [DATATYPES[datatype].minimum, DATATYPES[datatype].maximum]


@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("text", ["[]", "[[],[]]"])
def test_empty_tensors_keep_their_shape(datatype: str, text: str) -> None:
    array = decode_one(text, [2, 0], datatype)
    assert array.shape == (2, 0)
    assert array.dtype == DATATYPES[datatype].dtype


@pytest.mark.parametrize("datatype", DATATYPES)
def test_a_scalar_is_an_array_of_one_element(datatype: str) -> None:
    text = {"BOOL": "[true]", "BYTES": '["a"]'}.get(datatype, "[1]")
    assert decode_one(text, [], datatype).shape == ()
    with pytest.raises(MalformedBody, match="data must be an array"):
        decode_one(text[1:-1], [], datatype)


@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("form", [1, 2])
def test_too_few_or_too_many_elements_are_refused_with_both_numbers(datatype: str, form: int) -> None:
    with pytest.raises(
        TensorMismatch, match=rf"input 'x': shape \[2\] needs 2 elements, data has {1 if form == 1 else 3}"
    ):
        decode_one(FORMS[datatype][form], [2], datatype)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_elements_of_another_json_type_are_refused_with_their_index(datatype: str) -> None:
    kind = DATATYPES[datatype].kind
    first = {"BOOL": "true", "BYTES": '"a"'}.get(datatype, "1")
    for wrong in NOT_ELEMENTS[datatype if datatype in NOT_ELEMENTS else "int" if kind in ("int", "uint") else "float"]:
        with pytest.raises(TensorMismatch, match=r"input 'x'.*data\[1\]"):
            decode_one(f"[{first},{wrong}]", [2], datatype)


@pytest.mark.parametrize("datatype", [one.name for one in INTEGERS])
@pytest.mark.parametrize("many", [False, True])
def test_integers_beyond_the_datatype_are_refused_with_index_and_range(datatype: str, many: bool) -> None:
    limits = DATATYPES[datatype]
    size = 100 if many else 3
    for wrong in (limits.minimum - 1, limits.maximum + 1, 2**64, -(2**63) - 1, 10**30):
        data = [1] * size
        data[2] = wrong
        with pytest.raises(TensorMismatch, match=rf"data\[2\] is {wrong}, out of range for {datatype}"):
            decode_one(data, [size], datatype)


def test_integers_beyond_53_bits_are_exact() -> None:
    assert decode_one([9007199254740993, -(2**63)], [2], "INT64").tolist() == [9007199254740993, -(2**63)]
    assert decode_one([9007199254740993, 2**64 - 1], [2], "UINT64").tolist() == [9007199254740993, 2**64 - 1]


@pytest.mark.parametrize(("datatype", "wrong"), [("FP16", 70000), ("FP16", -65520), ("BF16", 3.4e38), ("FP32", 1e39)])
@pytest.mark.parametrize("size", [3, 1000])
def test_floats_that_would_become_infinite_are_refused(datatype: str, wrong: float, size: int) -> None:
    data = [1.5] * size
    data[1] = wrong
    with pytest.raises(TensorMismatch, match=rf"data\[1\] is .* out of range for {datatype}"):
        decode_one(data, [size], datatype)


def test_floats_are_rounded_to_the_nearest() -> None:
    assert decode_one([1.5, 65504, 6e-8, -0.0, 65519], [5], "FP16").tolist() == [
        1.5,
        65504,
        5.960464477539063e-08,
        -0.0,
        65504,
    ]
    assert np.signbit(decode_one([-0.0], [1], "FP32"))[0]
    assert decode_one([3.4028235e38, 1e-45], [2], "FP32").tolist() == [np.finfo(np.float32).max, 1.401298464324817e-45]
    assert decode_one([1.0, 2.0, -2.0], [3], "BF16").tolist() == [0x3F80, 0x4000, 0xC000]


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64"])
def test_bare_nan_infinity_and_null_are_taken_as_floats(datatype: str) -> None:
    array = decode_one("[NaN,Infinity,-Infinity,null,1]", [5], datatype)
    assert np.isnan(array[[0, 3]]).all()
    assert array[[1, 2, 4]].tolist() == [np.inf, -np.inf, 1]
    assert decode_one("[NaN,Infinity,-Infinity,1]", [4], "BF16").tolist() == [0x7FC0, 0x7F80, 0xFF80, 0x3F80]


def test_integers_are_fine_as_floats_however_big() -> None:
    array = decode_one("[1,-7,123456789012345678901234567890]", [3], "FP64")
    assert array.tolist() == [1.0, -7.0, float(123456789012345678901234567890)]


@pytest.mark.parametrize("data", [[[1, 2], [3, 4]], [1, 2, 3, 4]])
def test_data_is_flat_or_nested_like_the_shape(data: list[Any]) -> None:
    assert decode_one(data, [2, 2], "INT32").tolist() == [[1, 2], [3, 4]]
    assert decode_one(data, [2, 2], "FP64").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "data",
    [
        [[[1, 2, 3, 4]]], [1, [2], 3, 4], [[1, 2], [3, 4]], [[1], [2], [3], [4]], [[1, 2, 3, [4]]],
        [[], [1, 2, 3, 4]], [[1, 2, 3], 4], [[1, 2, 3, 4], []], [[1, 2, [3, 4]]], [[[1, 2]], [[3, 4]]],
    ],
)  # fmt: skip
@pytest.mark.parametrize("datatype", ["FP32", "INT64", "UINT8"])
def test_data_is_flattened_however_it_is_nested_as_triton_does(data: list[Any], datatype: str) -> None:
    for note in ("", "[[[", "["):  # brackets elsewhere must not confuse the counting
        found = decode(body(entry(data, [1, 4], datatype), id=note)).inputs["x"].array
        assert found.tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("data", [[[1, 2], [3]], [[1, 2, 3, 4], [5]], [1, 2, 3], [], [[]]])
@pytest.mark.parametrize("datatype", ["FP32", "INT64", "UINT8", "BOOL", "BYTES"])
def test_the_number_of_elements_must_be_the_shapes(data: list[Any], datatype: str) -> None:
    with pytest.raises(TensorMismatch, match="input 'x'"):
        decode(body(entry(data, [1, 4], datatype)))


def test_brackets_in_strings_and_unknown_members_do_not_matter() -> None:
    nested = entry([[1, 2], [3, 4]], [2, 2], "INT32", extra=[[1], {"a": [[]]}])
    strings = [entry(["[[", "{"], [2], "BYTES", "b"), entry([["[,"], ["]"]], [2, 1], "BYTES", "s")]
    text = body(nested, *strings, entry([1, 2], [2], "INT8", "c"), id="[{", zzz=[3, [4]])
    arrays = {name: tensor.array.tolist() for name, tensor in decode(text).inputs.items()}
    assert arrays == {"x": [[1, 2], [3, 4]], "b": [b"[[", b"{"], "s": [[b"[,"], [b"]"]], "c": [1, 2]}


def test_strings_become_utf8_bytes() -> None:
    text = r'["a\u0000b","\ud83d\ude00","\"\\\/","","héllo"]'
    assert decode_one(text, [5], "BYTES").tolist() == [b"a\0b", "\U0001f600".encode(), b'"\\/', b"", "héllo".encode()]


def test_a_string_of_a_megabyte_passes() -> None:
    assert len(decode_one(["x" * 2_000_000], [1], "BYTES")[0]) == 2_000_000


def test_invalid_utf8_passes_through_into_bytes_elements_only() -> None:
    raw = b'{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","data":["\xff\xfe"]}]}'
    assert decode(raw).inputs["x"].array.tolist() == [b"\xff\xfe"]
    with pytest.raises(MalformedBody):
        decode(raw.replace(b'"x"', b'"\xff"'))
    with pytest.raises(MalformedBody, match="surrogate"):
        decode(raw.replace(b"\xfe", rb"\udcfe"))


@pytest.mark.parametrize("escape", [r"\ud800", r"\udc00", r"a\ud83dx", r"\ude00\ud83d"])
def test_lone_surrogates_are_refused(escape: str) -> None:
    with pytest.raises(InvalidRequest):
        decode_one(f'["{escape}"]', [1], "BYTES")
    with pytest.raises(InvalidRequest):
        decode(b'{"id":"' + escape.encode() + b'","inputs":[]}')


def test_the_first_of_duplicate_members_counts() -> None:
    fast = b'{"inputs":[{"name":"x","name":"y","shape":[1],"datatype":"FP32","data":[1],"data":[2]}],"id":"a","id":"b"}'
    for text in (fast, fast.replace(b"[1],", b"[1],"), fast.replace(b'"id":"b"', b'"id":"b","z":NaN')):
        decoded = decode(text)
        assert decoded.id == "a"
        assert decoded.inputs["x"].array.tolist() == [1]


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode(b"\xef\xbb\xbf" + body(GOOD)).inputs["x"].shape == (1, 4)
    assert np.isnan(decode(b"\xef\xbb\xbf" + body(entry([float("nan")], [1]))).inputs["x"].array[0])


@pytest.mark.parametrize("id_", ["", "abc", "é☃", "a\0b", "x" * 10_000, "\U0001f600"])
def test_the_id_is_kept_as_it_is(id_: str) -> None:
    assert decode(body(GOOD, id=id_)).id == id_


def test_unknown_members_and_members_for_other_servers_are_ignored() -> None:
    decoded = decode(body({**GOOD, "extra": 1}, model_name="other", model_version="9", zzz={"a": []}))
    assert list(decoded.inputs) == ["x"]
    assert decoded.outputs is None
    assert decoded.parameters == {}


@pytest.mark.parametrize("parameters", [None, 1, "x", [1], {}])
def test_odd_parameters_of_an_input_are_ignored(parameters: Any) -> None:
    assert decode(body({**GOOD, "parameters": parameters})).inputs["x"].shape == (1, 4)


WRONG_BODIES = [
    "", " ", "{", "[]", "5", '"x"', "null", "hello", "{'inputs':[]}", '{"inputs":[],}', '{"inputs":[]} x',
    '{"inputs":[{"a":1,"b":2,"c":3,"d":4}]}',
    '/*c*/{"inputs":[]}', "{}", '{"inputs":null}', '{"inputs":{}}', '{"inputs":[5]}', '{"inputs":"abc"}',
    '{"inputs":[null]}', '{"inputs":[[]]}', '{"inputs":[{}]}', '{"inputs":["abcd"]}',
    '{"id":5,"inputs":[]}', '{"id":null,"inputs":[]}', '{"id":{},"inputs":[]}', '{"parameters":[],"inputs":[]}',
    '{"parameters":null,"inputs":[]}', '{"outputs":null,"inputs":[]}', '{"outputs":{},"inputs":[]}',
    '{"outputs":["y"],"inputs":[]}', '{"outputs":[{}],"inputs":[]}', '{"outputs":[1],"inputs":[]}',
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG_BODIES)
def test_documents_of_another_form_are_malformed(text: str) -> None:
    with pytest.raises(MalformedBody, match="model 'm': "):
        decode(text.encode())
    if text.strip().startswith("{") and text.endswith("}"):
        with pytest.raises(MalformedBody, match="model 'm': "):  # and the slow parser says the same
            decode((text[:-1] + (',"z":NaN}' if text != "{}" else '"z":NaN}')).encode())


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None}, {"name": 1}, {"name": ["x"]}, {"datatype": 1}, {"datatype": "FLOAT"}, {"datatype": "fp32"},
        {"datatype": "STRING"}, {"datatype": []}, {"datatype": None}, {"shape": "4"}, {"shape": 4}, {"shape": None},
        {"shape": {}}, {"shape": [[1]]}, {"shape": [1.0]}, {"shape": [-1, 4]}, {"shape": [True, 4]}, {"shape": ["4"]},
        {"shape": [None]}, {"data": {}}, {"data": "abcd"}, {"data": None}, {"data": 5}, {"data": True},
    ],
)  # fmt: skip
def test_input_members_of_a_wrong_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(MalformedBody):
        decode(body({**GOOD, **wrong}))
    with pytest.raises(MalformedBody):
        decode(body({**GOOD, **wrong}, z=float("nan")))


@pytest.mark.parametrize("member", ["name", "shape", "datatype", "data"])
def test_missing_input_members_are_refused(member: str) -> None:
    entry_without = {name: value for name, value in GOOD.items() if name != member}
    with pytest.raises(MalformedBody):
        decode(body(entry_without))
    with pytest.raises(MalformedBody):
        decode(body({**entry_without, "other": 1}))


def test_an_input_may_not_appear_twice() -> None:
    with pytest.raises(InvalidRequest, match="input 'x' appears twice"):
        decode(body(GOOD, GOOD))


@pytest.mark.parametrize(
    "shape",
    [
        [2**62, 4],
        [10**13, 4],
        [2**63, 4],
        [2**64, 4],
        [2**31, 2**31],
        [0, 2**40],
        [1] * 17,
        [1] * 300,
        [2**40],
        [10**40],
    ],
)
@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
def test_absurd_shapes_are_refused_before_anything_is_allocated(shape: list[int], datatype: str) -> None:
    with pytest.raises(InvalidRequest, match="input 'x'"):
        decode_one([1] if datatype == "FP32" else ["a"], shape, datatype)
    text, length = binary_body(("x", datatype, shape, b"\0" * 16))
    with pytest.raises(InvalidRequest, match="input 'x'"):
        decode_request(text, length, MODEL)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("depth", [62, 64, 65, 100, 1000, 2000, 100_000, 500_000])
def test_documents_are_refused_when_they_are_too_deep(brackets: str, depth: int) -> None:
    inner = depth - 1  # the document itself is one level
    nest = "[" * inner + "]" * inner if brackets == "[]" else '{"a":' * (inner - 1) + "{}" + "}" * (inner - 1)
    text = f'{{"inputs":[],"z":{nest}}}'.encode()
    if depth <= 64:
        assert decode(text).inputs == {}
    else:
        with pytest.raises(MalformedBody):
            decode(text)


def test_data_that_is_nested_without_end_is_refused() -> None:
    for depth in (65, 90, 1000, 5000, 3_000_000):
        with pytest.raises(InvalidRequest):
            decode_one("[" * depth + "1" + "]" * depth, [1], "FP32")


def test_a_failed_decode_does_not_pin_the_parser() -> None:
    errors = []
    for text in WRONG_BODIES + ['{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1,2]}]}'] * 3:
        with pytest.raises(KernelPortError) as failure:
            decode(text.encode())
        errors.append(failure)
        assert decode(body(GOOD)).inputs["x"].shape == (1, 4)
    assert all(one.value.__context__ is None and one.value.__cause__ is None for one in errors)
