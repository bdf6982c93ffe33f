"""From the bytes of a JSON document to something with `.get()`: simdjson first, the slow parser as second opinion.

Runs on: event loop.
"""

from __future__ import annotations

from typing import Any

from simdjson import Array, Object, Parser

from ..core.errors import MalformedBody, PayloadTooLarge
from .json_strict import parse_strict
from .limits import DecodeLimits

OBJECTS = (Object, dict)
ARRAYS = (Array, list)

# A parser keeps its buffers, up to 12 times the text. Up to this size that saves the page faults of getting them anew
# (half the time of an image sent as JSON); above it, one odd request would make the process fat for good.
_REUSE_UP_TO_BYTES = 4 * 1024 * 1024


class _ParserSlot:
    """The parser whose buffers are used again and again.

    simdjson's proxies point into the parser's buffers, and the parser refuses the next document while one is alive
    (a traceback kept somewhere is enough). Then the slot takes a new parser and leaves the old one to its proxies.
    """

    __slots__ = ("parse", "parser")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start over with a new parser."""
        self.parser = Parser()
        self.parse = self.parser.parse


_SLOT = _ParserSlot()


def parse_document(text: bytes | bytearray, limits: DecodeLimits) -> Any:
    """The document as simdjson proxies, or as Python objects if only the slow parser takes it.

    The caller must let go of the proxies before it returns or raises to its own caller.
    """
    size = len(text)
    if size > limits.max_json_bytes:
        raise PayloadTooLarge(
            f"the JSON part of the body has {size} bytes, this server takes at most {limits.max_json_bytes}; "
            "send big tensors with the binary tensor data extension (binary_data_size)"
        )
    refusal = ""
    try:
        return _SLOT.parse(text) if size <= _REUSE_UP_TO_BYTES else Parser().parse(text)
    except (ValueError, RuntimeError) as error:
        refusal = str(error)
    if refusal.startswith("Tried to re-use"):
        _SLOT.renew()
        try:
            return _SLOT.parse(text)
        except (ValueError, RuntimeError) as error:
            refusal = str(error)
    return _second_opinion(text, refusal, limits)


def _second_opinion(text: bytes | bytearray, refusal: str, limits: DecodeLimits) -> Any:
    if not text:
        raise MalformedBody("the body is empty, expected a JSON document")
    if len(text) < limits.strict_json_bytes:
        return parse_strict(text, limits)
    raise MalformedBody(
        f"the body is not valid JSON: {refusal} (NaN, Infinity, invalid UTF-8 and huge integers are only taken in JSON "
        f"of less than {limits.strict_json_bytes} bytes; the binary tensor data extension has no such limit)"
    )
