"""Outputs as their highest values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.errors import InvalidRequest
from kernelport.core.tensor import BF16, BOOL, BYTES, FP16, FP32, INT32, UINT8, Tensor, TensorSpec
from kernelport.protocol.classification import classified_axis, classify


def test_values_come_highest_first_with_index_and_label() -> None:
    tensor = Tensor("y", FP32, np.array([[0.1, 3.5, 2.25, -1.0, 7]], "<f4"))
    result = classify(tensor, 3, ("apple", "banana", "", "date"), 0)
    assert result.tolist() == [[b"7.000000:4", b"3.500000:1:banana", b"2.250000:2"]]
    assert classify(tensor, 9, (), 0).shape == (1, 5)


def test_without_a_batch_there_is_one_row() -> None:
    tensor = Tensor("y", INT32, np.array([[5, -7], [9, 0]], "<i4"))
    assert classify(tensor, 3, (), None).tolist() == [b"9:2", b"5:0", b"0:3"]
    assert classify(tensor, 1, (), 0).tolist() == [[b"5:0"], [b"9:0"]]
    assert classify(tensor, 1, (), 1).tolist() == [[b"9:1"], [b"0:1"]]


def test_of_equal_values_the_lower_index_comes_first() -> None:
    tensor = Tensor("y", UINT8, np.array([1, 1, 200, 1] + [1] * 50, "u1"))
    assert classify(tensor, 3, (), None).tolist() == [b"200:2", b"1:0", b"1:1"]


def test_digits_are_those_of_printf() -> None:
    tensor = Tensor("y", FP32, np.array([0.1, 123456.789, 1e10], "<f4"))
    assert classify(tensor, 3, (), None).tolist() == [b"10000000000.000000:2", b"123456.789062:1", b"0.100000:0"]


def test_half_precision_has_an_order_too() -> None:
    assert classify(Tensor("y", FP16, np.array([1, 2], "<f2")), 1, (), None).tolist() == [b"2.000000:1"]
    assert classify(Tensor("y", BF16, np.array([0x4000, 0xC000], "<u2")), 1, (), None).tolist() == [b"2.000000:0"]


def test_a_nan_is_no_high_value() -> None:
    tensor = Tensor("y", FP32, np.array([np.nan, 1, -np.inf, np.inf], "<f4"))
    assert [text.split(b":")[1] for text in classify(tensor, 4, (), None).tolist()] == [b"3", b"1", b"0", b"2"]


@pytest.mark.parametrize("datatype", [BOOL, BYTES])
def test_datatypes_without_an_order_are_refused(datatype: object) -> None:
    tensor = Tensor("y", datatype, np.zeros(2, bool))  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=f"output 'y': classification is not available for datatype {datatype}"):
        classify(tensor, 1, (), None)


def test_empty_outputs_have_no_classes() -> None:
    assert classify(Tensor("y", FP32, np.zeros((0, 3), "<f4")), 2, (), 0).shape == (0, 2)
    assert classify(Tensor("y", FP32, np.zeros((2, 0), "<f4")), 2, (), 0).shape == (2, 0)
    assert classify(Tensor("y", FP32, np.array(3, "<f4")), 2, (), None).tolist() == [b"3.000000:0"]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.integers(1, 70))
def test_the_quick_selection_is_a_full_sort(values: list[int], top_k: int) -> None:
    expected = sorted(range(len(values)), key=lambda index: (-values[index], index))[:top_k]
    texts = classify(Tensor("y", INT32, np.array(values, "<i4")), top_k, (), None).tolist()
    assert texts == [f"{values[index]}:{index}".encode() for index in expected]


def test_the_batch_axis_is_the_models() -> None:
    assert classified_axis(None, 0) is None
    assert classified_axis(None, 4) == 0
    assert classified_axis(TensorSpec("y", FP32, (2, -1), batch_axis=1), 4) == 1
    assert classified_axis(TensorSpec("y", FP32, (2,), batch_axis=None), 4) is None
