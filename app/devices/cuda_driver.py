"""Asks the NVIDIA driver how many GPUs this process may use. Runs on: anywhere.

Frameworks answer this badly: onnxruntime's provider list says how the package was built, and its device list holds
no CUDA device before a provider library was registered. The driver knows, and honours CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes

_LIBRARY = "libcuda.so.1"
_SUCCESS = 0


def driver_device_count() -> int:
    """The number of CUDA devices; 0 without a driver or when it cannot start."""
    try:
        driver = ctypes.CDLL(_LIBRARY)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != _SUCCESS or driver.cuDeviceGetCount(ctypes.byref(count)) != _SUCCESS:
        return 0
    return count.value
