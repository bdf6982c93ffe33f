"""What the decoder refuses: absurd shapes, depth, sizes, too much of anything; and its options."""

import json
import threading
from typing import Any

import numpy as np
import pytest
from infer_bodies import (
    MODEL,
    binary_body,
    body,
    bytes_content,
    decode,
    decode_one,
    entry,
)
from kernelport.core.errors import InvalidRequest, MalformedBody, PayloadTooLarge, TensorMismatch
from kernelport.core.request import InferenceRequest, RequestedOutput
from kernelport.protocol.limits import DecodeLimits
from kernelport.protocol.v2_decode import decode_request

GOOD = entry([0.1, 0.2, 0.3, 0.4], [1, 4])


def test_an_oversized_json_part_is_told_about_the_binary_extension() -> None:
    limits = DecodeLimits(max_json_bytes=1000)
    with pytest.raises(PayloadTooLarge, match=r"1000.*binary"):
        decode_one([1.5] * 1000, [1000], "FP32", limits)
    text, length = binary_body(("x", "FP32", [1000], b"\0" * 4000))
    assert decode_request(text, length, MODEL, limits).inputs["x"].shape == (1000,)


def test_only_small_documents_get_a_second_opinion() -> None:
    limits = DecodeLimits(strict_json_bytes=200)
    assert decode_one("[NaN]", [1], "FP32", limits).size == 1
    padded = "[NaN" + " " * 200 + "]"
    with pytest.raises(MalformedBody, match="NaN"):
        decode_one(padded, [1], "FP32", limits)
    with pytest.raises(TensorMismatch, match="null"):
        decode_one(padded.replace("NaN", "null"), [1], "FP32", limits)


@pytest.mark.parametrize("container", [bytes, bytearray, memoryview])
def test_bodies_come_as_any_sort_of_bytes(container: Any) -> None:
    assert decode_request(container(body(GOOD)), None, MODEL).inputs["x"].shape == (1, 4)
    assert np.isnan(decode_request(container(body(entry([None], [1]))), None, MODEL).inputs["x"].array[0])
    text, length = binary_body(
        ("x", "FP32", [2], np.array([1, 2], "<f4").tobytes()), ("b", "BYTES", [1], bytes_content(b"q"))
    )
    decoded = decode_request(container(text), length, MODEL)
    assert decoded.inputs["x"].array.tolist() == [1, 2]
    assert decoded.inputs["b"].array.tolist() == [b"q"]


def test_json_and_binary_inputs_mix_in_any_order() -> None:
    text, length = binary_body(("a", "INT16", [2], b"\x01\0\x02\0"), ("b", "UINT8", [1], b"\x07"))
    document = json.loads(text[:length])
    document["inputs"][1:1] = [entry([5], [1], "INT64", "between")]
    document["inputs"].append(entry([True], [1], "BOOL", "last"))
    head = json.dumps(document).encode()
    decoded = decode_request(head + text[length:], len(head), MODEL)
    assert {name: one.array.tolist() for name, one in decoded.inputs.items()} == {
        "a": [1, 2], "between": [5], "b": [7], "last": [True],
    }  # fmt: skip


def test_null_data_beside_an_empty_binary_input_is_absent_data() -> None:
    empty = {"name": "x", "shape": [0, 4], "datatype": "FP32", "data": None, "parameters": {"binary_data_size": 0}}
    assert decode(body(empty)).inputs["x"].shape == (0, 4)


@pytest.mark.parametrize("size", [-16, 16.0, "16", None, True, 2**64, [16], {}])
def test_a_binary_size_is_a_non_negative_integer(size: Any) -> None:
    wrong = {"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": size}}
    head = body(wrong)
    with pytest.raises(MalformedBody, match="binary_data_size"):
        decode_request(head + b"\0" * 16, len(head), MODEL)


def test_sizes_that_disagree_are_refused_with_both_numbers() -> None:
    text, length = binary_body(("x", "FP32", [1, 4], b"\0" * 16))
    with pytest.raises(MalformedBody, match=r"binary_data_size is 16, only 6 bytes are left"):
        decode_request(text[:-10], length, MODEL)
    with pytest.raises(MalformedBody, match=r"2 bytes are left over"):
        decode_request(text + b"ab", length, MODEL)
    with pytest.raises(MalformedBody, match=r"16 bytes are left over"):
        decode_request(body(GOOD) + b"\0" * 16, len(body(GOOD)), MODEL)
    with pytest.raises(MalformedBody, match=r"Inference-Header-Content-Length is 500"):
        decode_request(text, 500, MODEL)
    with pytest.raises(MalformedBody, match=r"Inference-Header-Content-Length is -1"):
        decode_request(text, -1, MODEL)
    with pytest.raises(
        MalformedBody, match=r"only 0 bytes are left.*header Inference-Header-Content-Length is missing"
    ):
        decode_request(text[:length], None, MODEL)
    text, length = binary_body(("x", "FP32", [1, 4], b"\0" * 12))
    with pytest.raises(TensorMismatch, match=r"takes 16 bytes, binary_data_size is 12"):
        decode_request(text, length, MODEL)


