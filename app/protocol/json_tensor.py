"""Numeric JSON data to numpy without Python objects, through simdjson's buffers. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from simdjson import Array as JsonArray

from ..core.errors import TensorMismatch
from ..core.tensor import INT64, UINT64, Array, DataType
from .json_values import FLOAT64, count_mismatch, out_of_range, tensor_from_values
from .limits import DecodeLimits
from .narrowing import narrow_floats

_INT64 = np.dtype("<i8")
_UINT64 = np.dtype("<u8")
_FEW = 32
READABLE = frozenset(("float", "int", "uint"))  # kinds of datatypes that simdjson has buffers for


def read_numbers(name: str, datatype: DataType, dims: Sequence[int], count: int, data: JsonArray) -> Array | None:
    """The array of a numeric input, or None if simdjson sees anything but numbers of the right sort in `data`.

    Nested arrays are flattened in order, however they are nested, as Triton does it.
    """
    kind = datatype.kind
    if count == 0 or kind not in READABLE:
        return None
    try:
        if kind == "float":
            flat = np.frombuffer(data.as_buffer(of_type="d"), FLOAT64)
        elif datatype is UINT64:
            flat = np.frombuffer(data.as_buffer(of_type="u"), _UINT64)
        else:
            flat = np.frombuffer(data.as_buffer(of_type="i"), _INT64)
    except (TypeError, ValueError):
        return None
    if len(flat) != count:
        raise count_mismatch(name, dims, count, len(flat))
    flat = narrow_floats(name, datatype, flat) if kind == "float" else _narrow_integers(name, datatype, flat)
    return flat if len(dims) == 1 else flat.reshape(dims)


def _narrow_integers(name: str, datatype: DataType, wide: Array) -> Array:
    if datatype is INT64 or datatype is UINT64:
        return wide
    lowest: Any
    highest: Any
    if wide.size <= _FEW:
        values = wide.tolist()
        lowest, highest = min(values), max(values)
    else:
        lowest, highest = wide.min(), wide.max()
    if lowest < datatype.minimum or highest > datatype.maximum:
        index = int(((wide < datatype.minimum) | (wide > datatype.maximum)).argmax())
        raise out_of_range(name, datatype, index, wide[index])
    return wide.astype(datatype.dtype)


def read_values(
    name: str, datatype: DataType, dims: Sequence[int], count: int, data: JsonArray, limits: DecodeLimits, size: int
) -> Array:
    """The array of any input, by way of Python objects: BOOL, BYTES, empty tensors, and whatever is wrong.

    Of numeric data in a text of `size` bytes above the slow parser's limit only the fact is reported.
    """
    if datatype.kind in READABLE and count and size >= limits.strict_json_bytes:
        raise TensorMismatch(
            f"input '{name}': data has an element that is no {datatype.name} (null for NaN is only taken in JSON of "
            f"less than {limits.strict_json_bytes} bytes; the binary tensor data extension has no such limit)"
        )
    if len(data) > count and data[0].__class__ is not JsonArray:
        raise count_mismatch(name, dims, count, len(data))
    return tensor_from_values(name, datatype, dims, count, data.as_list())


def count_arrays(dims: Sequence[int], data: JsonArray) -> int:
    """How many arrays `data` consists of: 1 if it is flat, else as many as nesting it exactly like `dims` takes."""
    if not len(data) or data[0].__class__ is not JsonArray:
        return 1
    arrays = rows = 1
    for dim in dims[:-1]:
        rows *= dim
        arrays += rows
    return arrays
