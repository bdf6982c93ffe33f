"""From the runtime's view of a model's inputs and outputs to ours. Runs on: loader thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...core import tensor as types
from ...core.errors import LoadError
from ...core.tensor import DataType, Shape, TensorSpec
from ...protocol.onnx_file import Dim

# the runtime's name -> (our datatype, ONNX element type number)
ELEMENT_TYPES: dict[str, tuple[DataType, int]] = {
    "tensor(float)": (types.FP32, 1),
    "tensor(uint8)": (types.UINT8, 2),
    "tensor(int8)": (types.INT8, 3),
    "tensor(uint16)": (types.UINT16, 4),
    "tensor(int16)": (types.INT16, 5),
    "tensor(int32)": (types.INT32, 6),
    "tensor(int64)": (types.INT64, 7),
    "tensor(string)": (types.BYTES, 8),
    "tensor(bool)": (types.BOOL, 9),
    "tensor(float16)": (types.FP16, 10),
    "tensor(double)": (types.FP64, 11),
    "tensor(uint32)": (types.UINT32, 12),
    "tensor(uint64)": (types.UINT64, 13),
    "tensor(bfloat16)": (types.BF16, 16),
}


class NodeArg(Protocol):
    """What onnxruntime says about one input or output."""

    @property
    def name(self) -> str:
        """The tensor's name."""

    @property
    def type(self) -> str:
        """`tensor(float)` and the like."""

    @property
    def shape(self) -> Sequence[int | str | None]:
        """Sizes, names of symbolic dimensions, None for nameless ones; [] for scalars and for unknown rank."""


def tensor_specs(
    args: Iterable[NodeArg],
    declared: Mapping[str, tuple[Dim, ...] | None],
    role: str,
    is_optional: bool = False,
) -> tuple[TensorSpec, ...]:
    """Specs for inputs or outputs; `declared` are the file's own shapes, which know an unknown rank.

    Raises LoadError naming the tensor for a type that the protocol cannot carry.
    """
    specs = []
    for arg in args:
        found = ELEMENT_TYPES.get(arg.type)
        if found is None:
            raise LoadError(
                f"{role} {arg.name!r} has type {arg.type}, which the Open Inference Protocol cannot carry; "
                "re-export the model with plain tensors there (for scikit-learn models: zipmap=False)"
            )
        shape = _shape(arg, declared)
        symbols = _symbols(arg, shape)
        specs.append(TensorSpec(arg.name, found[0], shape, is_optional, symbols=symbols))
    return tuple(specs)


def _shape(arg: NodeArg, declared: Mapping[str, tuple[Dim, ...] | None]) -> Shape | None:
    if not arg.shape and arg.name in declared and declared[arg.name] is None:
        return None
    return tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in arg.shape)


def _symbols(arg: NodeArg, shape: Shape | None) -> tuple[str, ...]:
    if shape is None:
        return ()
    return tuple("" if isinstance(dim, int) else dim or "?" for dim in arg.shape)
