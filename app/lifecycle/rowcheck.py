"""Does a model treat the rows of a batch independently? Only then may requests be merged. Runs on: loader thread.

The model is asked: different rows are run together and one by one, two at first and then a full batch, and every
output row must agree. Shapes that cannot be batched (no free dimension on the batch axis, unknown rank) and runs
that raise answer no, with the reason.

Bounds: the inputs of the full batch stay under 64 MiB and its run under about `BUDGET_NS`, so a slow model gets a
smaller full batch (`RowCheck.rows` tells). Rows are compared in the order last, middle, the rest; after the first
two only while time is left.

Second opinion: runtimes choose other kernels for one row than for many, and some networks blow that rounding up on
degenerate inputs (a text of only two different letters can move a probability by 0.005). So when made-up values
disagree, but a row's result does not depend on which row is beside it, wider values are tried. A model that mixes
rows fails the first condition, one that looks at the batch size fails the second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..core.errors import BackendError
from ..core.tensor import BF16, FP16, Array, DataType, TensorSpec
from .rowpool import RowPool, Rows
from .synthetic import WIDE, batch_axis, free_sizes

BUDGET_NS = 2_000_000_000
RTOL = 1e-4
# four units in the last place: a different order of the same additions in half precision moves this much
_HALF_RTOL: dict[DataType, float] = {FP16: 4 * 2.0**-10, BF16: 4 * 2.0**-7}

Execute = Callable[[Mapping[str, Array], tuple[str, ...] | None], Mapping[str, Array]]


class HasTensors(Protocol):
    """A signature or a model spec."""

    @property
    def inputs(self) -> Sequence[TensorSpec]:
        """Declared inputs."""

    @property
    def outputs(self) -> Sequence[TensorSpec]:
        """Declared outputs."""


@dataclass(slots=True, frozen=True)
class RowCheck:
    """The verdict; `reason` says why rows depend on each other, `rows` how many were run in one batch."""

    is_independent: bool
    reason: str = ""
    rows: int = 0


class _Dependent(Exception):
    """Rows cannot be run together; the text is the reason."""


class _Differs(_Dependent):
    """Rows can be run together, but the values are others than apart."""


def check_rows(
    execute: Execute,
    model: HasTensors,
    samples: Sequence[Mapping[str, Array]],
    max_rows: int,
    now_ns: Callable[[], int] = time.monotonic_ns,
) -> RowCheck:
    """Judge a loaded model by running it; `execute` is its `BackendModel.execute`.

    `samples` are warm-up inputs as the framework takes them; without any (or when all their rows are equal)
    values are made up. `max_rows` is the largest batch the server would make. A spec with `batch_axis` None is
    meant to be shared by all rows; an output like that must come out equal whatever the rows are.
    """
    reason = shape_reason(model)
    if reason:
        return RowCheck(False, reason)
    if max_rows < 2:
        return RowCheck(False, "the largest batch is one row")
    try:
        return RowCheck(True, rows=_Check(execute, model, max_rows, now_ns).run(samples))
    except _Dependent as error:
        return RowCheck(False, str(error))


def shape_reason(model: HasTensors) -> str:
    """Why the declared shapes alone rule batching out; "" when they do not."""
    required = [spec for spec in model.inputs if not spec.optional]
    for role, specs in (("input", required), ("output", model.outputs)):
        for spec in specs:
            if spec.batch_axis is None:
                continue
            where = "first dimension" if spec.batch_axis == 0 else f"dimension {spec.batch_axis}"
            if spec.shape is None:
                return f"the rank of {role} {spec.name!r} is not known"
            if len(spec.shape) <= spec.batch_axis:
                return f"{role} {spec.describe()} has no batch dimension"
            if spec.shape[spec.batch_axis] != -1:
                return f"the {where} of {role} {spec.describe()} is fixed at {spec.shape[spec.batch_axis]}"
    if not any(batch_axis(spec) is not None for spec in required):
        return "no input has a batch dimension"
    return ""


class _Check:
    """One model under examination, and the clock that bounds it."""

    def __init__(self, execute: Execute, model: HasTensors, max_rows: int, now_ns: Callable[[], int]) -> None:
        self._execute = execute
        self._inputs = [spec for spec in model.inputs if not spec.optional]
        self._outputs = model.outputs
        self._max_rows = max_rows
        self._now_ns = now_ns
        self._deadline_ns = now_ns() + BUDGET_NS

    def run(self, samples: Sequence[Mapping[str, Array]]) -> int:
        """The rows of the largest batch that agreed; raises _Dependent."""
        if samples:
            random = np.random.default_rng(0)
            return self._examine(RowPool.sampled(self._inputs, samples, self._max_rows, random))
        failure = "an input's rank is not known"
        for pool, wider in self._invented():
            try:
                self._run(pool.take([0]))
            except _Dependent as error:
                failure = str(error)
                continue
            return self._examine_twice(pool, wider)
        raise _Dependent(failure)

    def _invented(self) -> Iterator[tuple[RowPool, RowPool]]:
        random = np.random.default_rng(0)
        for size in free_sizes(self._inputs):
            pool = RowPool.invented(self._inputs, max(3, self._max_rows), size, random)
            wider = RowPool.invented(self._inputs, max(3, self._max_rows), size, random, WIDE)
            if pool is not None and wider is not None:
                yield pool, wider

    def _examine_twice(self, pool: RowPool, wider: RowPool) -> int:
        try:
            return self._examine(pool)
        except _Differs:
            if pool.rows < 3 or not self._is_blind_to_neighbours(pool):
                raise
            try:
                self._run(wider.take([0]))
            except _Dependent:
                wider = pool  # the model refuses such values: the first finding stands
            return self._examine(wider)

    def _examine(self, pool: RowPool) -> int:
        started = self._now_ns()
        apart = {row: self._run(pool.take([row])) for row in (0, 1)}
        run_ns = max(1, (self._now_ns() - started) // 2)
        self._compare(pool, 2, apart)
        rows = int(max(2, min(pool.rows, self._max_rows, BUDGET_NS // run_ns)))
        if rows > 2:
            self._compare(pool, rows, apart)
        return rows

    def _is_blind_to_neighbours(self, pool: RowPool) -> bool:
        """True if row 0 comes out the same beside row 1 and beside row 2, in front of them and behind."""
        for order in ((0, 1), (1, 0)):
            beside_one = self._run(pool.take(order))
            beside_two = self._run(pool.take([2 * row for row in order]))
            for spec in self._outputs:
                one, two = (_row(spec, run[spec.name], order.index(0)) for run in (beside_one, beside_two))
                if one.shape != two.shape or not agree(one, two, spec.datatype):
                    return False
        return True

    def _run(self, inputs: Rows) -> Rows:
        try:
            return dict(self._execute(inputs, None))
        except BackendError as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
            raise _Dependent(f"a run with {shapes} failed: {error}") from error

    def _compare(self, pool: RowPool, rows: int, apart: dict[int, Rows]) -> None:
        """Raise _Dependent unless the first `rows` rows run together give what each gives alone."""
        together = self._run(pool.take(range(rows)))
        for spec in self._outputs:
            self._check_count(spec, together[spec.name], rows)
        for turn, row in enumerate((rows - 1, rows // 2, *range(rows))):
            if row not in apart:
                if turn > 1 and self._now_ns() > self._deadline_ns:
                    return
                apart[row] = self._run(pool.take([row]))
            for spec in self._outputs:
                self._check_row(spec, together[spec.name], row, apart[row][spec.name], rows)

    def _check_count(self, spec: TensorSpec, output: Array, rows: int) -> None:
        axis = spec.batch_axis
        if axis is not None and (output.ndim <= axis or output.shape[axis] != rows):
            raise _Dependent(f"output {spec.name!r} has shape {list(output.shape)} for a batch of {rows} rows")

    def _check_row(self, spec: TensorSpec, together: Array, row: int, alone: Array, rows: int) -> None:
        self._check_count(spec, alone, 1)
        mine, alone = _row(spec, together, row), _row(spec, alone, 0)
        if mine.shape != alone.shape:
            raise _Dependent(
                f"row {row} of output {spec.name!r} has shape {list(mine.shape)} in a batch of {rows} rows "
                f"and {list(alone.shape)} by itself"
            )
        if not agree(mine, alone, spec.datatype):
            raise _Differs(
                f"row {row} of output {spec.name!r} differs in a batch of {rows} rows from the row by itself"
            )


def agree(one: Array, other: Array, datatype: DataType) -> bool:
    """Equal, or for floats within rounding: 1e-4 of the value plus 1e-5 of the largest (more for half precision)."""
    if datatype.kind != "float":
        return bool(np.array_equal(one, other))
    rtol = _HALF_RTOL.get(datatype, RTOL)
    left, right = _as_floats(one, datatype), _as_floats(other, datatype)
    finite = np.abs(right[np.isfinite(right)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(left, right, rtol=rtol, atol=0.1 * rtol * scale, equal_nan=True))


def _row(spec: TensorSpec, output: Array, row: int) -> Array:
    return output if spec.batch_axis is None else np.take(output, row, axis=spec.batch_axis)


def _as_floats(array: Array, datatype: DataType) -> Array:
    if datatype is BF16:
        return (np.ascontiguousarray(array).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)
