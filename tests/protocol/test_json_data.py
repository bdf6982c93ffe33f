"""Outputs as JSON data."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from infer_bodies import array_of
from kernelport.core.errors import InvalidRequest
from kernelport.core.tensor import BF16, BYTES, FP16, FP32, INT64
from kernelport.protocol.json_data import has_nonfinite, json_data, literal_data


def test_data_is_flat_and_contiguous_whatever_the_array() -> None:
    array = np.arange(6, dtype="<i8").reshape(2, 3).T
    data = json_data("y", INT64, array)
    assert data.tolist() == [0, 3, 1, 4, 2, 5]
    assert data.flags.c_contiguous
    assert json_data("y", INT64, np.arange(6)[::2]).flags.c_contiguous
    assert json_data("y", FP32, np.array(1, "<f4")).shape == (1,)


def test_half_precision_is_written_as_numbers() -> None:
    assert json_data("y", BF16, np.array([[0x3F80, 0xC000]], "<u2")).tolist() == [1.0, -2.0]
    assert orjson.dumps(json_data("y", FP16, np.array([1.5, 65504], "<f2")), option=orjson.OPT_SERIALIZE_NUMPY) == (
        b"[1.5,65504.0]"
    )


def test_bytes_are_written_as_strings_if_they_are_text() -> None:
    assert json_data("y", BYTES, array_of(BYTES, [b"a", "é".encode(), b""])) == ["a", "é", ""]
    with pytest.raises(InvalidRequest, match=r"output 'y': element 1 is not valid UTF-8.*binary_data"):
        json_data("y", BYTES, array_of(BYTES, [b"a", b"\xff\0\x80"]))


def test_only_floats_can_be_non_finite() -> None:
    assert has_nonfinite(np.array([1, np.inf]))
    assert not has_nonfinite(np.array([1, 2.0]))
    assert not has_nonfinite(np.array([1, 2]))
    assert not has_nonfinite(["null"])


@given(st.lists(st.floats(width=32) | st.sampled_from([float("nan"), float("inf"), -float("inf")])))
def test_literals_read_back_as_the_same_floats(values: list[float]) -> None:
    array = np.array(values, "<f4")
    text = orjson.dumps(literal_data(array))
    assert np.array_equal(np.array(json.loads(text), "<f4"), array, equal_nan=True)
