"""Small configuration files, read without hanging on odd ones. Runs on: loader thread."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..core.errors import ConfigError

MAX_CONFIG_BYTES = 1024 * 1024


def read_text_file(path: Path, limit: int = MAX_CONFIG_BYTES) -> str:
    """The UTF-8 text of a regular file; raises ConfigError for anything else (a FIFO is not waited for)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(f"{path}: not a regular file")
            data = file.read(limit + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise ConfigError(f"{path}: larger than {limit} bytes, too large for a configuration")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
