"""Gives freed host memory back to the system. Runs on: anywhere."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def return_freed_memory() -> bool:
    """Ask the C library to hand back what it holds free; False where it cannot (musl, macOS).

    glibc keeps freed blocks for reuse, so an unloaded model would stay in the process's size for ever.
    """
    trim = _malloc_trim()
    return trim is not None and bool(trim(0))


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    function.restype = ctypes.c_int
    return function
