"""From a model's options to a session plan: threads, memory policy, providers. Runs on: anywhere (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from ...devices.device import Device
from ..base import BackendOptions
from .parameters import Parameters, parse_parameters
from .providers import Provider, plan_providers

_SPINNING = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
_CUDA_NAMES = ("cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy", "do_copy_in_default_stream")
_ORIGIN_SERVER, _ORIGIN_MODEL, _ORIGIN_SETTINGS = "--backend-config", "parameters", "backend_options"


@dataclass(slots=True, frozen=True)
class SessionPlan:
    """Everything a session is created with, in the backend's own words.

    `graph_level` is one of disable, basic, extended, all. `session_entries` and `run_entries` are the runtime's
    string options. `warnings` are sentences for the log and the model's details.
    """

    intra_op_threads: int
    inter_op_threads: int
    is_parallel: bool
    graph_level: str
    has_arena: bool
    has_mem_pattern: bool
    has_mem_reuse: bool
    is_deterministic: bool
    session_entries: dict[str, str]
    run_entries: dict[str, str]
    providers: tuple[Provider, ...]
    is_thread_safe: bool
    warnings: tuple[str, ...]


def plan_session(options: BackendOptions, device: Device, has_free_dims: bool, has_free_batch: bool) -> SessionPlan:
    """Merge the server's, the model's and the strongest settings into one plan; LoadError for what cannot be honoured.

    `has_free_dims`: an input has a free dimension besides its first; `has_free_batch`: any first dimension is free.

    Memory policy on the CPU. An arena keeps every block it ever grew to, and a memory pattern is kept for every input
    shape, so both ratchet upwards when shapes keep changing: with free inner dimensions both are off. With only a
    free batch dimension the number of shapes is bounded by the batch size, so the arena stays (2-5 % less CPU time
    measured on three real models) and only the pattern is off (no gain measured). A static model keeps both.
    """
    given = parse_parameters(
        {
            _ORIGIN_SERVER: options.server_parameters,
            _ORIGIN_MODEL: options.parameters,
            _ORIGIN_SETTINGS: options.settings,
        },
        strict=frozenset({_ORIGIN_SERVER, _ORIGIN_SETTINGS}),
    )
    values = given.values
    is_gpu = device.kind == "cuda"
    cuda = {name: _option_text(values[name]) for name in _CUDA_NAMES if name in values}
    if cuda and not is_gpu:
        given.warnings.append(f"{', '.join(sorted(cuda))} only apply on a CUDA device; this model runs on {device}")
    providers, is_thread_safe = plan_providers(
        options.accelerators, device, cuda, ignore=bool(values.get("ignore_accelerators")), warnings=given.warnings
    )
    is_parallel = values.get("execution_mode") == "parallel"
    threads = max(1, options.threads)
    has_arena = bool(values.get("enable_mem_arena", is_gpu or not has_free_dims))
    shrinkage = values.get("memory.enable_memory_arena_shrinkage")
    return SessionPlan(
        # the CPU side of a GPU model only launches kernels: one thread
        intra_op_threads=values.get("intra_op_thread_count") or (1 if is_gpu else threads),
        # with one thread the runtime would quietly go back to sequential execution
        inter_op_threads=values.get("inter_op_thread_count") or (max(2, threads) if is_parallel else 1),
        is_parallel=is_parallel,
        graph_level=_graph_level(given),
        has_arena=has_arena,
        has_mem_pattern=bool(values.get("enable_mem_pattern", not (has_free_dims or has_free_batch)))
        and not is_parallel,  # the runtime needs sequential execution for patterns
        has_mem_reuse=bool(values.get("enable_mem_reuse", True)),
        is_deterministic=bool(values.get("use_deterministic_compute", False)),
        session_entries={**dict.fromkeys(_SPINNING, "0"), **given.session_entries},
        run_entries=_run_entries(shrinkage, has_arena, given),
        providers=providers,
        is_thread_safe=is_thread_safe,
        warnings=tuple(given.warnings),
    )


def _graph_level(given: Parameters) -> str:
    values = given.values
    return str(values.get("graph_optimization_level") or values.get("graph_level") or "all")


def _run_entries(shrinkage: str | None, has_arena: bool, given: Parameters) -> dict[str, str]:
    if shrinkage is None:
        return {}
    if not has_arena and "cpu" in shrinkage:
        given.warnings.append("memory.enable_memory_arena_shrinkage has no effect: the model runs without an arena")
        return {}
    return {"memory.enable_memory_arena_shrinkage": shrinkage}


def _option_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
