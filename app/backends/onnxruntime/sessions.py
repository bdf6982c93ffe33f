"""Creates runtime sessions and proves that they run where they should. Runs on: loader thread."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...core.errors import LoadError
from .cuda import load_cuda_libraries
from .failures import load_error
from .plan import SessionPlan
from .providers import CPU_PROVIDER, CUDA_PROVIDER
from .runtime import LOG_SEVERITY, ort

_GRAPH_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_PROVIDER_LIBRARIES = {
    CUDA_PROVIDER: "libonnxruntime_providers_cuda.so",
    "TensorrtExecutionProvider": "libonnxruntime_providers_tensorrt.so",
}


def create_session(path: Path, plan: SessionPlan, model: str, hidden: Iterable[str]) -> Any:
    """A session for the model file at `path`; LoadError for a bad model or when it would run elsewhere than asked.

    The runtime falls back to the CPU without an error in three ways: a provider that fails to load, a provider its
    build does not have, and a device error in a later run. The first two are checked here, the third is switched off.
    """
    wanted = plan.providers[0][0]
    if wanted not in ort.get_available_providers():
        raise LoadError(
            f"model {model!r} needs {wanted}, which this onnxruntime {ort.__version__} was built without; "
            "no silent fallback to CPU: run pip install 'kernelport[gpu]' in a fresh environment, or use --device cpu"
        )
    if wanted != CPU_PROVIDER:
        load_cuda_libraries()
    try:
        session = ort.InferenceSession(
            str(path), _session_options(plan), providers=list(plan.providers), enable_fallback=0
        )
    except Exception as error:  # every class of the runtime's own, and pybind's RuntimeError, ValueError
        if wanted != CPU_PROVIDER and not isinstance(error, MemoryError):
            missing = _missing_library(wanted)
            if missing:
                raise _fallback(model, wanted, missing) from error
        raise load_error(error, model, hidden) from error
    actual = session.get_providers()
    if not actual or actual[0] != wanted:
        raise _fallback(model, wanted, _missing_library(wanted) or f"the session got {', '.join(actual) or 'none'}")
    return session


def run_options(plan: SessionPlan) -> Any:
    """Options of every run of a session, or None when there is nothing to say."""
    if not plan.run_entries:
        return None
    options = ort.RunOptions()
    options.log_severity_level = LOG_SEVERITY
    for key, value in plan.run_entries.items():
        options.add_run_config_entry(key, value)
    return options


def _session_options(plan: SessionPlan) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = plan.intra_op_threads
    options.inter_op_num_threads = plan.inter_op_threads
    mode = ort.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if plan.is_parallel else mode.ORT_SEQUENTIAL
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _GRAPH_LEVELS[plan.graph_level])
    options.enable_cpu_mem_arena = plan.has_arena
    options.enable_mem_pattern = plan.has_mem_pattern
    options.enable_mem_reuse = plan.has_mem_reuse
    options.use_deterministic_compute = plan.is_deterministic
    options.log_severity_level = LOG_SEVERITY
    for key, value in plan.session_entries.items():
        options.add_session_config_entry(key, value)
    return options


def _fallback(model: str, wanted: str, reason: str) -> LoadError:
    return LoadError(
        f"model {model!r} must run on {wanted}, but onnxruntime could not use it: {reason}; no silent fallback to CPU. "
        "Install the driver and libraries it needs (pip install 'kernelport[gpu]'), or use --device cpu"
    )


def _missing_library(provider: str) -> str:
    """Why the provider's library cannot be loaded ("libcudart.so.13: cannot open ..."), "" when it can."""
    name = _PROVIDER_LIBRARIES.get(provider)
    if name is None:
        return ""
    path = Path(ort.__file__).parent / "capi" / name
    if not path.exists():
        return f"{name} is not installed"
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error).replace(str(path.parent) + "/", "")
    return ""
