"""Reading requests from a connection under guard: bounded heads, receive deadlines, refusals as JSON.

Runs on: event loop.

What uvicorn's protocol class leaves open is closed here, for inferences and for everything else alike.
"""

from __future__ import annotations

import logging
from typing import Any

import httptools

from ..core.errors import InvalidRequest, KernelPortError, PayloadTooLarge, RequestTimeout
from .connection import BODY, HEAD, IDLE, OrderedConnection
from .deadlines import NEVER, next_body_check
from .gate import Gate
from .infer_route import path_of

_log = logging.getLogger(__name__)

_CHUNK_OVERHEAD_BYTES = 16  # what framing one chunk may cost, on average, beyond the head's allowance
_VERSIONS = ("1.0", "1.1")


class StopParsing(Exception):
    """Raised in a parser callback to make the parser stop; says nothing by itself."""


class GuardedConnection(OrderedConnection):
    """See the module. To refuse a request, parser callbacks `raise self.stop(error)`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.begun = 0  # messages begun
        self.fed = 0  # bytes of the message being received, without those of the chunk being parsed
        self.chunk_bytes = 0  # the chunk being parsed
        self.body_bytes = 0
        self.body_chunks = 0
        self.body_started_s = 0.0
        self.is_reparsing = False
        self.refusal: tuple[KernelPortError, int] | None = None

    def data_received(self, data: bytes) -> None:
        """Feed the parser; its callbacks below start the work."""
        if self.ignores_input:
            self.discard(len(data))
            return
        begun, was_idle = self.begun, self.stage == IDLE
        rest: bytes | None = data
        while rest is not None:
            self.chunk_bytes = len(rest)
            rest = self._feed(rest)
        if self.stage:
            self._watch(self.begun - begun, was_idle)

    def _feed(self, data: bytes) -> bytes | None:
        """Parse; what is to be parsed again, if the client offered to change protocols."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return self._without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._on_parser_error(error)
        return None

    def _on_parser_error(self, error: httptools.HttpParserError) -> None:
        if self.ignores_input:
            return
        refusal = self.refusal
        if refusal is not None:
            self.refuse(*refusal)
        elif isinstance(error, httptools.HttpParserCallbackError):
            _log.error("unexpected failure reading a request", exc_info=error)
            self.refuse(KernelPortError("internal error"))
        else:
            self.refuse(InvalidRequest(f"malformed HTTP request: {error}"))

    def _without_upgrade(self, rest: bytes) -> bytes:
        """The request as if the client had not offered another protocol, which HTTP lets a server ignore.

        Java's standard client offers HTTP/2 with every first request. The parser, though, skips the body of one.
        """
        version = self.parser.get_http_version().encode()
        head = [self.parser.get_method(), b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            if name.lower() == b"connection":
                value = b",".join(token for token in value.split(b",") if b"close" in token.lower())
            elif name.lower() in (b"upgrade", b"http2-settings"):
                continue
            head += (name, b": ", value, b"\r\n")
        head += (b"\r\n", rest)
        self.is_reparsing = False
        self.parser = self.new_parser()
        return b"".join(head)

    def new_parser(self) -> httptools.HttpRequestParser:
        """A parser set up as uvicorn does it."""
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _watch(self, begun: int, was_idle: bool) -> None:
        """A message is incomplete at the end of a chunk: bound its size, and the time it may take."""
        if begun == 0 or (begun == 1 and was_idle):  # else its share of the chunk is unknown, and left out
            self.fed += self.chunk_bytes
        now_s = self.loop.time()
        limits = self.limits
        if self.stage == HEAD:
            if self.fed > limits.max_header_bytes:
                self.refuse(_too_large_head(limits.max_header_bytes), 431)
            elif self.deadline.due_s == NEVER:
                self.deadline.set(now_s + limits.header_timeout_s)
            return
        allowed = 2 * limits.max_header_bytes + _CHUNK_OVERHEAD_BYTES * self.body_chunks
        if self.fed - self.body_bytes > allowed:
            self.refuse(InvalidRequest("the request body is mostly chunk framing or trailers"))
        elif not self.body_started_s:
            self.body_started_s = now_s
            self.deadline.set(next_body_check(now_s, now_s, 0, limits) or now_s)

    # Parser callbacks.

    def on_message_begin(self) -> None:
        """A request begins."""
        if self.ignores_input:
            raise StopParsing
        self.url = b""
        self.headers = []
        self.begun += 1
        self.fed = self.body_bytes = self.body_chunks = 0
        self.body_started_s = 0.0
        self.stage = HEAD
        self.deadline.due_s = NEVER

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or a trailer, which nobody reads any more."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Hand the request to uvicorn, which starts the ASGI application."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise self.stop(InvalidRequest("CONNECT is not served here"))
            self.is_reparsing = True
            return
        self.check_head()
        if path_of(self.url) is None:
            raise self.stop(InvalidRequest(f"the request target {self.url.decode('latin-1')!r} is not valid"))
        url, headers = self.url, [(name.lower(), value) for name, value in self.headers]
        expects = False
        for name, value in headers:
            if name == b"expect":
                expects = value.lower() == b"100-continue"
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                raise self.stop(InvalidRequest("the only Transfer-Encoding served here is chunked"))
        if sum(name == b"host" for name, _ in headers) > 1:
            raise self.stop(InvalidRequest("the request has more than one Host header"))
        super().on_message_begin()
        self.url = url
        self.headers.extend(headers)
        self.expect_100_continue = expects
        super().on_headers_complete()
        self.stage = BODY
        self.headers = []  # so that trailers do not turn into headers
        self.check_pipeline()

    def on_body(self, data: bytes) -> None:
        """A piece of the body for the ASGI application."""
        self.body_bytes += len(data)
        super().on_body(data)

    def on_chunk_header(self) -> None:
        """A chunk of a chunked body begins."""
        self.body_chunks += 1

    def on_message_complete(self) -> None:
        """The request has been received."""
        if self.is_reparsing:
            return
        self.stage = IDLE
        if not self.parser.should_keep_alive():
            self.ignores_input = True
        super().on_message_complete()
        if self.running is None:  # it was answered before it was complete
            self.advance()

    def check_head(self) -> None:
        """Bounds of a complete head."""
        limits = self.limits
        if len(self.url) > limits.max_url_bytes:
            raise self.stop(InvalidRequest(f"the request target is longer than {limits.max_url_bytes} bytes"), 414)
        if len(self.headers) > limits.max_headers:
            raise self.stop(PayloadTooLarge(f"the request has more than {limits.max_headers} header fields"), 431)
        if self.fed + self.chunk_bytes > limits.max_header_bytes:
            size = sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size + len(self.url) > limits.max_header_bytes:
                raise self.stop(_too_large_head(limits.max_header_bytes), 431)
        if not self.parser.should_keep_alive() and self.parser.get_http_version() not in _VERSIONS:
            raise self.stop(InvalidRequest("only HTTP/1.0 and HTTP/1.1 are served here"))

    def stop(self, error: KernelPortError, status: int = 0) -> StopParsing:
        """For `raise` in a parser callback: refuse the request and everything after it."""
        self.refusal = (error, status)
        return StopParsing()

    def check_pipeline(self) -> None:
        """Refuse a client that piles up requests."""
        if len(self.pipeline) > self.limits.max_pipelined:
            raise self.stop(InvalidRequest(f"more than {self.limits.max_pipelined} requests are pipelined"))

    def on_deadline(self) -> None:
        """See the base class; also a request that comes too slowly."""
        if self.stage == HEAD:
            limit_s = self.limits.header_timeout_s
            self.refuse(RequestTimeout(f"the request head was not received within {limit_s:g} seconds"))
        elif self.stage == BODY:
            self._check_body(self.loop.time())
        else:
            super().on_deadline()

    def holds_back(self) -> bool:
        """The client rightly waits to be asked for the body."""
        return self.cycle is not None and self.cycle.waiting_for_100_continue

    def _check_body(self, now_s: float) -> None:
        if self.flow.read_paused or self.holds_back():  # our own doing, so the clock starts again
            self.body_started_s = now_s
            self.fed = self.body_bytes
        next_s = next_body_check(self.body_started_s, now_s, self.fed, self.limits)
        if next_s is not None:
            self.deadline.set(next_s)
            return
        self.refuse(
            RequestTimeout(
                f"the request body was not received within {self.limits.body_timeout_s:g} seconds, "
                f"or came slower than {self.limits.body_min_rate} bytes per second"
            )
        )


def _too_large_head(limit: int) -> KernelPortError:
    return PayloadTooLarge(f"the request head is larger than {limit} bytes")


def plain_protocol(gate: Gate) -> type[GuardedConnection]:
    """The class to give uvicorn as `http=` when every request is to take the ASGI application."""
    return type("GuardedConnection", (GuardedConnection,), {"gate": gate})
