"""Byte sizes as people write them: `64MiB`, `1 GB`, `4096`. Runs on: anywhere (pure)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]{1,3}))? ?([a-z]*)", re.ASCII | re.IGNORECASE)
_FACTORS = {
    "": 1, "b": 1,
    "k": 1024, "kib": 1024, "kb": 1000,
    "m": 1024**2, "mib": 1024**2, "mb": 1000**2,
    "g": 1024**3, "gib": 1024**3, "gb": 1000**3,
    "t": 1024**4, "tib": 1024**4, "tb": 1000**4,
}  # fmt: skip


def parse_bytes(text: str) -> int:
    """`64MiB` to 67108864; raises ValueError naming the accepted forms. K, M, G, T alone are binary units."""
    match = _SIZE.fullmatch(text.strip())
    factor = _FACTORS.get(match.group(3).lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size in bytes; write for example 4096, 512KiB, 64MiB or 1GiB")
    whole, fraction = match.group(1), match.group(2) or ""
    value = int(whole + fraction) * factor
    scale: int = 10 ** len(fraction)
    if value % scale:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return value // scale


def format_bytes(size: int) -> str:
    """67108864 to `64MiB`: the largest binary unit that divides it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _FACTORS[unit.lower()]
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _to_bytes(value: Any) -> Any:
    return parse_bytes(value) if isinstance(value, str) else value


ByteSize = Annotated[int, Field(ge=0), BeforeValidator(_to_bytes, json_schema_input_type=int | str)]
