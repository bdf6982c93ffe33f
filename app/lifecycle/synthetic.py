"""Invented inputs for a model nobody gave samples for. Runs on: anywhere (pure).

Floats are uniform in (0, 1) and integers are 0 or 1: integers are so often indices, lengths or token ids that any
other value would be refused by models that are perfectly well. `WIDE` values exist for a second opinion only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..core.tensor import BF16, BYTES, Array, DataType, Shape, TensorSpec

# Sizes tried for free dimensions. 8 first: with 1, softmax, pooling and the like degenerate and say nothing;
# networks with strides want 32 or 64, convolutions without padding more, audio frames 512, some sequences exactly 1.
FREE_SIZES = (8, 1, 32, 64, 16, 224, 512)
WIDE = 100


def batch_axis(spec: TensorSpec) -> int | None:
    """The axis along which rows of this tensor are joined, None when it is shared by all rows."""
    axis, shape = spec.batch_axis, spec.shape
    return axis if axis is not None and shape is not None and len(shape) > axis and shape[axis] == -1 else None


def framework_shape(spec: TensorSpec, rows: int, size: int) -> Shape | None:
    """The shape the framework gets for `rows` rows with every other free dimension at `size`; None: unknown rank."""
    if spec.shape is None:
        return None
    axis = batch_axis(spec)
    if spec.reshape is not None:
        inner = tuple(size if dim == -1 else dim for dim in spec.reshape)
        return inner if axis is None else (rows, *inner)
    return tuple(rows if at == axis else size if dim == -1 else dim for at, dim in enumerate(spec.shape))


def synthetic_array(datatype: DataType, shape: Shape, random: np.random.Generator, highest: int = 1) -> Array:
    """Values of that type and shape, in the type's carrier (BF16 as bit patterns, BYTES as objects).

    Integers are 0 to `highest`; with `highest` above 1 floats are normally distributed instead of uniform in (0, 1).
    """
    if datatype.kind == "float":
        floats = random.random(shape, np.float32) if highest == 1 else random.standard_normal(shape, np.float32)
        if datatype is BF16:
            return np.asarray(np.asarray(floats).view(np.uint32) >> 16).astype(np.uint16)
        return np.asarray(floats, datatype.dtype)
    numbers = np.asarray(random.integers(0, highest + 1, shape, np.int8))
    if datatype is BYTES:
        texts = np.empty(numbers.size, object)
        texts[:] = [str(number).encode() for number in numbers.ravel().tolist()]
        return texts.reshape(shape)
    return numbers.astype(datatype.dtype)


def synthetic_inputs(
    specs: Sequence[TensorSpec], rows: int, size: int, random: np.random.Generator, highest: int = 1
) -> dict[str, Array] | None:
    """One request of `rows` rows for all required inputs; None when an input's rank is unknown."""
    inputs = {}
    for spec in specs:
        if spec.optional:
            continue
        shape = framework_shape(spec, rows, size)
        if shape is None:
            return None
        inputs[spec.name] = synthetic_array(spec.datatype, shape, random, highest)
    return inputs


def single_row_candidates(specs: Sequence[TensorSpec], random: np.random.Generator) -> Iterator[dict[str, Array]]:
    """Requests of one row worth trying, the most telling first; nothing when an input's rank is unknown.

    A tensor like a recurrent state, [2, batch, 128], has its batch dimension further in: when no size fits, every
    size is tried again with the first free dimension of such tensors at one row.
    """
    sizes = free_sizes(specs)
    inner = [_inner_batch(spec) for spec in specs]
    for variant in (specs, inner) if inner != list(specs) else (specs,):
        for size in sizes:
            inputs = synthetic_inputs(variant, 1, size, random)
            if inputs is not None:
                yield inputs


def free_sizes(specs: Sequence[TensorSpec]) -> tuple[int, ...]:
    """The sizes worth trying: just one when no dimension besides the batch is free."""
    for spec in specs:
        shape = spec.reshape if spec.reshape is not None else spec.shape or ()
        axis = batch_axis(spec) if spec.reshape is None else None
        if not spec.optional and any(dim == -1 and at != axis for at, dim in enumerate(shape)):
            return FREE_SIZES
    return (1,)


def _inner_batch(spec: TensorSpec) -> TensorSpec:
    if batch_axis(spec) is not None or spec.reshape is not None or not spec.shape or -1 not in spec.shape:
        return spec
    return TensorSpec(spec.name, spec.datatype, spec.shape, spec.optional, spec.shape.index(-1))
