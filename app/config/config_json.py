"""The answer of `GET /v2/models/M/config`: Triton's ModelConfig, defaults written out. Runs on: anywhere (pure).

Scheduling members are left out entirely when they do not apply, because clients test for their presence.
KernelPort's own fields appear when the user wrote them.
"""

from __future__ import annotations

from typing import Any

from ..core.model import ModelSpec
from ..core.tensor import TensorSpec
from .model import ModelConfig
from .placement import InstanceGroup, Optimization
from .scheduling import DynamicBatching
from .tensor import InputConfig, OutputConfig, TensorConfig
from .version_policy import LatestPolicy, VersionPolicy
from .warmup import WarmupSample

_OWN_FIELDS = (
    "max_queue_size", "allowed_batch_sizes", "shape_buckets", "pad_value", "split_oversized", "json_nonfinite",
    "backend_options",
)  # fmt: skip


def to_config_json(
    config: ModelConfig,
    spec: ModelSpec,
    default_model_filename: str,
    default_kind: str = "KIND_CPU",
) -> dict[str, Any]:
    """`config` completed by what `spec` holds; instances are of `default_kind` where the user names none."""
    body: dict[str, Any] = {
        "name": spec.name,
        "platform": spec.platform,
        "backend": spec.backend,
        "runtime": config.runtime,
        "version_policy": (config.version_policy or VersionPolicy(latest=LatestPolicy())).model_dump(exclude_none=True),
        "max_batch_size": spec.max_batch_size,
        "input": [_input(one, config) for one in spec.inputs],
        "output": [_output(one, config) for one in spec.outputs],
        "batch_input": [],
        "batch_output": [],
        "optimization": _optimization(config.optimization),
    }
    if config.batching is not None:
        body["dynamic_batching"] = _dynamic_batching(config.batching, spec.max_batch_size)
    groups = [_group(one, f"{spec.name}_{at}", default_kind) for at, one in enumerate(config.instance_group)]
    body |= {
        "instance_group": groups or [_group(InstanceGroup(), spec.name, default_kind)],
        "default_model_filename": default_model_filename,
        "cc_model_filenames": dict(config.cc_model_filenames),
        "metric_tags": dict(config.metric_tags),
        "parameters": {key: {"string_value": value} for key, value in config.parameters.items()},
        "model_warmup": [_warmup(one) for one in config.model_warmup],
    }
    if config.model_transaction_policy is not None:
        body["model_transaction_policy"] = {"decoupled": config.model_transaction_policy.decoupled}
    if config.response_cache is not None:
        body["response_cache"] = {"enable": config.response_cache.enable}
    own = config.model_dump(mode="json", include=set(_OWN_FIELDS))
    return body | {name: own[name] for name in _OWN_FIELDS if config.wrote(name)}


def _input(spec: TensorSpec, config: ModelConfig) -> dict[str, Any]:
    written = next((one for one in config.input if one.name == spec.name), InputConfig(name=spec.name))
    return {
        "name": spec.name,
        "data_type": spec.datatype.config_name,
        "format": written.format,
        **_shape(spec, written),
        "is_shape_tensor": written.is_shape_tensor,
        "allow_ragged_batch": written.allow_ragged_batch,
        "optional": spec.optional,
        "is_non_linear_format_io": written.is_non_linear_format_io,
        **_batch_axis(written),
    }


def _output(spec: TensorSpec, config: ModelConfig) -> dict[str, Any]:
    written = next((one for one in config.output if one.name == spec.name), OutputConfig(name=spec.name))
    return {
        "name": spec.name,
        "data_type": spec.datatype.config_name,
        **_shape(spec, written),
        "label_filename": written.label_filename,
        "is_shape_tensor": written.is_shape_tensor,
        "is_non_linear_format_io": written.is_non_linear_format_io,
        **_batch_axis(written),
    }


def _shape(spec: TensorSpec, written: TensorConfig) -> dict[str, Any]:
    """`dims` without the batch dimension, and `reshape` if there is one."""
    dims = [dim for axis, dim in enumerate(spec.shape or ()) if axis != spec.batch_axis]
    shape: dict[str, Any] = {"dims": dims}
    if written.reshape is not None:
        shape["reshape"] = {"shape": list(written.reshape.shape)}
    return shape


def _batch_axis(written: TensorConfig) -> dict[str, Any]:
    return {"batch_axis": written.batch_axis} if written.wrote("batch_axis") else {}


def _optimization(config: Optimization) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if config.graph is not None:
        body["graph"] = config.graph.model_dump()
    body["priority"] = config.priority
    if config.cuda is not None:
        body["cuda"] = config.cuda.model_dump(mode="json")
    if config.execution_accelerators is not None:
        body["execution_accelerators"] = config.execution_accelerators.model_dump(mode="json")
    return body | {
        "input_pinned_memory": config.input_pinned_memory.model_dump(),
        "output_pinned_memory": config.output_pinned_memory.model_dump(),
        "gather_kernel_buffer_threshold": config.gather_kernel_buffer_threshold,
        "eager_batching": config.eager_batching,
    }


def _dynamic_batching(config: DynamicBatching, max_batch_size: int) -> dict[str, Any]:
    body = config.model_dump(mode="json", exclude={"enabled"})
    if not config.preferred_batch_size and max_batch_size:
        body["preferred_batch_size"] = [max_batch_size]  # as Triton fills it in
    # Triton writes the policy only when it was given.
    if not config.wrote("default_queue_policy"):
        del body["default_queue_policy"]
    return body


def _group(config: InstanceGroup, name: str, default_kind: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": config.name or name,
        "kind": default_kind if config.kind == "KIND_AUTO" else config.kind,
        "count": config.count,
        "gpus": list(config.gpus),
        "secondary_devices": list(config.secondary_devices),
        "profile": list(config.profile),
        "passive": config.passive,
        "host_policy": config.host_policy,
    }
    return body | ({"rate_limiter": config.rate_limiter} if config.rate_limiter else {})


def _warmup(config: WarmupSample) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, one in config.inputs.items():
        source = next(key for key in ("zero_data", "random_data", "input_data_file") if getattr(one, key))
        inputs[name] = {"data_type": one.data_type, "dims": list(one.dims), source: getattr(one, source)}
    return {"name": config.name, "batch_size": config.batch_size, "inputs": inputs, "count": config.count}
