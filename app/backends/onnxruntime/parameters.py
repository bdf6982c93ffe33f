"""Which parameter names the ONNX Runtime backend knows, and how their values are read. Runs on: anywhere (pure).

The names are those of Triton's onnxruntime backend (model `parameters` and `--backend-config`), plus the runtime's
own session keys. A misspelt name is an error with a suggestion; a name nobody knows is a warning, because model
folders carry parameters for other tools; a name that is known and refused says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ...core.errors import LoadError

_TRUE = frozenset({"1", "true", "on", "yes"})
_FALSE = frozenset({"0", "false", "off", "no"})

GRAPH_LEVELS = {"-1": "basic", "1": "extended", "2": "disable", "0": "all"}  # Triton's numbers
_CUDNN_SEARCH = {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"}
_EXTEND = {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"}
_MODES = {"0": "sequential", "1": "parallel"}

SESSION_KEYS = frozenset(
    {
        "session.allow_released_opsets_only", "session.debug_layout_transformation",
        "session.disable_aot_function_inlining", "session.disable_cpu_ep_fallback",
        "session.disable_double_qdq_remover", "session.disable_model_compile", "session.disable_prepacking",
        "session.disable_qdq_constant_folding", "session.disable_quant_qdq", "session.dynamic_block_base",
        "session.enable_dq_matmulnbits_fusion", "session.enable_quant_qdq_cleanup",
        "session.fail_on_suboptimal_compiled_model", "session.force_spinning_stop",
        "session.function_expansion_byte_limit", "session.function_expansion_node_limit",
        "session.graph_optimizations_loop_level", "session.inter_op.allow_spinning",
        "session.inter_op.spin_backoff_max", "session.inter_op.spin_duration_us",
        "session.intra_op.allow_spinning", "session.intra_op.spin_backoff_max",
        "session.intra_op.spin_duration_us", "session.intra_op_thread_affinities",
        "session.kernel_dispatch_policy", "session.max_shape_override", "session.prepack.enable_parallel",
        "session.qdq_matmulnbits_accuracy_level", "session.qdq_matmulnbits_block_size",
        "session.qdqisint8allowed", "session.record_ep_graph_assignment_info", "session.set_denormal_as_zero",
        "session.strict_shape_type_inference", "session.use_device_allocator_for_initializers",
        "session.use_env_allocators", "session.x64quantprecision",
        "ep.cuda.fpa_intb_gemm", "ep.cuda.matmul_nbits_m_chunk_size",
        "mlas.disable_kleidiai", "mlas.enable_gemm_fastmath_arm64_bfloat16", "mlas.qnbit.force_fp32",
        "mlas.use_lut_gemm", "optimization.constant_folding_max_output_size_in_bytes",
        "optimization.disable_specified_optimizers", "optimization.enable_cast_chain_elimination",
        "optimization.enable_gelu_approximation", "optimization.minimal_build_optimizations",
    }
)  # fmt: skip
_SESSION_PREFIXES = ("session.", "ep.", "mlas.", "optimization.")
_REFUSED = {
    "session.optimized_model_filepath": "it writes files",
    "session.optimized_model_external_initializers_file_name": "it writes files",
    "session.collect_node_memory_stats_to_file": "it writes files",
    "session.enable_profiling": "it writes files",
    "session.node_partition_config_file": "it writes files",
    "session.intra_op_num_threads": "use intra_op_thread_count",
    "session.inter_op_num_threads": "use inter_op_thread_count",
    "session.execution_mode": "use execution_mode",
    "session.graph_optimization_level": "use graph_optimization_level",
    "session.enable_cpu_mem_arena": "use enable_mem_arena",
    "session.enable_mem_pattern": "use enable_mem_pattern",
    "session.use_per_session_threads": "sessions keep their own threads",
    "ep.context_enable": "it writes files",
    "ep.context_file_path": "it writes files",
}
_WARNED = {
    "default_max_batch_size": "the server's own option --max-batch-size says it for all backends",
    "enable_global_threadpool": "each session has its own threads, without spinning, inside the server's CPU budget",
}


def parse_bool(text: str) -> bool:
    """`1`, `true`, `on`, `yes` and their opposites; ValueError otherwise."""
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("expected 1 or 0 (true or false)")


def parse_count(text: str) -> int:
    """A whole number of at least 0; ValueError otherwise."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()):
        raise ValueError("expected a whole number of at least 0")
    return int(stripped)


