"""The raw binary request: a body that is nothing but the model's one input tensor. Runs on: event loop."""

from __future__ import annotations

from math import prod

import numpy as np

from ..core.errors import InvalidRequest, TensorMismatch
from ..core.model import ModelSpec
from ..core.request import InferenceRequest
from ..core.tensor import BYTES, Tensor, TensorSpec
from .binary import Body, read_tensor
from .shape import shape_text


def decode_raw(body: Body, spec: ModelSpec) -> InferenceRequest:
    """The request whose shape is deduced from the body's size; a batching model gets batch size 1."""
    if len(spec.inputs) != 1:
        raise InvalidRequest(
            f"a raw binary request needs a model with exactly 1 input, this one has {len(spec.inputs)}"
        )
    want = spec.inputs[0]
    dims = _one_row(want, spec.max_batch_size)
    size = len(body)
    if want.datatype is BYTES:
        if prod(dims) != 1 or -1 in dims or len(dims) - (spec.max_batch_size > 0) != 1:
            raise InvalidRequest(
                f"input '{want.name}': a raw binary request to a BYTES input needs the input shape [1], "
                f"the model's is {shape_text(want.shape or ())}"
            )
        array = np.empty(dims, object)
        array.reshape(-1)[0] = bytes(body)
    else:
        dims = _fill(want, dims, size)
        array = read_tensor(want.name, want.datatype, dims, prod(dims), body, 0, size)
    return InferenceRequest({want.name: Tensor(want.name, want.datatype, array)}, None, "", {}, True)


def _one_row(want: TensorSpec, max_batch_size: int) -> list[int]:
    """The declared dimensions, the batch dimension set to 1."""
    if want.shape is None:
        raise InvalidRequest(f"input '{want.name}': a raw binary request needs a model input of known rank")
    dims = list(want.shape)
    if max_batch_size and want.batch_axis is not None:
        dims[want.batch_axis] = 1
    return dims


def _fill(want: TensorSpec, dims: list[int], size: int) -> list[int]:
    """`dims` with the one free dimension deduced from the number of bytes."""
    free = [axis for axis, dim in enumerate(dims) if dim < 0]
    if len(free) > 1:
        raise InvalidRequest(
            f"input '{want.name}': the shape {shape_text(dims)} has more than one free dimension, "
            "so a raw binary request cannot tell them"
        )
    step = prod(dim for dim in dims if dim >= 0) * want.datatype.item_size
    if free and step and size % step == 0:
        dims[free[0]] = size // step
    elif free or size != step:
        wanted = f"a multiple of {step}" if free else str(step)
        raise TensorMismatch(
            f"input '{want.name}': shape {shape_text(dims)} of {want.datatype.name} takes {wanted} bytes, "
            f"the raw body has {size}"
        )
    return dims
