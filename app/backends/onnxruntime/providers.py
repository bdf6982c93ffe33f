"""Execution providers and their options, from Triton's accelerators to the runtime. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from ...core.errors import LoadError
from ...devices.device import Device
from ..base import Accelerator
from .parameters import parse_bool, parse_count

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
TENSORRT_PROVIDER = "TensorrtExecutionProvider"
Provider = tuple[str, dict[str, str]]


def _flag(text: str) -> str:
    return "1" if parse_bool(text) else "0"


def _count(text: str) -> str:
    return str(parse_count(text))


def _integer(text: str) -> str:
    return str(int(text))


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError("expected one of " + ", ".join(choices))
        return text

    return parse


def _text(text: str) -> str:
    return text


def _path(text: str) -> str:
    if "\0" in text or ".." in text.split("/"):
        raise ValueError("a path must not contain '..'")
    return text


_CUDA_OPTIONS: dict[str, Callable[[str], str]] = {
    "arena_extend_strategy": _one_of("kNextPowerOfTwo", "kSameAsRequested"),
    "cudnn_conv1d_pad_to_nc1d": _flag,
    "cudnn_conv_algo_search": _one_of("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "cudnn_conv_use_max_workspace": _flag,
    "do_copy_in_default_stream": _flag,
    "enable_cuda_graph": _flag,
    "enable_cudnn": _flag,
    "enable_skip_layer_norm_strict_mode": _flag,
    "fuse_conv_bias": _flag,
    "gpu_mem_limit": _count,
    "prefer_nhwc": _flag,
    "sdpa_kernel": _count,
    "tunable_op_enable": _flag,
    "tunable_op_max_tuning_duration_ms": _count,
    "tunable_op_tuning_enable": _flag,
    "use_ep_level_unified_stream": _flag,
    "use_tf32": _flag,
}

# Triton's accelerator parameter -> (the provider's option, how its value is read)
_TENSORRT_OPTIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    "max_workspace_size_bytes": ("trt_max_workspace_size", _count),
    "int8_calibration_table_name": ("trt_int8_calibration_table_name", _text),
    "int8_use_native_calibration_table": ("trt_int8_use_native_calibration_table", _flag),
    **{name: (name, _flag) for name in (
        "trt_bf16_enable", "trt_build_heuristics_enable", "trt_context_memory_sharing_enable",
        "trt_cuda_graph_enable", "trt_detailed_build_log", "trt_dla_enable", "trt_dump_ep_context_model",
        "trt_dump_subgraphs", "trt_engine_cache_enable", "trt_engine_hw_compatible",
        "trt_force_sequential_engine_build", "trt_force_timing_cache", "trt_fp16_enable", "trt_int8_enable",
        "trt_int8_use_native_calibration_table", "trt_layer_norm_fp32_fallback", "trt_sparsity_enable",
        "trt_timing_cache_enable",
    )},
    **{name: (name, _count) for name in (
        "trt_builder_optimization_level", "trt_dla_core", "trt_ep_context_embed_mode",
        "trt_max_partition_iterations", "trt_max_workspace_size", "trt_min_subgraph_size",
    )},
    **{name: (name, _text) for name in (
        "trt_engine_cache_prefix", "trt_int8_calibration_table_name", "trt_op_types_to_exclude",
        "trt_profile_max_shapes", "trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_tactic_sources",
    )},
    **{name: (name, _path) for name in (
        "trt_engine_cache_path", "trt_ep_context_file_path", "trt_timing_cache_path",
    )},
    "trt_auxiliary_streams": ("trt_auxiliary_streams", _integer),
}  # fmt: skip
_PRECISIONS = {"FP32": None, "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
_REFUSED = {"trt_extra_plugin_lib_paths": "it would load native code named by a model's configuration"}
_KNOWN = ("cuda", "tensorrt")
_LATER = ("openvino", "auto_mixed_precision", "gpu_io", "xla", "tensorrt_rtx")


def plan_providers(
    accelerators: Sequence[Accelerator],
    device: Device,
    cuda_parameters: Mapping[str, str],
    ignore: bool,
    warnings: list[str],
) -> tuple[tuple[Provider, ...], bool]:
    """Providers in order of preference, and whether a session with them may run on several threads at once.

    The first provider is the one the model must really run on. Raises LoadError for an accelerator that this
    device or release does not have: running somewhere slower without a word is the failure users find last.
    """
    for one in accelerators:
        if one.name in _LATER:
            raise LoadError(f"execution accelerator {one.name!r} is not part of this release; known are cuda, tensorrt")
        if one.name not in _KNOWN:
            raise LoadError(f"execution accelerator {one.name!r} is not known; known are cuda, tensorrt")
    if device.kind == "cpu":
        _no_accelerator(accelerators, ignore, warnings)
        return ((CPU_PROVIDER, {}),), True
    if ignore and accelerators:
        warnings.append("ignore_accelerators is set: " + ", ".join(one.name for one in accelerators) + " not used")
        accelerators = ()
    device_id = {"device_id": str(device.index)}
    # served shapes change from batch to batch, and an exhaustive search would run again for every new one
    cuda = {"arena_extend_strategy": "kSameAsRequested", "cudnn_conv_algo_search": "HEURISTIC", **cuda_parameters}
    providers: list[Provider] = []
    for one in accelerators:
        if one.name == "cuda":
            cuda.update(_cuda_options(one.parameters))
        else:
            providers.append((TENSORRT_PROVIDER, {**device_id, **_tensorrt_options(one.parameters)}))
    is_thread_safe = not providers and cuda.get("enable_cuda_graph") != "1"
    providers += [(CUDA_PROVIDER, {**device_id, **cuda}), (CPU_PROVIDER, {})]
    return tuple(providers), is_thread_safe


def _no_accelerator(accelerators: Sequence[Accelerator], ignore: bool, warnings: list[str]) -> None:
    if not accelerators:
        return
    names = ", ".join(one.name for one in accelerators)
    if not ignore:
        raise LoadError(
            f"execution accelerator {names} needs a CUDA device, but the model runs on cpu; serve it with "
            "--device cuda:0, remove execution_accelerators, or set the parameter ignore_accelerators to 1"
        )
    warnings.append(f"ignore_accelerators is set: {names} not used on cpu")


def _cuda_options(parameters: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for name, value in parameters.items():
        parse = _CUDA_OPTIONS.get(name)
        if parse is None:
            raise _unknown("cuda", name, list(_CUDA_OPTIONS))
        options[name] = _parsed("cuda", name, value, parse)
    return options


def _tensorrt_options(parameters: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for name, value in parameters.items():
        if name in _REFUSED:
            raise LoadError(f"execution accelerator tensorrt: {name} is not allowed ({_REFUSED[name]})")
        if name == "precision_mode":
            precision = _parsed("tensorrt", name, value, _one_of(*_PRECISIONS))
            switch = _PRECISIONS[precision]
            if switch is not None:
                options[switch] = "1"
            continue
        known = _TENSORRT_OPTIONS.get(name)
        if known is None:
            raise _unknown("tensorrt", name, ["precision_mode", *_TENSORRT_OPTIONS])
        options[known[0]] = _parsed("tensorrt", name, value, known[1])
    return options


def _parsed(accelerator: str, name: str, value: str, parse: Callable[[str], str]) -> str:
    try:
        return parse(value)
    except ValueError as error:
        raise LoadError(f"execution accelerator {accelerator}: {name} is {value!r}; {error}") from error


def _unknown(accelerator: str, name: str, known: list[str]) -> LoadError:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
    return LoadError(f"execution accelerator {accelerator}: unknown parameter {name!r}{hint}")
