"""The `shape` of a tensor, checked without overflow before anything is allocated. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..core.errors import MalformedBody, TensorMismatch
from .limits import DecodeLimits


def element_count(name: str, dims: Sequence[Any], limits: DecodeLimits) -> int:
    """How many elements an input of `dims` has; refuses anything but plain non-negative integers."""
    if len(dims) > limits.tensor_rank:
        raise TensorMismatch(
            f"input '{name}': shape has {len(dims)} dimensions, this server takes at most {limits.tensor_rank}"
        )
    count = 1
    for dim in dims:
        if dim.__class__ is not int or dim < 0:
            raise MalformedBody(
                f"input '{name}': shape must be an array of non-negative integers, got {shape_text(dims)}"
            )
        count *= dim
    # An empty tensor passes if its other dimensions are sane: some model may make them the size of an output.
    if not 0 < count <= limits.max_elements and prod(filter(None, dims)) > limits.max_elements:
        raise TensorMismatch(
            f"input '{name}': shape {shape_text(dims)} declares more elements than the {limits.max_elements} "
            "that this server takes"
        )
    return count


def shape_text(dims: Sequence[object]) -> str:
    """`[1,4]`, cut short when it is long."""
    shown = [_dim_text(dim) for dim in dims[:20]]
    if len(dims) > len(shown):
        shown.append(f"... {len(dims)} dimensions")
    return "[" + ",".join(shown) + "]"


def _dim_text(dim: object) -> str:
    if dim is None or isinstance(dim, bool):
        return {None: "null", True: "true", False: "false"}[dim]
    if isinstance(dim, (int, float)):
        return str(dim) if abs(dim) < 1e30 else "a huge number"
    return "a string" if isinstance(dim, str) else "an array or object"
