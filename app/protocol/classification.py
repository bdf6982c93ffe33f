"""The classification extension: an output as its k highest values with index and label. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.errors import InvalidRequest
from ..core.tensor import BF16, Array, Tensor, TensorSpec
from .narrowing import from_bfloat16


def classify(tensor: Tensor, top_k: int, labels: Sequence[str], batch_axis: int | None) -> Array:
    """BYTES elements `value:index[:label]`, highest first, shape [k] or [batch, k]; of equals the lower index first.

    All dimensions but the batch (None: there is none) are flattened; k is capped by the number of values.
    """
    kind = tensor.datatype.kind
    if kind in ("bool", "bytes"):
        raise InvalidRequest(
            f"output '{tensor.name}': classification is not available for datatype {tensor.datatype.name}"
        )
    array = from_bfloat16(tensor.array) if tensor.datatype is BF16 else tensor.array
    is_batched = batch_axis is not None and array.ndim > batch_axis
    rows = np.moveaxis(array, batch_axis, 0) if batch_axis is not None and is_batched else array[np.newaxis]
    rows = rows.reshape(len(rows), prod(rows.shape[1:]))
    result = np.empty((len(rows), min(top_k, rows.shape[1])), object)
    for position, row in enumerate(rows):
        result[position] = _top(row, top_k, labels, kind == "float")
    return result if is_batched else result[0]


def _top(row: Array, top_k: int, labels: Sequence[str], is_float: bool) -> list[bytes]:
    key = np.where(np.isnan(row), -np.inf, row) if is_float else row  # a NaN is no high value
    candidates = np.arange(row.size)
    if 0 < top_k < row.size // 4:
        threshold = np.partition(key, row.size - top_k)[row.size - top_k]
        candidates = np.flatnonzero(key >= threshold)
    # A stable ascending sort from the far end, read backwards, leaves equals in ascending index order.
    backwards = candidates[::-1]
    order = backwards[np.argsort(key[backwards], kind="stable")][::-1][:top_k]
    return [_text(row[index].item(), int(index), labels, is_float).encode() for index in order]


def _text(value: Any, index: int, labels: Sequence[str], is_float: bool) -> str:
    text = f"{value:.6f}:{index}" if is_float else f"{value}:{index}"
    return f"{text}:{labels[index]}" if index < len(labels) and labels[index] else text


def classified_axis(spec: TensorSpec | None, max_batch_size: int) -> int | None:
    """The batch axis of an output, None if it has none."""
    if not max_batch_size:
        return None
    return spec.batch_axis if spec is not None else 0
