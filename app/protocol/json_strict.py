"""The slow JSON parser: the standard library's, for small documents that simdjson refuses. Runs on: event loop.

It takes what clients really send and the JSON standard forbids: NaN and Infinity tokens, invalid UTF-8 inside the
strings of arrays (BYTES data, kept byte for byte). It refuses what the standard library would let through: numbers
beyond double range, lone surrogates, documents too deep for its recursion.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ..core.errors import MalformedBody
from .json_depth import depth_of
from .limits import DecodeLimits

BOM = b"\xef\xbb\xbf"
_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_strict(text: bytes | bytearray, limits: DecodeLimits) -> Any:
    """The document as Python objects, of duplicate members the first; raises MalformedBody for anything wrong."""
    depth = depth_of(text)
    if depth > limits.json_depth:
        raise MalformedBody(f"the JSON is nested {depth} levels deep, this server takes at most {limits.json_depth}")
    if text[:3] == BOM:
        text = text[3:]
    try:
        return _DECODER.decode(_to_text(text))
    except json.JSONDecodeError as error:
        reason = f"the body is not valid JSON: {error.msg} at character {error.pos}"
    except RecursionError:  # json_depth is set higher than the interpreter's own limit
        reason = f"the JSON is nested {depth} levels deep, which is more than the parser can follow"
    raise MalformedBody(reason)


def _to_text(text: bytes | bytearray) -> str:
    """The text; bytes that are no UTF-8 become lone surrogates (PEP 383), which `str.encode` turns back later."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        # Now an escaped lone surrogate could no longer be told from an invalid byte.
        if _SURROGATE.search(_SURROGATE_PAIR.sub(b"", text)):
            raise MalformedBody("the body has a lone surrogate escape, which stands for no character") from None
        return text.decode(errors="surrogateescape")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members: of duplicates the first counts; member names and plain values must be valid text."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        _check_text(name)
        if value.__class__ is str:
            _check_text(value)
        members.setdefault(name, value)
    return members


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedBody(f"the string {ascii(text)[:80]} in the JSON is not valid Unicode text") from None


def _float(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise MalformedBody(f"the number {literal[:40]} in the JSON is beyond the range of a 64-bit float")
    return number


def _int(literal: str) -> int:
    if len(literal) > 400:  # past 1e308 no datatype holds it
        raise MalformedBody(f"the integer {literal[:40]}... in the JSON is beyond the range of every datatype")
    return int(literal)


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_float=_float, parse_int=_int)
