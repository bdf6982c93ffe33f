"""How deeply a JSON text is nested, found without parsing or recursion. Runs on: anywhere (pure)."""

from __future__ import annotations

import re

import numpy as np

# Possessive and with the end of the text as a second terminator, so that no input makes it backtrack.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")


def depth_of(text: bytes | bytearray) -> int:
    """The deepest nesting of arrays and objects in `text`, brackets inside strings not counted."""
    if b'"' in text:
        text = _STRING.sub(b"", text)
    brackets = np.frombuffer(text.translate(None, _NOT_BRACKETS), np.uint8)
    if not brackets.size:
        return 0
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    return int(np.cumsum(steps).max(initial=0))


def count_is(text: bytes | bytearray, byte: bytes, expected: int) -> bool:
    """True if `byte` occurs in `text` exactly `expected` times."""
    if len(text) < 4096:
        return text.count(byte) == expected
    if expected > 256:
        return int(np.count_nonzero(np.frombuffer(text, np.uint8) == byte[0])) == expected
    position = -1  # find() runs at memory speed, count() byte by byte
    for _ in range(expected):
        position = text.find(byte, position + 1)
        if position < 0:
            return False
    return text.find(byte, position + 1) < 0


def count_is_at_most(text: bytes | bytearray, byte: bytes, most: int) -> bool:
    """True if `byte` occurs in `text` no more than `most` times (a small number)."""
    if len(text) < 4096:
        return text.count(byte) <= most
    position = -1
    for _ in range(most + 1):
        position = text.find(byte, position + 1)
        if position < 0:
            return True
    return False
