"""gzip and deflate for infer bodies: bounded inflating, reply compression. Runs on: anywhere (pure)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache

from ..core.errors import MalformedBody, PayloadTooLarge, UnsupportedEncoding

Body = bytes | bytearray | memoryview

_WINDOW = {b"gzip": 31, b"deflate": 15}
_STEP_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_LEVEL = 1  # float tensors hardly shrink at higher levels, they only take longer


def is_identity(encoding: bytes) -> bool:
    """True if a body with this Content-Encoding is plain; raises UnsupportedEncoding for an unknown one."""
    if encoding == b"identity":
        return True
    if encoding in _WINDOW:
        return False
    raise UnsupportedEncoding(
        f"Content-Encoding {encoding.decode('latin-1')!r} is not supported; send gzip, deflate or identity"
    )


class Inflater:
    """Inflates one body in steps, never beyond `limit` bytes."""

    __slots__ = ("_body", "_inflate", "_limit", "_name", "_position", "output")

    def __init__(self, encoding: bytes, body: Body, limit: int) -> None:
        self._name = encoding.decode()
        self._inflate = zlib.decompressobj(_WINDOW[encoding])
        self._body = memoryview(body)
        self._position = 0
        self._limit = limit
        self.output = bytearray()

    def step(self, size: int) -> bool:
        """Inflate up to `size` bytes more; True when the body is complete.

        Raises PayloadTooLarge above the limit, MalformedBody for a broken, cut or overlong stream.
        """
        until = len(self.output) + size
        inflate = self._inflate
        while len(self.output) < until:
            given = inflate.unconsumed_tail or self._next_piece()
            try:
                piece = inflate.decompress(given, min(until, self._limit + 1) - len(self.output))
            except zlib.error as error:
                raise MalformedBody(f"the request body is not a valid {self._name} stream: {error}") from None
            self.output += piece
            if len(self.output) > self._limit:
                raise PayloadTooLarge(f"the request body inflates to more than max_request_bytes = {self._limit}")
            if inflate.eof:
                if inflate.unused_data or self._position < len(self._body):
                    raise MalformedBody(f"the request body has bytes after the end of its {self._name} stream")
                return True
            if not piece and not given:
                raise MalformedBody(f"the request body ends in the middle of its {self._name} stream")
        return False

    def _next_piece(self) -> memoryview:
        """The next compressed bytes; in pieces, because zlib copies what it could not take."""
        piece = self._body[self._position : self._position + _PIECE_BYTES]
        self._position += len(piece)
        return piece

    def run(self) -> bytearray:
        """Inflate all that is left."""
        while not self.step(_STEP_BYTES):
            pass
        return self.output


@lru_cache(maxsize=256)
def choose_coding(accepted: bytes) -> bytes:
    """What to compress a reply with for an Accept-Encoding value: b"gzip", b"deflate" or b"" for not at all.

    The highest q among gzip, deflate and identity wins, the first of equals; everything else in the list is ignored.
    """
    best, best_q = b"", 0.0
    for entry in accepted.split(b","):
        name, _, parameter = entry.strip().partition(b";")
        if name not in (b"gzip", b"deflate", b"identity"):
            continue
        q = _quality(parameter)
        if q > best_q:
            best, best_q = name, q
    return b"" if best == b"identity" else best


def _quality(parameter: bytes) -> float:
    """The q of one entry; 1 when there is none, 0 when it is not a number."""
    if not parameter:
        return 1.0
    key, _, value = parameter.strip().partition(b"=")
    if key != b"q":
        return 1.0
    return float(value) if value.replace(b".", b"", 1).isdigit() else 0.0


def compress(parts: Iterable[Body], coding: bytes) -> bytes:
    """The parts joined and compressed."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW[coding])
    pieces = [deflate.compress(part) for part in parts]
    pieces.append(deflate.flush())
    return b"".join(pieces)