def test_two_sources_of_data_are_one_too_many() -> None:
    both = {**GOOD, "parameters": {"binary_data_size": 16}}
    head = body(both)
    with pytest.raises(MalformedBody, match="both data and the parameter binary_data_size"):
        decode_request(head + b"\0" * 16, len(head), MODEL)


def test_shared_memory_is_refused_with_the_alternative() -> None:
    region = {"name": "x", "shape": [4], "datatype": "FP32", "parameters": {"shared_memory_region": "r"}}
    with pytest.raises(InvalidRequest, match="shared memory is not offered"):
        decode(body(region))
    with pytest.raises(InvalidRequest, match="shared memory is not offered"):
        decode(body(GOOD, outputs=[{"name": "y", "parameters": {"shared_memory_region": "r"}}]))


def test_options_of_a_request_are_read() -> None:
    parameters = {"binary_data_output": True, "priority": 3, "timeout": 500, "sequence_id": 7, "mine": "x"}
    outputs = [{"name": "y", "parameters": {"binary_data": True}}, {"name": "z", "parameters": {"classification": 2}}]
    decoded = decode(body(GOOD, id="q", parameters=parameters, outputs=outputs))
    assert decoded == InferenceRequest(
        decoded.inputs,
        (RequestedOutput("y", True, 0), RequestedOutput("z", False, 2)),
        "q",
        {"sequence_id": 7, "mine": "x"},
        True,
        3,
        500,
    )


def test_an_empty_body_is_named_so() -> None:
    with pytest.raises(MalformedBody, match="the body is empty"):
        decode(b"")


def test_threads_can_decode_at_once() -> None:
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(300):
                assert decode_one([number] * 50, [50], "INT32").tolist() == [number] * 50
        except BaseException as fault:  # handed to the test's own thread
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_numbers_of_things_are_bounded() -> None:
    many = [entry([], [0], "INT8", f"i{number}") for number in range(5000)]
    with pytest.raises(MalformedBody, match="5000 inputs, this server takes at most"):
        decode(body(*many))
    with pytest.raises(MalformedBody, match="5000 outputs"):
        decode(body(GOOD, outputs=[{"name": f"o{number}"} for number in range(5000)]))
    with pytest.raises(MalformedBody, match="300 parameters"):
        decode(body(GOOD, parameters={f"p{number}": 1 for number in range(300)}))
    with pytest.raises(PayloadTooLarge, match="11 BYTES elements, this server takes at most 10"):
        decode_one(["a"] * 11, [11], "BYTES", DecodeLimits(max_strings=10))


@pytest.mark.parametrize("size", [1001, 100_000])
def test_names_are_bounded_so_that_errors_stay_short(size: int) -> None:
    long = "n" * size
    for text in (
        body(entry([1], [1], name=long)),
        body(GOOD, outputs=[{"name": long}]),
        body(GOOD, parameters={long: None}),
        body({**GOOD, "datatype": long}),
        body(entry([long], [1], "FP32")),
        body(entry([1], [long])),
    ):
        with pytest.raises(InvalidRequest) as failure:
            decode(text)
        assert len(str(failure.value)) < 300


def test_many_unknown_members_take_no_more_than_linear_time() -> None:
    members = {f"m{number}": number for number in range(200_000)}
    assert decode(body({**GOOD, **members}, **members)).inputs["x"].shape == (1, 4)


def test_a_shape_of_many_huge_dimensions_is_refused_at_once() -> None:
    with pytest.raises(TensorMismatch, match="dimensions"):
        decode(
            b'{"z":NaN,"inputs":[{"name":"x","shape":[' + b"99999999," * 100_000 + b'1],"datatype":"FP32","data":[1]}]}'
        )


def test_two_members_of_an_output_need_not_be_the_usual_two() -> None:
    assert decode(body(GOOD, outputs=[{"name": "y", "other": 1}])).outputs == (RequestedOutput("y"),)


def test_binary_and_json_inputs_stand_next_to_unknown_arrays() -> None:
    text, length = binary_body(("x", "INT8", [1], b"\x01"), members={"unknown": [[1], []]})
    assert decode_request(text, length, MODEL).inputs["x"].array.tolist() == [1]
