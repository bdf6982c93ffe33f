"""The runtime's CUDA side: is it built in, and are its libraries found. Runs on: loader thread."""

from __future__ import annotations

import contextlib
import io
import logging
from functools import cache

from .providers import CUDA_PROVIDER
from .runtime import ort

_log = logging.getLogger(__name__)


def is_cuda_build() -> bool:
    """True if the installed package has the CUDA provider; says nothing about this machine."""
    return CUDA_PROVIDER in ort.get_available_providers()


@cache
def load_cuda_libraries() -> None:
    """Load CUDA and cuDNN from the nvidia-* packages beside the runtime, once; without them it finds only system ones.

    The runtime prints what it does not find. That goes to the debug log: what really is missing is told when a
    session cannot be created.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ort.preload_dlls()
    for line in printed.getvalue().splitlines():
        _log.debug("onnxruntime: %s", line)
