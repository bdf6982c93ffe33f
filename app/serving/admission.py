"""Does a decoded request fit the model? The last check before the queue. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import TensorMismatch
from ..core.model import ModelSpec
from ..core.request import InferenceRequest, RequestedOutput
from ..core.tensor import Shape, Tensor, TensorSpec


def check(request: InferenceRequest, spec: ModelSpec, allow_oversized: bool = False) -> int:
    """The request's batch size in rows, 1 for a model without a batch dimension; raises TensorMismatch.

    With `allow_oversized` more rows than `max_batch_size` are let through, for a caller that splits them.
    """
    rows = -1
    matched = 0
    for want in spec.inputs:
        tensor = request.inputs.get(want.name)
        if tensor is not None:
            matched += 1
            rows = _check_tensor(tensor, want, rows, request, spec)
        elif not want.optional:
            raise _wrong_names(request, spec)
    if matched != len(request.inputs):
        raise _wrong_names(request, spec)
    if request.outputs is not None:
        _check_outputs(request.outputs, spec)
    if rows > spec.max_batch_size and not allow_oversized:
        raise _too_many_rows(rows, spec)
    return rows if rows > 0 else 1


def _check_tensor(tensor: Tensor, want: TensorSpec, rows: int, request: InferenceRequest, spec: ModelSpec) -> int:
    """The batch size as far as it is known, -1 as long as no tensor has told it."""
    shape = tensor.array.shape
    if tensor.datatype is not want.datatype or (shape != want.shape and not _fits(shape, want)):
        raise _wrong_tensor(tensor, want, spec)
    axis = want.batch_axis
    if axis is None or not spec.max_batch_size:
        return rows
    if axis >= len(shape):
        raise _wrong_tensor(tensor, want, spec)
    size: int = shape[axis]
    if size != rows and (rows >= 0 or not size):
        raise _wrong_batch(request, spec)
    return size


def _fits(shape: Shape, want: TensorSpec) -> bool:
    declared = want.shape
    if declared is None:
        return True
    if len(shape) != len(declared):
        return False
    for have, expected in zip(shape, declared, strict=True):  # noqa: SIM110 - all() would cost twice as much
        if expected not in (have, -1):
            return False
    return True


def _check_outputs(outputs: Iterable[RequestedOutput], spec: ModelSpec) -> None:
    for output in outputs:
        if output.name not in spec.outputs_by_name:
            names = _quoted(one.name for one in spec.outputs)
            raise TensorMismatch(f"model '{spec.name}': unexpected output '{output.name}'; the model has {names}")


def _wrong_names(request: InferenceRequest, spec: ModelSpec) -> TensorMismatch:
    missing = [want.name for want in spec.inputs if not want.optional and want.name not in request.inputs]
    unexpected = [name for name in request.inputs if name not in spec.inputs_by_name]
    faults = []
    if missing:
        faults.append(f"missing input {_quoted(missing)}")
    if unexpected:
        faults.append(f"unexpected input {_quoted(unexpected)}")
    expected = ", ".join(want.describe() + (" optional" if want.optional else "") for want in spec.inputs)
    return TensorMismatch(f"model '{spec.name}': {' and '.join(faults)}; the model takes {expected or 'no inputs'}")


def _wrong_tensor(tensor: Tensor, want: TensorSpec, spec: ModelSpec) -> TensorMismatch:
    if tensor.datatype is not want.datatype:
        return TensorMismatch(
            f"model '{spec.name}': input '{want.name}' has datatype {tensor.datatype.name}, "
            f"the model expects {want.datatype.name}"
        )
    hint = ""
    if spec.max_batch_size and want.shape is not None and len(tensor.shape) == len(want.shape) - 1:
        hint = "; the first dimension is the batch, send it even for a single row"
    return TensorMismatch(
        f"model '{spec.name}': input '{want.name}' has shape [{','.join(map(str, tensor.shape))}], "
        f"the model expects {_declared(want)}{hint}"
    )


def _declared(want: TensorSpec) -> str:
    """`[batch,3,-1]`: free dimensions by the names that the artifact gives them."""
    if want.shape is None:
        return f"at least {(want.batch_axis or 0) + 1} dimensions"
    names = want.symbols or ("",) * len(want.shape)
    return "[" + ",".join(name or str(dim) for name, dim in zip(names, want.shape, strict=False)) + "]"


def _wrong_batch(request: InferenceRequest, spec: ModelSpec) -> TensorMismatch:
    """The error for batch sizes that differ, or are zero."""
    sizes: dict[str, int] = {}
    for want in spec.inputs:
        tensor = request.inputs.get(want.name)
        axis = want.batch_axis
        if tensor is not None and axis is not None and axis < len(tensor.shape):
            sizes[want.name] = tensor.shape[axis]
    if set(sizes.values()) == {0}:
        return TensorMismatch(f"model '{spec.name}': the batch size is 0, it must be 1 to {spec.max_batch_size}")
    listed = ", ".join(f"'{name}' {size}" for name, size in sizes.items())
    return TensorMismatch(f"model '{spec.name}': all inputs must have the same batch size of at least 1, got {listed}")


def _too_many_rows(rows: int, spec: ModelSpec) -> TensorMismatch:
    return TensorMismatch(
        f"model '{spec.name}': the batch size is {rows}, the model takes at most {spec.max_batch_size} (max_batch_size)"
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
