"""From 64-bit floats to the datatype of a tensor and back to something JSON can write. Runs on: anywhere (pure)."""

from __future__ import annotations

from math import hypot

import numpy as np

from ..core.errors import TensorMismatch
from ..core.tensor import BF16, FP16, FP32, FP64, Array, DataType

FLOAT32 = np.dtype("<f4")
LARGEST = {
    FP16.name: 65504.0,
    BF16.name: 3.3895313892515355e38,
    FP32.name: 3.4028234663852886e38,
    FP64.name: float("inf"),
}
_FEW = 32


def narrow_floats(name: str, datatype: DataType, wide: Array) -> Array:
    """`wide` (1-D, float64) rounded to nearest in `datatype`; a finite value that would become infinite is refused."""
    if datatype is FP64:
        return wide
    # hypot is the one cheap bound: no element of a vector is greater than its length.
    if wide.size <= _FEW and hypot(*wide.tolist()) <= LARGEST[datatype.name]:
        return wide.astype(datatype.dtype) if datatype is not BF16 else to_bfloat16(wide)
    with np.errstate(over="ignore"):
        narrow = wide.astype(datatype.dtype) if datatype is not BF16 else to_bfloat16(wide)
    finite = np.isfinite(narrow if datatype is not BF16 else from_bfloat16(narrow))
    if not finite.all():
        lost = ~finite & np.isfinite(wide)
        if lost.any():
            index = int(lost.argmax())
            raise TensorMismatch(
                f"input '{name}': data[{index}] is {wide[index]}, out of range for {datatype.name} "
                f"(largest {LARGEST[datatype.name]})"
            )
    return narrow


def to_bfloat16(wide: Array) -> Array:
    """The upper halves of 32-bit floats, rounded to nearest even from float64 in effect at once."""
    single = wide.astype(FLOAT32)
    bits = single.view(np.uint32).astype(np.uint64)
    # Rounding to float32 may have landed on a tie that the float64 was not; step back to the side it came from.
    tie = (bits & 0xFFFF) == 0x8000
    if tie.any():
        magnitude, exact = np.abs(single.astype(np.float64)), np.abs(wide)
        bits = bits + (tie & (magnitude < exact)) - (tie & (magnitude > exact)).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40  # a NaN keeps its sign and stays a NaN
    return np.where(np.isnan(single), quiet, rounded).astype("<u2")


def from_bfloat16(bits: Array) -> Array:
    """The exact float32 values of bfloat16 bit patterns."""
    return (bits.astype("<u4") << 16).view(FLOAT32)
