"""Rounding of 64-bit floats to the datatypes of tensors."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelport.core.errors import TensorMismatch
from kernelport.core.tensor import BF16, FP16, FP32, FP64, DataType
from kernelport.protocol.narrowing import from_bfloat16, narrow_floats, to_bfloat16


@settings(max_examples=400)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-38, 1e-38) | st.floats(0.5, 2))
def test_bfloat16_is_the_nearest_with_ties_to_even(value: float) -> None:
    bits = int(to_bfloat16(np.array([value]))[0]) if abs(value) < 3.3e38 else None
    if bits is None:
        return
    exact = Fraction(value)
    distance = abs(Fraction(float(from_bfloat16(np.array([bits], "<u2"))[0])) - exact)
    for neighbour in (bits - 1, bits + 1):
        if not 0 <= neighbour <= 0xFFFF or neighbour & 0x7FFF >= 0x7F80 or neighbour & 0x8000 != bits & 0x8000:
            continue
        other = abs(Fraction(float(from_bfloat16(np.array([neighbour], "<u2"))[0])) - exact)
        assert distance < other or (distance == other and bits % 2 == 0)


def test_rounding_twice_does_not_move_a_value_over_a_tie() -> None:
    tie = 1 + 2.0**-8  # halfway between two bfloat16 values
    below, above = tie - 2.0**-40, tie + 2.0**-40  # both become the tie itself as float32
    assert to_bfloat16(np.array([below, tie, above, -above])).tolist() == [0x3F80, 0x3F80, 0x3F81, 0xBF81]


def test_bfloat16_keeps_signs_nan_and_infinity() -> None:
    wide = np.array([-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf])
    assert to_bfloat16(wide).tolist() == [0x8000, 0, 0x7FC0, 0xFFC0, 0x7F80, 0xFF80]


def test_every_bfloat16_survives_the_round_trip() -> None:
    bits = np.arange(0x10000, dtype="<u2")
    finite = bits[np.isfinite(from_bfloat16(bits))]
    assert (to_bfloat16(from_bfloat16(finite).astype("<f8")) == finite).all()


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    ("datatype", "largest", "too_much"),
    [
        (FP16, 65519.99, 65520.0),
        (BF16, 3.3961e38, 3.3962e38),
        (FP32, 3.4028235677973362e38, 3.4028235677973366e38),
    ],
)
def test_what_rounds_to_a_finite_value_passes(datatype: DataType, largest: float, too_much: float, size: int) -> None:
    for sign in (1, -1):
        narrow = narrow_floats("x", datatype, np.full(size, sign * largest))
        values = from_bfloat16(narrow) if datatype is BF16 else narrow
        assert np.isfinite(values).all()
        wide = np.zeros(size)
        wide[-1] = sign * too_much
        with pytest.raises(TensorMismatch, match=rf"input 'x': data\[{size - 1}\] is .* out of range for {datatype}"):
            narrow_floats("x", datatype, wide)


def test_infinities_that_were_sent_pass() -> None:
    for datatype in (FP16, FP32, FP64):
        assert narrow_floats("x", datatype, np.array([np.inf, -np.inf, 1])).tolist() == [np.inf, -np.inf, 1]


def test_nothing_warns_or_rounds_for_fp64() -> None:
    wide = np.array([1e308, 1.7976931348623157e308, 5e-324])
    assert narrow_floats("x", FP64, wide) is wide
