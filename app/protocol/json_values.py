"""Tensor data as Python objects: the exact checks, with the flat index of what is wrong. Runs on: event loop.

Both JSON parsers end here whenever the fast way (`json_tensor`) refuses, so the rules are written down once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import TensorMismatch
from ..core.tensor import Array, DataType
from .narrowing import narrow_floats
from .shape import shape_text

FLOAT64 = np.dtype("<f8")


def tensor_from_values(name: str, datatype: DataType, dims: Sequence[int], count: int, values: list[Any]) -> Array:
    """The array of input `name`; `values` is flat, or nested in any way, as Triton takes it."""
    flat = _flatten(values)
    if len(flat) != count:
        raise count_mismatch(name, dims, count, len(flat))
    return _READERS[datatype.kind](name, datatype, flat).reshape(dims)


def count_mismatch(name: str, dims: Sequence[int], count: int, actual: int) -> TensorMismatch:
    """The error for data of the wrong length."""
    return TensorMismatch(f"input '{name}': shape {shape_text(dims)} needs {count} elements, data has {actual}")


def _flatten(values: list[Any]) -> list[Any]:
    """The elements in order, however they are nested; a flat list comes back as it is, its elements unchecked."""
    while list in set(map(type, values)):
        inner: list[Any] = []
        for value in values:
            if value.__class__ is list:
                inner += value
            else:
                inner.append(value)
        values = inner
    return values


def _floats(name: str, datatype: DataType, values: list[Any]) -> Array:
    kinds = set(map(type, values))
    if kinds - {float}:
        if kinds - {float, int, type(None)}:
            raise _wrong_type(name, datatype, values, (float, int, type(None)), "a number")
        values = [math.nan if value is None else _to_float(name, datatype, values, value) for value in values]
    return narrow_floats(name, datatype, np.array(values, FLOAT64))


def _to_float(name: str, datatype: DataType, values: list[Any], value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        index = values.index(value)
    raise TensorMismatch(f"input '{name}': data[{index}] is a huge integer, out of range for {datatype.name}")


def _integers(name: str, datatype: DataType, values: list[Any]) -> Array:
    if set(map(type, values)) - {int}:
        raise _wrong_type(name, datatype, values, (int,), "an integer literal")
    if values and not (min(values) >= datatype.minimum and max(values) <= datatype.maximum):
        index = next(at for at, value in enumerate(values) if not datatype.minimum <= value <= datatype.maximum)
        raise out_of_range(name, datatype, index, values[index])
    return np.array(values, datatype.dtype)


def out_of_range(name: str, datatype: DataType, index: int, value: object) -> TensorMismatch:
    """The error for an integer that the datatype cannot hold."""
    return TensorMismatch(
        f"input '{name}': data[{index}] is {str(value)[:60]}, out of range for {datatype.name} "
        f"({datatype.minimum} to {datatype.maximum})"
    )


def _booleans(name: str, datatype: DataType, values: list[Any]) -> Array:
    if set(map(type, values)) - {bool}:
        raise _wrong_type(name, datatype, values, (bool,), "true or false")
    return np.array(values, np.bool_)


def _bytes(name: str, datatype: DataType, values: list[Any]) -> Array:
    if set(map(type, values)) - {str}:
        raise _wrong_type(name, datatype, values, (str,), "a string")
    array = np.empty(len(values), object)
    try:
        # The slow parser hands on invalid UTF-8 as lone surrogates; this brings the bytes back.
        array[:] = [value.encode("utf-8", "surrogateescape") for value in values]
        return array
    except UnicodeEncodeError as error:
        culprit = error.object
    index = values.index(culprit)
    raise TensorMismatch(
        f"input '{name}': data[{index}] has a lone surrogate, which stands for no character; "
        "send arbitrary bytes with the binary tensor data extension"
    )


def _wrong_type(
    name: str, datatype: DataType, values: list[Any], allowed: tuple[type, ...], wanted: str
) -> TensorMismatch:
    index = next(index for index, value in enumerate(values) if type(value) not in allowed)
    return TensorMismatch(
        f"input '{name}': data[{index}] is {_describe(values[index])}, {datatype.name} needs {wanted}"
    )


def _describe(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)[:60]
    if isinstance(value, str):
        return f"the string {value[:40]!a}"
    return "an array" if isinstance(value, list) else "an object"


_READERS = {"float": _floats, "int": _integers, "uint": _integers, "bool": _booleans, "bytes": _bytes}
