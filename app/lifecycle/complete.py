"""Configuration plus the model's own signature: what is served, and how it is batched. Runs on: loader thread.

What the user wrote is kept when the model allows it and is an error when it does not; only gaps are filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from ..batcher.policy import BatchPolicy, QueuePolicy
from ..config.config_json import to_config_json
from ..config.model import ModelConfig
from ..config.paths import resolve_inside
from ..config.scheduling import DynamicBatching
from ..config.support import review
from ..config.tensor import OutputConfig
from ..config.text_file import read_text_file
from ..core.errors import ConfigError, LoadError
from ..core.model import ModelSpec, Signature
from ..core.tensor import BF16, TensorSpec
from .tensor_merge import Pair, merge, pair_up, says_batched, why_not_batchable

_DEFAULT_BATCHING = DynamicBatching.model_validate({})
_LABELS_BYTES = 16 * 1024 * 1024


class RowCheckUse(Enum):
    """What the check that rows are independent is for."""

    NONE = "none"  # requests are not merged
    DECIDES = "decides"  # `without_batching` holds if it fails
    WARNS = "warns"  # the user asked for batching; a failure is logged


@dataclass(slots=True, frozen=True)
class Batching:
    """One way to serve the model: its spec, how requests are merged, and the configuration to show."""

    spec: ModelSpec
    batch: BatchPolicy
    config_json: Mapping[str, Any]


@dataclass(slots=True, frozen=True)
class CompletedModel:
    """Everything the loader needs to know besides the backend's copies.

    `without_batching` is what to serve instead when `row_check` is DECIDES and the check fails. `notes` say what was
    filled in and why batching is off; `warnings` say what was asked for and is ignored. `warmups` are the entries of
    `model_warmup` as plain mappings.
    """

    spec: ModelSpec
    batch: BatchPolicy
    queue: QueuePolicy
    row_check: RowCheckUse
    without_batching: Batching | None
    config_json: Mapping[str, Any]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    warmups: tuple[Mapping[str, Any], ...]
    json_nonfinite: str


def complete(
    name: str,
    version: str,
    config: ModelConfig | None,
    signature: Signature,
    backend: str,
    *,
    default_max_batch_size: int = 32,
    default_max_queue_size: int = 1024,
    model_dir: Path | None = None,
    filename: str = "",
    default_kind: str = "KIND_CPU",
) -> CompletedModel:
    """Lay `config` over `signature`; raises LoadError saying what the model has, what was asked and what to write.

    The defaults are the server's; `model_dir` is where label files are, `filename` and `default_kind` are shown in
    the configuration where the user wrote none.
    """
    config = config or ModelConfig.model_validate({})
    where = f"model {name!r}"
    notes: list[str] = []
    inputs = pair_up("input", signature.inputs, config.input, where)
    outputs = _served_outputs(pair_up("output", signature.outputs, config.output, where), config, notes)
    max_batch_size, use = _batching(config, [*inputs, *outputs], default_max_batch_size, where, notes)

    def build(rows: int) -> ModelSpec:
        merged = tuple(merge(one, rows, where) for one in inputs)
        labelled = tuple(_with_labels(merge(one, rows, where), one, model_dir, where) for one in outputs)
        return ModelSpec(name, version, signature.platform, backend, rows, merged, labelled)

    def show(spec: ModelSpec, batching: DynamicBatching | None) -> dict[str, Any]:
        shown = config.model_copy(update={"dynamic_batching": batching})
        return to_config_json(shown, spec, config.default_model_filename or filename, default_kind)

    spec = build(max_batch_size)
    batch = _batch_policy(config, spec, use is not RowCheckUse.NONE, where, notes)
    is_auto = config.written_max_batch_size is None
    shows_default = is_auto and use is not RowCheckUse.NONE
    without = None
    if use is RowCheckUse.DECIDES and (not is_auto or any(says_batched(one, where) for one in [*inputs, *outputs])):
        # Dims without the batch dimension only make sense with one, so several rows per request stay possible.
        without = Batching(spec, replace(batch, merges=False), show(spec, None if is_auto else config.dynamic_batching))
    elif use is RowCheckUse.DECIDES:
        alone = build(0)
        policy = replace(batch, max_rows=1, merges=False, allowed_rows=(), split_oversized=False)
        without = Batching(alone, policy, show(alone, None))
    return CompletedModel(
        spec,
        batch,
        _queue_policy(config, default_max_queue_size, where),
        use,
        without,
        show(spec, config.dynamic_batching or (_DEFAULT_BATCHING if shows_default else None)),
        tuple(notes),
        review(config).warnings,
        tuple(one.model_dump() for one in config.model_warmup),
        config.json_nonfinite,
    )


def _served_outputs(pairs: list[Pair], config: ModelConfig, notes: list[str]) -> list[Pair]:
    """All outputs, or exactly those that the configuration lists."""
    hidden = [one.model.name for one in pairs if one.written is None]
    if not config.output or not hidden:
        return pairs
    notes.append(f"outputs not listed in the configuration are not served: {', '.join(hidden)}")
    return [one for one in pairs if one.written is not None]


def _batching(
    config: ModelConfig, pairs: list[Pair], default: int, where: str, notes: list[str]
) -> tuple[int, RowCheckUse]:
    """max_batch_size, and what the row check decides."""
    written = config.written_max_batch_size
    if written and all(one.axis is None for one in pairs if one.role == "input"):
        raise LoadError(
            f"{where}: max_batch_size is {written}, but no input has a batch dimension; write max_batch_size: 0"
        )
    if written is not None:
        if written < 2 or config.is_batching_off:
            notes.append(
                "requests are not merged: "
                + ("dynamic_batching is off" if written > 1 else f"max_batch_size is {written}")
            )
            return written, RowCheckUse.NONE
        return written, RowCheckUse.DECIDES if config.batching is None else RowCheckUse.WARNS
    says = {one.text: says_batched(one, where) for one in pairs}
    whole = [text for text, is_batched in says.items() if is_batched is False]
    partial = [text for text, is_batched in says.items() if is_batched]
    if whole and partial:
        raise LoadError(
            f"{where}: dims of {whole[0]} include every dimension, dims of {partial[0]} leave the batch dimension out; "
            "write max_batch_size, and dims without the batch dimension if it is above 0"
        )
    reason = next(filter(None, map(why_not_batchable, pairs)), "")
    if not reason and all(one.axis is None for one in pairs if one.role == "input"):
        reason = "no input has a batch dimension"
    if not reason and not partial and all(len(one.model.shape or ()) < 2 for one in pairs if one.role == "input"):
        # A vector's free dimension is a length as often as a batch, and a length must not be held to a batch size.
        reason = "every input has one dimension only, which may be a length"
    if partial and reason:
        raise LoadError(
            f"{where}: dims of {partial[0]} leave a batch dimension out, but {reason}; write max_batch_size: 0"
        )
    if whole:
        reason = reason or f"dims of {whole[0]} include every dimension and max_batch_size is not written"
    if config.is_batching_off:
        reason = reason or "dynamic_batching is off"
    if reason:
        notes.append(f"batching is off, max_batch_size is 0: {reason}")
        return 0, RowCheckUse.NONE
    notes.append(f"max_batch_size is not written: {default}, the server's default, since every batch dimension is free")
    return default, RowCheckUse.DECIDES


def _batch_policy(config: ModelConfig, spec: ModelSpec, merges: bool, where: str, notes: list[str]) -> BatchPolicy:
    rows = spec.max_batch_size
    batching = config.batching or _DEFAULT_BATCHING
    too_large = [size for size in batching.preferred_batch_size if size > max(1, rows)]
    if too_large:
        why = f" ({notes[-1]})" if notes and not rows else ""
        raise LoadError(f"{where}: preferred_batch_size {too_large[0]} is above max_batch_size {rows}{why}")
    return BatchPolicy(
        max_rows=max(1, rows),
        merges=merges,
        preferred_rows=tuple(sorted(set(batching.preferred_batch_size))),
        max_delay_ns=batching.max_queue_delay_microseconds * 1000,
        preserve_ordering=batching.preserve_ordering,
        allowed_rows=config.allowed_batch_sizes if rows else (),
        shape_buckets=_shape_buckets(config, spec, where),
        pad_value=config.pad_value,
        split_oversized=config.split_oversized and rows > 0,
    )


def _shape_buckets(config: ModelConfig, spec: ModelSpec, where: str) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
    buckets = []
    for name, axes in config.shape_buckets.items():
        tensor = spec.inputs_by_name.get(name)
        if tensor is None:
            raise LoadError(f"{where}: shape_buckets names input {name!r}; inputs are {', '.join(spec.inputs_by_name)}")
        _check_pad_value(config.pad_value, tensor, where)
        for axis, sizes in sorted(axes.items()):
            if (
                tensor.shape is None
                or axis >= len(tensor.shape)
                or tensor.shape[axis] != -1
                or axis == tensor.batch_axis
            ):
                raise LoadError(
                    f"{where}: shape_buckets: axis {axis} of input {tensor.describe()} is not free; "
                    "axes count from 0, batch dimension included, and its size must be -1"
                )
            buckets.append((name, axis, sizes))
    return tuple(buckets)


def _check_pad_value(value: float, tensor: TensorSpec, where: str) -> None:
    """Padding has to be a value of the input's own type."""
    kind = tensor.datatype
    if kind.kind in ("int", "uint"):
        fits = value.is_integer() and kind.minimum <= value <= kind.maximum
    elif kind is BF16 or kind.kind == "bool":
        fits = value in ((0.0, 1.0) if kind.kind == "bool" else (0.0,))
    else:
        fits = True
    if not fits:
        raise LoadError(f"{where}: pad_value {value:g} is no value for padding input {tensor.describe()}")


