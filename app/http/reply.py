"""A finished HTTP answer, ready for either path: status, header fields, body parts. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from ..core.errors import KernelPortError, UnsupportedEncoding
from .status import error_body, status_of

Header = tuple[bytes, bytes]
Part = bytes | memoryview

JSON = b"application/json"
BINARY = b"application/octet-stream"

_REASONS: dict[int, bytes] = {one.value: one.phrase.encode() for one in HTTPStatus} | {499: b"Client Closed Request"}
_OK_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
_OK_BINARY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %d\r\n"
    b"inference-header-content-length: %d\r\n"
)
_CONNECTION_CLOSE = b"connection: close\r\n"


class Reply:
    """Status, the header fields beyond content-type and content-length, and the body in pieces.

    `json_length` is the length of the JSON part when binary tensors follow it, else None.
    """

    __slots__ = ("extra", "json_length", "parts", "server_timing", "size", "status")

    def __init__(
        self,
        status: int,
        parts: list[Part],
        size: int,
        extra: Sequence[Header] = (),
        json_length: int | None = None,
        server_timing: bytes = b"",
    ) -> None:
        self.status = status
        self.parts = parts
        self.size = size
        self.extra = extra
        self.json_length = json_length
        self.server_timing = server_timing

    @property
    def headers(self) -> list[Header]:
        """All header fields of the answer, names in lower case."""
        fields: list[Header] = [
            (b"content-type", JSON if self.json_length is None else BINARY),
            (b"content-length", b"%d" % self.size),
        ]
        if self.json_length is not None:
            fields.append((b"inference-header-content-length", b"%d" % self.json_length))
        if self.server_timing:
            fields.append((b"server-timing", self.server_timing))
        fields.extend(self.extra)
        return fields

    @property
    def body(self) -> bytes:
        """The body in one piece (a copy when it has several)."""
        return b"".join(self.parts)

    def head(self, always: bytes, request_id: bytes, is_last: bool) -> bytes:
        """Status line and header fields on the wire; `always` are the server's own fields, already formatted."""
        if self.status == 200:
            length = self.json_length
            text = _OK_JSON % self.size if length is None else _OK_BINARY % (self.size, length)
        else:
            text = b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (
                self.status,
                _REASONS.get(self.status, b""),
                self.size,
            )
        if self.server_timing:
            text += b"server-timing: %b\r\n" % self.server_timing
        for field in self.extra:
            text += b"%b: %b\r\n" % field
        if request_id:
            text += b"x-request-id: %b\r\n" % request_id
        if is_last:
            text += _CONNECTION_CLOSE
        return b"%b%b\r\n" % (text, always)


def error_reply(error: KernelPortError, status: int = 0, server_timing: bytes = b"") -> Reply:
    """The answer for an error; `status` overrides the table (for statuses that only HTTP has)."""
    body = error_body(error)
    extra: list[Header] = []
    if error.retry_after_s is not None:
        extra.append((b"retry-after", b"%d" % error.retry_after_s))
    if isinstance(error, UnsupportedEncoding):
        extra.append((b"accept-encoding", b"gzip, deflate"))
    return Reply(status or status_of(error), [body], len(body), extra, server_timing=server_timing)
