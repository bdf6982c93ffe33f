"""What onnxruntime raises, as our errors, with nothing of the host in the text. Runs on: anywhere (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...core.errors import BackendError, BackendInputError, LoadError

_MAX_TEXT = 600
_PREFIX = re.compile(r"\[ONNXRuntimeError\] : \d+ : ")
# a place in the runtime's source: "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onn...::f() "
_SOURCE = re.compile(
    r"(?:/[\w.+-]+)*/onnxruntime(?:_src)?/[\w./+-]+:\d+ (?:[^()]*\([^()]*\)(?: const)?(?: \[[^]]*\])? )?"
)
_ALLOCATION = re.compile(
    r"allocate memory|bad_alloc|out of memory|Available memory of \d+ is smaller|cudaMalloc|CUDA failure 2\b", re.I
)
_DEVICE = re.compile(r"CUDA (?:error|failure)|cuDNN|cuBLAS", re.I)


def run_error(error: Exception, model: str, hidden: Iterable[str]) -> BackendError:
    """The error of one execution; only what the runtime itself calls an invalid argument blames the input."""
    text = clean_text(str(error), hidden)
    kind = type(error).__name__
    if isinstance(error, MemoryError) or _ALLOCATION.search(text):
        return BackendError(f"model {model!r}: not enough memory to run this request ({text})")
    if kind == "InvalidArgument":
        return BackendInputError(f"model {model!r} refused the input: {text}")
    if kind in ("EPFail", "DeviceReset") or _DEVICE.search(text):
        return BackendError(f"model {model!r}: the device failed while running ({text})")
    return BackendError(f"model {model!r} failed while running ({text})")


def load_error(error: Exception, model: str, hidden: Iterable[str]) -> LoadError:
    """The error of a session that could not be created."""
    text = clean_text(str(error), hidden)
    kind = type(error).__name__
    if kind == "InvalidProtobuf":
        text = f"the file is damaged or no ONNX model ({text})"
    elif kind in ("NotImplemented", "InvalidGraph"):
        text = f"{text} (onnxruntime cannot run this graph: check its opset and operators)"
    elif isinstance(error, MemoryError) or _ALLOCATION.search(text):
        text = f"not enough memory to load it ({text})"
    return LoadError(f"model {model!r}: {text}")


def clean_text(text: str, hidden: Iterable[str]) -> str:
    """The runtime's message on one line, without its own prefix, source positions and the folders in `hidden`."""
    for folder in sorted(set(hidden), key=len, reverse=True):
        text = text.replace(folder.rstrip("/") + "/", "").replace(folder, "")
    text = _SOURCE.sub("", _PREFIX.sub("", text))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."
