"""Numbers from simdjson's buffers."""

from typing import Any

import numpy as np
import pytest
from infer_bodies import NUMERIC
from kernelport.core.errors import TensorMismatch
from kernelport.core.tensor import FP32, INT64, UINT8, UINT64, DataType
from kernelport.protocol.json_tensor import count_arrays, read_numbers, read_values
from kernelport.protocol.limits import DECODE_DEFAULTS, DecodeLimits
from simdjson import Parser


def _array(text: str) -> Any:
    return Parser().parse(text.encode())


@pytest.mark.parametrize("datatype", NUMERIC, ids=repr)
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_numbers_are_read_without_python_objects(datatype: DataType, size: int) -> None:
    array = read_numbers("x", datatype, [size], size, _array(str(list(range(size)) if size < 100 else [7] * size)))
    assert array is not None
    assert array.dtype == datatype.dtype
    assert array.shape == (size,)


def test_the_array_outlives_its_document() -> None:
    arrays = [read_numbers("x", INT64, [2, 1], 2, _array(f"[{number},1]")) for number in range(50)]
    assert [one.tolist() for one in arrays if one is not None] == [[[number], [1]] for number in range(50)]


@pytest.mark.parametrize("text", ["[1.5]", "[true]", "[null]", '["1"]', "[{}]", "[18446744073709551615]"])
def test_what_is_not_an_integer_is_left_to_the_slow_way(text: str) -> None:
    assert read_numbers("x", INT64, [1], 1, _array(text)) is None


def test_unsigned_64_bit_integers_have_their_own_buffer() -> None:
    array = read_numbers("x", UINT64, [1], 1, _array("[18446744073709551615]"))
    assert array is not None
    assert array.tolist() == [2**64 - 1]
    assert read_numbers("x", UINT64, [1], 1, _array("[-1]")) is None


def test_integers_out_of_range_are_refused_with_their_index() -> None:
    for size in (3, 500):
        with pytest.raises(TensorMismatch, match=rf"data\[{size - 1}\] is 256, out of range for UINT8 \(0 to 255\)"):
            read_numbers("x", UINT8, [size], size, _array(str([1] * (size - 1) + [256])))


def test_big_numeric_data_is_not_turned_into_objects_to_find_a_fault() -> None:
    with pytest.raises(TensorMismatch, match="no FP32"):
        read_values("x", FP32, [1], 1, _array("[null]"), DecodeLimits(strict_json_bytes=100), 100)
    assert np.isnan(read_values("x", FP32, [1], 1, _array("[null]"), DECODE_DEFAULTS, 100)[0])


@pytest.mark.parametrize(
    ("text", "dims", "arrays"),
    [
        ("[1,2,3,4]", [2, 2], 1), ("[[1,2],[3,4]]", [2, 2], 3), ("[[[1],[2]]]", [1, 2, 1], 4), ("[]", [0], 1),
        ("[[],[]]", [2, 0], 3), ("[1]", [], 1),
    ],
)  # fmt: skip
def test_arrays_of_a_nesting_are_counted(text: str, dims: list[int], arrays: int) -> None:
    assert count_arrays(dims, _array(text)) == arrays
