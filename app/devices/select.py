"""From the `--device` option to a device. Runs on: anywhere (pure but for the count it is given)."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import ConfigError
from .device import CPU, Device


def resolve_device(text: str, cuda_count: Callable[[], int]) -> Device:
    """`auto`, `cpu` or `cuda:N` to a device; ConfigError when it is none of these or there is no such GPU.

    `auto` is the first GPU that an installed framework can really use, else the CPU. `cuda_count` is asked only
    when the answer matters, because asking means importing a framework.
    """
    if text == "auto":
        return Device("cuda", 0) if cuda_count() > 0 else CPU
    device = Device.parse(text)
    if device.kind == "cpu":
        return device
    count = cuda_count()
    if device.index >= count:
        have = f"only {count} (cuda:0 to cuda:{count - 1})" if count else "none"
        raise ConfigError(
            f"device {text} does not exist: the installed frameworks can use {have}; check nvidia-smi, and that "
            "kernelport[gpu] is installed instead of kernelport[cpu]"
        )
    return device
