"""Joining requests into one input set, and cutting outputs back. Runs on: worker thread (pure)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..core.errors import BackendError
from ..core.model import ModelSpec
from ..core.request import InferenceRequest, output_names
from ..core.tensor import BYTES, Array, Shape, Tensor, TensorSpec
from .policy import BatchPolicy
from .queue import Entry


def match_key(request: InferenceRequest, spec: ModelSpec) -> Hashable:
    """Equal for two requests exactly when they may share a batch.

    Holds, for every input present: its name, its dimensions without the batch axis, and its very bytes when it is
    not batched at all (a sampling rate, say). Datatypes are the model's own, so they need no place here.
    """
    key: list[Hashable] = []
    declared = spec.inputs_by_name
    for name, tensor in request.inputs.items():
        array = tensor.array
        axis = declared[name].batch_axis
        if axis == 0:
            key.append((name, array.shape[1:]))
        elif axis is None:
            key.append((name, array.shape, tuple(array.ravel()) if array.dtype == object else array.tobytes()))
        else:
            key.append((name, array.shape[:axis], array.shape[axis + 1 :]))
    if len(key) == 1:
        return key[0]
    return frozenset(key)


def pad_to_bucket(request: InferenceRequest, policy: BatchPolicy) -> dict[tuple[str, int], int]:
    """Grow the request's inputs to their shape buckets, in place; returns the sizes before, per (input, axis).

    A dimension above its largest bucket stays as it is.
    """
    before: dict[tuple[str, int], int] = {}
    for name, axis, sizes in policy.shape_buckets:
        tensor = request.inputs.get(name)
        if tensor is None or axis >= tensor.array.ndim:
            continue
        size = tensor.array.shape[axis]
        place = bisect_left(sizes, size)
        if place == len(sizes) or sizes[place] == size:
            continue
        before[(name, axis)] = size
        widths = [(0, 0)] * tensor.array.ndim
        widths[axis] = (0, sizes[place] - size)
        filler: object = b"" if tensor.datatype is BYTES else policy.pad_value
        padded = np.pad(tensor.array, widths, constant_values=np.array(filler, tensor.array.dtype))
        request.inputs[name] = Tensor(name, tensor.datatype, padded)
    return before


def padded_size(rows: int, allowed: Sequence[int]) -> int:
    """The smallest allowed batch size that holds `rows`; `rows` itself when none does."""
    place = bisect_left(allowed, rows)
    return allowed[place] if place < len(allowed) else rows


def merge(entries: Sequence[Entry], spec: ModelSpec, policy: BatchPolicy, rows: int) -> tuple[dict[str, Array], int]:
    """One input set for all entries, and the rows it really has (padding included)."""
    declared = spec.inputs_by_name
    first = entries[0].request.inputs
    merged: dict[str, Array] = {}
    if len(entries) == 1:
        for name, tensor in first.items():
            merged[name] = tensor.array
    else:
        for name, tensor in first.items():
            axis = declared[name].batch_axis
            if axis is None:
                merged[name] = tensor.array
            else:
                merged[name] = np.concatenate([entry.request.inputs[name].array for entry in entries], axis)
    total = rows
    if policy.allowed_rows:
        total = padded_size(rows, policy.allowed_rows)
        if total > rows:
            for name, array in merged.items():
                axis = declared[name].batch_axis
                if axis is not None:
                    merged[name] = _repeat_last(array, axis, total - rows)
    for one in spec.inputs:
        if one.reshape is not None and one.name in merged:
            merged[one.name] = _reshape(merged[one.name], _inner(one, spec), one.reshape, spec.max_batch_size > 0)
    return merged, total


def wanted_outputs(entries: Sequence[Entry], spec: ModelSpec) -> tuple[str, ...] | None:
    """The union of what the entries ask for; None when it is everything."""
    union: set[str] = set()
    for entry in entries:
        names = output_names(entry.request.outputs)
        if names is None:
            return None
        union.update(names)
    if len(union) == len(spec.outputs):
        return None
    return tuple(one.name for one in spec.outputs if one.name in union)


def split(
    entries: Sequence[Entry], outputs: Mapping[str, Array], spec: ModelSpec, rows: int, total: int
) -> list[list[Tensor]]:
    """Cut a batch's outputs into each entry's own, in the model's order, only what it asked for.

    Raises BackendError when a batched output does not have as many rows as went in.
    """
    parts: list[list[Tensor]] = [[] for _ in entries]
    wanted = [None if e.request.outputs is None else {o.name for o in e.request.outputs} for e in entries]
    for one in spec.outputs:
        array = outputs.get(one.name)
        if array is None:
            continue
        array = _client_shape(array, one, spec)
        axis = one.batch_axis if spec.max_batch_size else None
        if axis is not None:
            _check_rows(array, one, axis, rows, total, spec)
        if len(entries) == 1 and total == rows:
            if wanted[0] is None or one.name in wanted[0]:
                parts[0].append(Tensor(one.name, one.datatype, array))
            continue
        start = 0
        for entry, part, names in zip(entries, parts, wanted, strict=True):
            end = start + entry.rows
            if names is None or one.name in names:
                mine = array if axis is None else array[start:end] if axis == 0 else _slice(array, axis, start, end)
                part.append(Tensor(one.name, one.datatype, mine))
            start = end
    for entry, part in zip(entries, parts, strict=True):
        if entry.sizes:
            _crop(entry, part, spec)
    return parts


def _check_rows(array: Array, one: TensorSpec, axis: int, rows: int, total: int, spec: ModelSpec) -> None:
    if array.ndim <= axis or array.shape[axis] != total:
        raise BackendError(
            f"model '{spec.name}' version {spec.version}: output '{one.name}' has shape {list(array.shape)} for "
            f"{total} rows in; axis {axis} must have {total} rows out. The model does not treat its first dimension "
            "as a batch: set max_batch_size: 0"
        )


def _slice(array: Array, axis: int, start: int, end: int) -> Array:
    return array[(slice(None),) * axis + (slice(start, end),)]


def _repeat_last(array: Array, axis: int, times: int) -> Array:
    last = _slice(array, axis, array.shape[axis] - 1, array.shape[axis])
    return np.concatenate([array, np.repeat(last, times, axis)], axis)


def _inner(one: TensorSpec, spec: ModelSpec) -> Shape:
    """The declared shape without the batch dimension."""
    shape = one.shape or ()
    return shape[1:] if spec.max_batch_size else shape


def _reshape(array: Array, declared: Shape, target: Shape, has_batch: bool) -> Array:
    """Apply Triton's `reshape`: the free dimensions of `target` are those of `declared`, the array's own, in order."""
    shape = array.shape[:1] if has_batch else ()
    if target.count(-1) <= 1:
        rows = shape[0] if shape else 1
        known = rows
        for size in target:
            known *= 1 if size == -1 else size
        free = array.size // known if known else 0
        return array.reshape(shape + tuple(free if size == -1 else size for size in target))
    sizes = array.shape[len(shape) :]
    own = iter([size for size, dim in zip(sizes, declared, strict=False) if dim == -1])
    return array.reshape(shape + tuple(next(own) if size == -1 else size for size in target))


def _client_shape(array: Array, one: TensorSpec, spec: ModelSpec) -> Array:
    """Undo an output's `reshape`: the framework's shape becomes the one that clients were promised."""
    if one.reshape is None or one.shape is None:
        return array
    return _reshape(array, one.reshape, _inner(one, spec), spec.max_batch_size > 0)


def _crop(entry: Entry, part: list[Tensor], spec: ModelSpec) -> None:
    """Give outputs the size that the request had before its inputs were padded to a shape bucket.

    An output dimension is cut only when the model declares it free and its symbol is the padded input dimension's,
    or, where the model names no symbols, when its size is that of the one padded dimension.
    """
    sizes = entry.sizes or {}
    for tensor in part:
        declared = spec.outputs_by_name[tensor.name]
        if declared.shape is None:
            continue
        for (name, axis), size in sizes.items():
            padded = entry.request.inputs[name].array.shape[axis]
            symbol = _symbol(spec.inputs_by_name[name], axis)
            for position, dim in enumerate(declared.shape):
                if dim != -1 or position == declared.batch_axis or tensor.array.ndim <= position:
                    continue
                own = _symbol(declared, position)
                same = own == symbol if own and symbol else len(sizes) == 1
                if same and tensor.array.shape[position] == padded:
                    tensor.array = _slice(tensor.array, position, 0, size)


def _symbol(declared: TensorSpec, axis: int) -> str:
    return declared.symbols[axis] if axis < len(declared.symbols) else ""
