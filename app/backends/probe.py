"""Which GPUs the installed frameworks can use. Runs on: loader thread (imports a framework when there is a GPU)."""

from __future__ import annotations

import importlib
import importlib.util

from ..devices.cuda_driver import driver_device_count


def cuda_device_count() -> int:
    """How many NVIDIA GPUs ONNX Runtime can use; 0 without it, with its CPU build, or without a driver."""
    if importlib.util.find_spec("onnxruntime") is None:
        return 0
    count = driver_device_count()
    if count and importlib.import_module(".onnxruntime.cuda", __package__).is_cuda_build():
        return count
    return 0
