"""Tensors as bytes: the layout of the binary tensor data extension, both ways. Runs on: anywhere (pure).

Little-endian, row-major, no padding; BOOL one byte; BYTES elements each after their length as 4 bytes. Nothing is
allocated from a declared size before the bytes that are there have confirmed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from struct import Struct
from typing import Any, cast

import numpy as np

from ..core.errors import TensorMismatch
from ..core.tensor import BOOL, BYTES, Array, DataType
from .shape import shape_text

Body = bytes | bytearray | memoryview

_UINT8 = np.dtype(np.uint8)
_LENGTH = Struct("<I")
_length_at = _LENGTH.unpack_from


def read_tensor(
    name: str, datatype: DataType, dims: Sequence[int], count: int, body: Body, offset: int, size: int
) -> Array:
    """The array of an input whose `size` bytes start at `offset` of `body`: a view, copied only if misaligned."""
    if datatype is BYTES:
        return read_elements(name, dims, count, body, offset, size)
    needed = count * datatype.item_size
    if size != needed:
        raise TensorMismatch(
            f"input '{name}': shape {shape_text(dims)} of {datatype.name} takes {needed} bytes, "
            f"binary_data_size is {size}"
        )
    if not count:
        return np.empty(dims, datatype.dtype)
    if datatype is BOOL:
        # Any non-zero byte is true. Flat first: comparing an array without dimensions gives no array.
        return cast("Array", np.ndarray((count,), _UINT8, body, offset) != 0).reshape(dims)
    view = np.ndarray(dims, datatype.dtype, body, offset)
    return view if view.flags.aligned else view.copy()


def read_elements(name: str, dims: Sequence[int], count: int, body: Body, offset: int, size: int) -> Array:
    """The BYTES elements of input `name`; their number must be `count` and every one of the `size` bytes be used."""
    if count * 4 > size:
        raise TensorMismatch(
            f"input '{name}': shape {shape_text(dims)} of BYTES takes at least {count * 4} bytes (a 4-byte length for "
            f"each of {count} elements), got {size}"
        )
    data = body
    if not isinstance(body, bytes):  # slices of bytes are three times as fast as those of a memoryview
        data, offset = bytes(memoryview(body)[offset : offset + size]), 0
    end = offset + size
    elements: list[Any] = []
    for index in range(count):
        start = offset + 4
        if start > end:
            raise _too_short(name, dims, index, end - offset)
        offset = start + _length_at(data, offset)[0]
        if offset > end:
            raise TensorMismatch(
                f"input '{name}': the binary data of element {index} does not fit: it should have {offset - start} "
                f"bytes, {end - start} are left"
            )
        elements.append(data[start:offset])
    if offset < end:
        raise TensorMismatch(f"input '{name}': {end - offset} bytes are left over after its {count} elements")
    array = np.empty(count, object)
    array[:] = elements
    return array.reshape(dims)


def _too_short(name: str, dims: Sequence[int], index: int, left: int) -> TensorMismatch:
    if left:
        return TensorMismatch(
            f"input '{name}': the binary data of element {index} does not fit: its 4-byte length is cut off after "
            f"{left} bytes"
        )
    return TensorMismatch(
        f"input '{name}': shape {shape_text(dims)} needs {prod(dims)} elements, the binary data has {index}"
    )


def write_tensor(datatype: DataType, array: Array) -> bytes | memoryview:
    """The bytes of an output: a view of a big contiguous array, a copy otherwise."""
    if datatype is BYTES:
        return write_elements(array)
    flat = array.ravel()
    if flat.nbytes <= 4096:
        return flat.tobytes()  # cheaper than a view, and does not keep a whole batch alive
    return flat.view(_UINT8).data


def write_elements(array: Array) -> bytes:
    """BYTES elements, each after its length."""
    pack = _LENGTH.pack
    parts: list[bytes] = []
    for element in array.ravel().tolist():
        parts.append(pack(len(element)))
        parts.append(element)
    return b"".join(parts)