def _choice(table: Mapping[str, str]) -> Callable[[str], str]:
    by_name = {name.lower(): name for name in table.values()}

    def parse(text: str) -> str:
        key = text.strip()
        found = table.get(key) or by_name.get(key.lower())
        if found is None:
            raise ValueError("expected one of " + ", ".join((*table, *table.values())))
        return found

    return parse


def _shrinkage(text: str) -> str:
    for part in text.split(";"):
        kind, _, index = part.partition(":")
        if kind not in ("cpu", "gpu") or not index.isdigit():
            raise ValueError("expected device:index pairs such as cpu:0 or cpu:0;gpu:0")
    return text


_PARSERS: dict[str, Callable[[str], Any]] = {
    "intra_op_thread_count": parse_count,
    "inter_op_thread_count": parse_count,
    "execution_mode": _choice(_MODES),
    "graph_optimization_level": _choice(GRAPH_LEVELS),
    "graph_level": _choice(GRAPH_LEVELS),  # Triton's `optimization { graph { level } }`
    "enable_mem_arena": parse_bool,
    "enable_mem_pattern": parse_bool,
    "enable_mem_reuse": parse_bool,
    "use_deterministic_compute": parse_bool,
    "memory.enable_memory_arena_shrinkage": _shrinkage,
    "cudnn_conv_algo_search": _choice(_CUDNN_SEARCH),
    "gpu_mem_limit": parse_count,
    "arena_extend_strategy": _choice(_EXTEND),
    "do_copy_in_default_stream": parse_bool,
    "ignore_accelerators": parse_bool,
}


@dataclass(slots=True)
class Parameters:
    """Parsed values by name, the runtime's own session entries, and what a user should be told."""

    values: dict[str, Any] = field(default_factory=dict)
    session_entries: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def parse_parameters(layers: Mapping[str, Mapping[str, Any]], strict: frozenset[str]) -> Parameters:
    """Read layers of raw parameters, weakest first; keys of `layers` name their origin in messages.

    An unknown name is a LoadError in the layers of `strict` (written for this server alone) and a warning elsewhere.
    """
    parsed = Parameters()
    for origin, raw in layers.items():
        for key, value in raw.items():
            name = key if "." in key else key.replace("-", "_")
            _read_one(parsed, origin, name, _as_text(value), origin in strict)
    return parsed


def _read_one(parsed: Parameters, origin: str, name: str, text: str, is_strict: bool) -> None:
    if name in _REFUSED:
        raise LoadError(f"{origin}: {name} is not allowed ({_REFUSED[name]})")
    if name in _WARNED:
        if text.strip().lower() not in _FALSE:
            parsed.warnings.append(f"{origin}: {name} is not honoured; {_WARNED[name]}")
    elif name in _PARSERS:
        try:
            parsed.values[name] = _PARSERS[name](text)
        except ValueError as error:
            raise LoadError(f"{origin}: {name} is {text!r}; {error}") from error
    elif name in SESSION_KEYS:
        parsed.session_entries[name] = text
    else:
        _unknown(parsed, origin, name, text, is_strict)


def _unknown(parsed: Parameters, origin: str, name: str, text: str, is_strict: bool) -> None:
    close = get_close_matches(name, [*_PARSERS, *SESSION_KEYS, *_WARNED], n=1, cutoff=0.85)
    if close:
        raise LoadError(f"{origin}: unknown parameter {name!r}; did you mean {close[0]!r}?")
    if is_strict:
        raise LoadError(f"{origin}: unknown parameter {name!r}; known are {', '.join(sorted(_PARSERS))}")
    if name.startswith(_SESSION_PREFIXES):
        # a key of a newer or older runtime: handed on, since only that runtime can judge it
        parsed.session_entries[name] = text
        parsed.warnings.append(f"{origin}: session key {name!r} is not known here; handed to onnxruntime as it is")
        return
    parsed.warnings.append(f"{origin}: parameter {name!r} is not known to the onnxruntime backend and has no effect")


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping) and set(value) == {"string_value"}:
        return str(value["string_value"])
    return str(value)
