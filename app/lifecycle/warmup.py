"""Runs a model before it is called ready. Runs on: loader thread.

Samples of the model's `model_warmup` block must work: their failure fails the load. Without any, one invented row is
run per loaded copy; since the input is our own invention, a model that refuses it is only noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..config.paths import resolve_inside
from ..core.errors import BackendError, ConfigError, LoadError
from ..core.tensor import BYTES, Array, DataType, Shape, TensorSpec, datatype
from .synthetic import batch_axis, single_row_candidates, synthetic_array

FOLDER = "warmup"  # below the model's folder, as Triton has it
Execute = Callable[[Mapping[str, Array], tuple[str, ...] | None], Mapping[str, Array]]


@dataclass(slots=True, frozen=True)
class WarmupSample:
    """One request to run `count` times; arrays are in the shapes the framework takes."""

    name: str
    count: int
    inputs: Mapping[str, Array]


@dataclass(slots=True, frozen=True)
class WarmupReport:
    """How many runs succeeded, with which input shapes, and a sentence when there was nothing to run."""

    runs: int
    note: str = ""
    shapes: Mapping[str, Shape] = field(default_factory=dict)


def warm_up(
    execute: Execute, inputs: Sequence[TensorSpec], samples: Sequence[WarmupSample], model: str
) -> WarmupReport:
    """Run one loaded copy: every sample `count` times, or one invented row when there are none.

    Raises LoadError naming the sample that failed.
    """
    if not samples:
        return _default_run(execute, inputs)
    runs = 0
    for sample in samples:
        for _ in range(sample.count):
            try:
                execute(sample.inputs, None)
            except BackendError as error:
                raise LoadError(f"model {model!r}: warm-up sample {sample.name!r} failed: {error}") from error
            runs += 1
    return WarmupReport(runs, shapes=_shapes(samples[0].inputs))


def _default_run(execute: Execute, inputs: Sequence[TensorSpec]) -> WarmupReport:
    reason = "an input's rank is not known"
    for feed in single_row_candidates(inputs, np.random.default_rng(0)):
        try:
            execute(feed, None)
        except BackendError as error:
            reason = f"made-up inputs do not fit this model ({error})"
        else:
            return WarmupReport(1, shapes=_shapes(feed))
    return WarmupReport(0, f"no warm-up run, {reason}; add model_warmup")


def _shapes(inputs: Mapping[str, Array]) -> dict[str, Shape]:
    return {name: array.shape for name, array in inputs.items()}


def samples_from_config(
    entries: Iterable[Mapping[str, Any]], inputs: Sequence[TensorSpec], model_dir: Path, model: str
) -> list[WarmupSample]:
    """The samples of a `model_warmup` block given as plain mappings with Triton's field names.

    Raises LoadError naming model, sample and input for unknown inputs, wrong types or shapes and bad files.
    """
    return [_sample(entry, {spec.name: spec for spec in inputs}, model_dir / FOLDER, model) for entry in entries]


def _sample(entry: Mapping[str, Any], specs: Mapping[str, TensorSpec], folder: Path, model: str) -> WarmupSample:
    name = str(entry.get("name", ""))
    where = f"model {model!r}: warm-up sample {name!r}"
    given: Mapping[str, Mapping[str, Any]] = entry.get("inputs") or {}
    for input_name in given:
        if input_name not in specs:
            raise LoadError(f"{where}: the model has no input {input_name!r}; it has {', '.join(specs)}")
    missing = [spec.name for spec in specs.values() if not spec.optional and spec.name not in given]
    if missing:
        raise LoadError(f"{where}: no data for input {missing[0]!r}")
    rows = max(1, int(entry.get("batch_size") or 0))
    arrays = {
        input_name: _input(f"{where}, input {input_name!r}", source, specs[input_name], rows, folder)
        for input_name, source in given.items()
    }
    return WarmupSample(name, max(1, int(entry.get("count") or 0)), arrays)


def _input(where: str, source: Mapping[str, Any], spec: TensorSpec, rows: int, folder: Path) -> Array:
    _check_type(where, source.get("data_type") or "", spec.datatype)
    axis = batch_axis(spec)
    inner = _inner_dims(where, source.get("dims") or (), spec, axis)
    shape = inner if axis is None else (*inner[:axis], rows, *inner[axis:])
    if not spec.accepts(shape):
        raise LoadError(f"{where}: shape {list(shape)} does not fit {spec.describe()}")
    if source.get("input_data_file"):
        array = _from_file(where, str(source["input_data_file"]), spec.datatype, inner, rows, axis, folder)
    elif source.get("random_data") and spec.datatype is not BYTES:
        array = synthetic_array(spec.datatype, shape, np.random.default_rng(0))
    else:
        array = np.zeros(shape, spec.datatype.dtype)
        if spec.datatype is BYTES:
            array[...] = b""
    if spec.reshape is not None:
        array = array.reshape(spec.reshape if axis is None else (rows, *spec.reshape))
    return array


def _check_type(where: str, config_name: str, wanted: DataType) -> None:
    if not config_name:
        return
    short = config_name.removeprefix("TYPE_")
    try:
        given = datatype("BYTES" if short == "STRING" else short)
    except KeyError as error:
        raise LoadError(f"{where}: unknown data_type {config_name!r}") from error
    if given is not wanted:
        raise LoadError(f"{where}: data_type is {config_name}, the model's input is {wanted.config_name}")


def _inner_dims(where: str, dims: Sequence[int], spec: TensorSpec, axis: int | None) -> Shape:
    """Dimensions of one row: the configured ones, else the declared ones if none is free."""
    if dims:
        return tuple(int(dim) for dim in dims)
    declared = tuple(dim for at, dim in enumerate(spec.shape or ()) if at != axis)
    if -1 in declared or spec.shape is None:
        raise LoadError(f"{where}: give dims, since {spec.describe()} has free dimensions")
    return declared


def _from_file(
    where: str, name: str, wanted: DataType, inner: Shape, rows: int, axis: int | None, folder: Path
) -> Array:
    """One row (repeated `rows` times) or all rows from a raw little-endian file in the folder `warmup`."""
    data = _read(where, name, folder)
    count = math.prod(inner)
    array = _bytes_elements(where, name, data) if wanted is BYTES else None
    if array is None:
        if len(data) % wanted.item_size:
            raise LoadError(f"{where}: {name} has {len(data)} bytes, no multiple of {wanted.item_size}")
        array = np.frombuffer(data, wanted.dtype)
    copies = 1 if axis is None else rows
    if array.size not in (count, count * copies):
        raise LoadError(
            f"{where}: {name} has {array.size} elements; {count} are needed for dims {list(inner)}"
            + (f", or {count * copies} for {copies} rows" if copies > 1 else "")
        )
    if axis is None:
        return array.reshape(inner)
    stacked = array.reshape(-1, *inner)
    if stacked.shape[0] != copies:
        stacked = np.repeat(stacked[:1], copies, axis=0)
    return np.ascontiguousarray(np.moveaxis(stacked, 0, axis))


def _read(where: str, name: str, folder: Path) -> bytes:
    try:
        return resolve_inside(folder, name, f"{where}: input_data_file").read_bytes()
    except ConfigError as error:
        raise LoadError(str(error)) from error
    except OSError as error:
        raise LoadError(f"{where}: cannot read {FOLDER}/{name} ({error.strerror})") from error


def _bytes_elements(where: str, name: str, data: bytes) -> Array:
    elements, position = [], 0
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "little")
        stop = position + 4 + length
        if position + 4 > len(data) or stop > len(data):
            raise LoadError(f"{where}: {name} is cut short at byte {position} (4 bytes length, then the string)")
        elements.append(data[position + 4 : stop])
        position = stop
    array = np.empty(len(elements), object)
    array[:] = elements
    return array