def _queue_policy(config: ModelConfig, default_size: int, where: str) -> QueuePolicy:
    batching = config.batching
    if batching is None:
        return QueuePolicy(config.max_queue_size or default_size)
    policy = batching.default_queue_policy
    if config.max_queue_size and policy.max_queue_size and config.max_queue_size != policy.max_queue_size:
        raise LoadError(
            f"{where}: max_queue_size is {config.max_queue_size} at the top and {policy.max_queue_size} in "
            "default_queue_policy; write it once"
        )
    return QueuePolicy(
        max_queue_size=policy.max_queue_size or config.max_queue_size or default_size,
        default_timeout_ns=policy.default_timeout_microseconds * 1000,
        may_override=policy.allow_timeout_override,
        rejects=policy.timeout_action == "REJECT",
    )


def _with_labels(spec: TensorSpec, pair: Pair, model_dir: Path | None, where: str) -> TensorSpec:
    written = pair.written
    if not isinstance(written, OutputConfig) or not written.label_filename:
        return spec
    if model_dir is None:
        raise LoadError(f"{where}: {pair.text}: label_filename {written.label_filename!r} needs the model's folder")
    try:
        path = resolve_inside(model_dir, written.label_filename, f"{pair.text}: label_filename")
        labels = read_text_file(path, _LABELS_BYTES).splitlines()
    except ConfigError as error:
        raise LoadError(f"{where}: {error}") from error
    return replace(spec, labels=tuple(labels))
