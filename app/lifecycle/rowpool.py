"""Different rows to examine a model with, and taking some of them as one batch. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..core.tensor import Array, TensorSpec
from .synthetic import batch_axis, synthetic_array, synthetic_inputs

MAX_BYTES = 64 << 20
Rows = dict[str, Array]


class RowPool:
    """Up to `max_rows` rows for the required inputs of a model; row 0 and row 1 are never equal if they can differ."""

    def __init__(self, specs: Sequence[TensorSpec], arrays: Rows) -> None:
        self._axes = {spec.name: batch_axis(spec) for spec in specs}
        self._arrays = arrays
        self.rows = next(arrays[name].shape[axis] for name, axis in self._axes.items() if axis is not None)
        self._make_different(specs)

    @classmethod
    def invented(
        cls, specs: Sequence[TensorSpec], max_rows: int, size: int, random: np.random.Generator, highest: int = 1
    ) -> RowPool | None:
        """Made-up rows with free dimensions of `size`; None when an input's rank is unknown."""
        one = synthetic_inputs(specs, 1, size, random)
        if one is None:
            return None
        arrays = synthetic_inputs(specs, _rows_that_fit(one, max_rows), size, random, highest)
        return None if arrays is None else cls(specs, arrays)

    @classmethod
    def sampled(
        cls,
        specs: Sequence[TensorSpec],
        samples: Sequence[Mapping[str, Array]],
        max_rows: int,
        random: np.random.Generator,
    ) -> RowPool:
        """The rows of the samples that have the first one's shapes, over and over; when all rows are equal they say
        nothing about each other, so values of the same shapes are made up."""
        axes = {spec.name: batch_axis(spec) for spec in specs}
        first = samples[0]
        alike = [one for one in samples if _inner_shapes(one, axes) == _inner_shapes(first, axes)]
        joined = {
            name: first[name] if axis is None else np.concatenate([one[name] for one in alike], axis=axis)
            for name, axis in axes.items()
        }
        rows = _rows_that_fit(_take(joined, axes, [0]), max_rows)
        have = next(joined[name].shape[axis] for name, axis in axes.items() if axis is not None)
        arrays = _take(joined, axes, [row % have for row in range(rows)])
        if _are_equal(arrays, axes, 0, 1):
            arrays.update(
                (spec.name, synthetic_array(spec.datatype, arrays[spec.name].shape, random))
                for spec in specs
                if axes[spec.name] is not None
            )
        return cls(specs, arrays)

    def take(self, rows: Sequence[int]) -> Rows:
        """These rows as one batch; inputs without a batch axis are passed as they are."""
        return _take(self._arrays, self._axes, rows)

    def _make_different(self, specs: Sequence[TensorSpec]) -> None:
        """Rows of a few small integers can come out equal; then row 1 gets the opposite values."""
        if self.rows < 2 or not _are_equal(self._arrays, self._axes, 0, 1):
            return
        for spec in specs:
            axis = self._axes[spec.name]
            if axis is not None:
                row = np.moveaxis(self._arrays[spec.name], axis, 0)
                zero, one = (b"0", b"1") if spec.datatype.kind == "bytes" else (0, 1)
                row[1] = np.where(row[1] == zero, one, zero)


def _take(arrays: Mapping[str, Array], axes: Mapping[str, int | None], rows: Sequence[int]) -> Rows:
    return {
        name: arrays[name] if axis is None else np.ascontiguousarray(np.take(arrays[name], rows, axis=axis))
        for name, axis in axes.items()
    }


def _are_equal(arrays: Rows, axes: Mapping[str, int | None], one: int, other: int) -> bool:
    return all(
        np.array_equal(np.take(arrays[name], one, axis=axis), np.take(arrays[name], other, axis=axis))
        for name, axis in axes.items()
        if axis is not None
    )


def _inner_shapes(arrays: Mapping[str, Array], axes: Mapping[str, int | None]) -> list[tuple[int, ...] | None]:
    shapes: list[tuple[int, ...] | None] = []
    for name, axis in axes.items():
        shape = arrays[name].shape if name in arrays else None
        shapes.append(shape if shape is None or axis is None else shape[:axis] + shape[axis + 1 :])
    return shapes


def _rows_that_fit(one_row: Mapping[str, Array], max_rows: int) -> int:
    per_row = sum(array.nbytes for array in one_row.values()) or 1
    return max(2, min(max_rows, MAX_BYTES // per_row))
