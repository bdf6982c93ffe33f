"""An inference request as the lane sees it: where it goes, how its body comes, what its header fields ask for.

Runs on: event loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidRequest, KernelPortError, PayloadTooLarge
from .endpoint import InferHeaders
from .infer_route import InferRoute

_ALIGNMENT = 64
_PLAIN = InferHeaders()
_SPECIAL = frozenset((b"inference-header-content-length", b"content-encoding", b"accept-encoding"))
_USUAL = frozenset((b"host", b"content-length"))
_WANTED = _SPECIAL | _USUAL | {b"transfer-encoding", b"expect", b"connection", b"x-request-id", b"x-forwarded-for"}


class LaneRequest:
    """One inference request on a connection. `length` is its Content-Length, -1 for a chunked body."""

    __slots__ = (
        "awaits_continue",
        "body",
        "charged",
        "error",
        "forwarded_for",
        "has_connection",
        "headers",
        "is_last",
        "length",
        "received",
        "received_ns",
        "request_id",
        "route",
        "sent_id",
    )

    def __init__(self, route: InferRoute) -> None:
        self.route = route
        self.headers = _PLAIN
        self.length = 0
        self.body: Any = b""
        self.received = 0  # bytes of a body in pieces that are here
        self.charged = 0  # bytes it holds of the server's budget
        self.received_ns = 0
        self.is_last = False
        self.has_connection = False
        self.awaits_continue = False
        self.error: KernelPortError | None = None
        self.sent_id = b""
        self.forwarded_for = b""
        self.request_id = b""

    def read(self, fields: list[tuple[bytes, bytes]], max_bytes: int) -> None:
        """Pick out the few header fields that matter; raises InvalidRequest when they contradict each other."""
        found: dict[bytes, bytes] = {}
        for name, value in fields:
            if name in _WANTED or (name := name.lower()) in _WANTED:
                found[name] = value if name not in found else found[name] + b", " + value
        if b", " in found.get(b"host", b""):
            raise InvalidRequest("the request has more than one Host header")
        if b"content-length" in found:
            self.length = int(found[b"content-length"])
            if self.length > max_bytes:
                self.error = too_large(max_bytes)
        elif b"transfer-encoding" in found:
            if found[b"transfer-encoding"].lower() != b"chunked":
                raise InvalidRequest("the only Transfer-Encoding served here is chunked")
            self.length = -1
            self.body = bytearray()
        if found.keys() <= _USUAL:
            return
        self.has_connection = b"connection" in found
        self.awaits_continue = self.length != 0 and found.get(b"expect", b"").lower() == b"100-continue"
        self.sent_id = found.get(b"x-request-id", b"")
        self.forwarded_for = found.get(b"x-forwarded-for", b"")
        if not _SPECIAL.isdisjoint(found):
            self.headers = InferHeaders(
                found.get(b"inference-header-content-length"),
                found.get(b"content-encoding", b""),
                found.get(b"accept-encoding", b""),
            )

    def buffer(self) -> bytearray | memoryview:
        """Room for a body of known length that comes in pieces.

        JSON is parsed from bytes or a bytearray. A binary body gets memory that is not filled with zeros first, placed
        so that the tensors behind the JSON part are aligned and need not be copied.
        """
        json_length = self.headers.json_length
        if json_length is None or not json_length.isdigit():
            return bytearray(self.length)
        memory = np.empty(self.length + _ALIGNMENT, np.uint8)
        start = -(memory.ctypes.data + int(json_length[-9:])) % _ALIGNMENT
        return memory[start : start + self.length].data

    def identify(self, request_id: bytes) -> None:
        """Know the request under an id."""
        self.request_id = request_id
        if self.headers is _PLAIN:
            self.headers = InferHeaders()
        self.headers.request_id = request_id


def too_large(limit: int) -> PayloadTooLarge:
    """The refusal of a body above the limit."""
    return PayloadTooLarge(f"the request body is larger than max_request_bytes = {limit}")
