"""Device names as values. Runs on: anywhere (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import ConfigError

_NAME = re.compile(r"cpu|cuda:(0|[1-9][0-9]{0,3})", re.ASCII)


@dataclass(slots=True, frozen=True)
class Device:
    """Where a model runs: kind "cpu" or "cuda", and the index among devices of that kind."""

    kind: str
    index: int = 0

    @classmethod
    def parse(cls, text: str) -> Device:
        """`cpu` or `cuda:N` to a device; raises ConfigError naming what is accepted."""
        if text == "cuda":
            text = "cuda:0"
        if not _NAME.fullmatch(text):
            raise ConfigError(f"device {text!r} is not known; use cpu or cuda:N (for example cuda:0)")
        kind, _, index = text.partition(":")
        return cls(kind, int(index or 0))

    def __str__(self) -> str:
        return "cpu" if self.kind == "cpu" else f"{self.kind}:{self.index}"


CPU = Device("cpu")
