"""Tensor data that came as Python objects."""

import math
from typing import Any

import numpy as np
import pytest
from infer_bodies import INTEGERS
from kernelport.core.errors import TensorMismatch
from kernelport.core.tensor import BF16, BOOL, BYTES, FP16, FP32, FP64, INT8, INT64, UINT64, DataType
from kernelport.protocol.json_values import tensor_from_values


def _read(datatype: DataType, dims: list[int], values: list[Any]) -> Any:
    return tensor_from_values("x", datatype, dims, math.prod(dims), values)


def test_null_is_nan_in_float_data_only() -> None:
    assert np.isnan(_read(FP32, [3], [None, 1, 2.5])[0])
    assert _read(FP32, [3], [None, 1, 2.5])[1:].tolist() == [1, 2.5]
    assert _read(BF16, [1], [None]).tolist() == [0x7FC0]
    for datatype in (*INTEGERS, BOOL, BYTES):
        with pytest.raises(TensorMismatch, match=r"data\[0\] is null"):
            _read(datatype, [1], [None])


def test_huge_integers_are_out_of_range_not_a_crash() -> None:
    with pytest.raises(TensorMismatch, match=r"data\[1\] is a huge integer"):
        _read(FP64, [2], [1, 10**400])
    with pytest.raises(TensorMismatch, match=r"data\[0\] is .* out of range for FP32"):
        _read(FP32, [1], [10**39])
    with pytest.raises(TensorMismatch, match=r"data\[1\] .* out of range for UINT64"):
        _read(UINT64, [2], [1, 10**300])


def test_nested_values_follow_the_shape() -> None:
    assert _read(INT8, [2, 1, 2], [[[1, 2]], [[3, 4]]]).tolist() == [[[1, 2]], [[3, 4]]]
    assert _read(BOOL, [2, 1], [[True], [False]]).tolist() == [[True], [False]]
    assert _read(BYTES, [1, 2], [["a", "b"]]).tolist() == [[b"a", b"b"]]
    assert _read(FP16, [2, 0], [[], []]).shape == (2, 0)


@pytest.mark.parametrize("values", [[[1, 2]], [[1], 2], [[[1]], [[2]]], [1, [[], 2]], [[], [1], [2], []]])
def test_other_nesting_is_flattened_in_order(values: list[Any]) -> None:
    assert _read(INT64, [2, 1], values).tolist() == [[1], [2]]


@pytest.mark.parametrize("values", [[[1], [2, 3]], [[], []], [[1]]])
def test_the_number_of_elements_must_be_the_shapes(values: list[Any]) -> None:
    with pytest.raises(TensorMismatch, match=r"input 'x': shape \[2,1\] needs 2 elements, data has"):
        _read(INT64, [2, 1], values)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (1.5, "1.5"), ("abc", "the string 'abc'"), ({}, "an object"), (None, "null")],
)
def test_the_wrong_element_is_described(value: Any, text: str) -> None:
    with pytest.raises(TensorMismatch, match=rf"input 'x': data\[1\] is {text}, INT8 needs an integer literal"):
        _read(INT8, [3], [1, value, 2])


def test_lone_surrogates_are_no_text() -> None:
    with pytest.raises(TensorMismatch, match=r"data\[1\] has a lone surrogate"):
        _read(BYTES, [2], ["a", "\ud800"])
