"""Datatypes, tensors and their declared shapes. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class DataType:
    """One datatype of the Open Inference Protocol; a singleton, compared by identity.

    `name` is the wire name, `dtype` the numpy type that carries it, `item_size` bytes per element
    on the wire (0 for BYTES), `kind` one of "bool", "int", "uint", "float", "bytes".
    BF16 travels as uint16 bit patterns because numpy has no bfloat16; BYTES as object arrays of `bytes`.
    """

    __slots__ = ("config_name", "dtype", "item_size", "kind", "maximum", "minimum", "name")

    def __init__(self, name: str, dtype: str, item_size: int, kind: str) -> None:
        self.name = name
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.item_size = item_size
        self.kind = kind
        self.config_name = "TYPE_STRING" if name == "BYTES" else f"TYPE_{name}"
        self.minimum = self.maximum = 0
        if kind in ("int", "uint"):
            limits = np.iinfo(self.dtype)
            self.minimum, self.maximum = int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (datatype, (self.name,))


BOOL = DataType("BOOL", "?", 1, "bool")
UINT8 = DataType("UINT8", "<u1", 1, "uint")
UINT16 = DataType("UINT16", "<u2", 2, "uint")
UINT32 = DataType("UINT32", "<u4", 4, "uint")
UINT64 = DataType("UINT64", "<u8", 8, "uint")
INT8 = DataType("INT8", "<i1", 1, "int")
INT16 = DataType("INT16", "<i2", 2, "int")
INT32 = DataType("INT32", "<i4", 4, "int")
INT64 = DataType("INT64", "<i8", 8, "int")
FP16 = DataType("FP16", "<f2", 2, "float")
BF16 = DataType("BF16", "<u2", 2, "float")
FP32 = DataType("FP32", "<f4", 4, "float")
FP64 = DataType("FP64", "<f8", 8, "float")
BYTES = DataType("BYTES", "O", 0, "bytes")

DATATYPES: dict[str, DataType] = {
    one.name: one
    for one in (
        BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, BF16, FP32, FP64, BYTES,
    )
}  # fmt: skip


def datatype(name: str) -> DataType:
    """The datatype with that wire name ("FP32", "BYTES"); raises KeyError for any other text."""
    return DATATYPES[name]


class Tensor:
    """A named array with its protocol datatype; the array's shape is the tensor's shape."""

    __slots__ = ("array", "datatype", "name")

    def __init__(self, name: str, datatype: DataType, array: Array) -> None:
        self.name = name
        self.datatype = datatype
        self.array = array

    @property
    def shape(self) -> Shape:
        """Dimensions, batch dimension included."""
        return self.array.shape

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.datatype.name}, {list(self.array.shape)})"


@dataclass(slots=True, frozen=True)
class TensorSpec:
    """What a model declares about one input or output.

    `shape` is the full shape a client sends (batch dimension included), -1 for a free dimension;
    None when the rank itself is unknown. `batch_axis` says along which axis requests are joined:
    None means the tensor is not batched (then it must be equal in all requests of a batch).
    """

    name: str
    datatype: DataType
    shape: Shape | None
    optional: bool = False
    batch_axis: int | None = 0
    reshape: Shape | None = None  # what the framework sees instead (Triton's `reshape`), batch excluded
    labels: tuple[str, ...] = ()  # class names of an output (Triton's `label_filename`)
    symbols: tuple[str, ...] = ()  # the artifact's names of its free dimensions, "" for fixed ones; same rank as shape

    def accepts(self, shape: Sequence[int]) -> bool:
        """True if a tensor of `shape` fits this declaration."""
        declared = self.shape
        if declared is None:
            return True
        if len(shape) != len(declared):
            return False
        return all(want in (-1, have) for want, have in zip(declared, shape, strict=True))

    def describe(self) -> str:
        """`NAME (FP32 [-1,4])`, for error messages."""
        shape = "[?]" if self.shape is None else "[" + ",".join(map(str, self.shape)) + "]"
        return f"{self.name} ({self.datatype.name} {shape})"
