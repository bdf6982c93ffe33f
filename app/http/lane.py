"""The short way for inferences: from the socket to the endpoint and back, without ASGI. Runs on: event loop.

Takes `POST .../infer` and leaves everything else to uvicorn and the ASGI application. No scope, no task: the body goes
into one buffer, and the reply is written from the callback of the call that made it.

Clients repeat themselves: on a connection most requests have, byte for byte, the head of the one before. Such a head
is not parsed again (`known_head`); only its body is new.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from ..core.errors import InvalidRequest, TooManyInFlight
from .connection import BODY, IDLE
from .deadlines import NEVER
from .endpoint import Exchange, InferEndpoint
from .infer_route import InferRoutes
from .lane_request import LaneRequest, too_large
from .reception import GuardedConnection
from .reply import Reply, error_reply

_monotonic_ns = time.monotonic_ns

_JOINED_BYTES = 65536  # replies up to this size are written in one piece; above, copying costs more than writev
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class InferConnection(GuardedConnection):
    """See the module. `incoming` is the inference being received, `running` (if a LaneRequest) the one at work."""

    endpoint: ClassVar[InferEndpoint]
    routes: ClassVar[InferRoutes]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.incoming: LaneRequest | None = None
        self.latest: LaneRequest | None = None  # the last one received
        self.exchange: Exchange | None = None
        self.known: LaneRequest | None = None
        self.known_head = b""
        self.known_size = -1  # bytes of head and body together; -1: no head is known

    # Receiving.

    def data_received(self, data: bytes) -> None:
        """See the base class; a head that is known is not parsed."""
        if len(data) != self.known_size or not data.startswith(self.known_head) or self.running is not None:
            self._parse(data)
            return
        request = self.known
        gate = self.gate
        total = gate.bytes_in_flight + request.length  # type: ignore[union-attr]
        if self.stage != IDLE or total > self.limits.max_inflight_bytes:
            self._parse(data)
            return
        assert request is not None
        gate.bytes_in_flight = total
        request.charged = request.length
        request.body = data[len(self.known_head) :]
        self.deadline.due_s = NEVER
        self.run_queued(request)

    def _parse(self, data: bytes) -> None:
        """Feed the parser, and remember the head if the chunk is exactly one plain inference."""
        was_idle, begun, before = self.stage == IDLE, self.begun, self.latest
        super().data_received(data)
        request = self.latest
        if request is None or request is before or not was_idle or self.begun != begun + 1 or self.stage != IDLE:
            return
        length = request.length
        is_plain = request.error is None and not request.request_id and not request.is_last
        is_first = not self.pipeline and not self.flow.write_paused and not self.ignores_input
        if is_plain and is_first and length > 0:
            head = data[:-length]
            if head.startswith(b"POST ") and head.find(b"\r\n\r\n") == len(head) - 4:
                self.known, self.known_head, self.known_size = request, head, len(data)

    def forget(self) -> None:
        """Parse the next head in any case."""
        self.known, self.known_head, self.known_size = None, b"", -1

    def on_headers_complete(self) -> None:
        """Take the request if it is an inference, else hand it on."""
        url = self.url
        try:
            route = self.routes.known[url]
        except KeyError:
            route = self.routes.resolve(url)
        parser = self.parser
        if route is None or parser.get_method() != b"POST" or parser.should_upgrade():
            super().on_headers_complete()
            return
        limits = self.limits
        keeps_alive = parser.should_keep_alive()
        if (
            self.chunk_bytes + self.fed > limits.max_header_bytes
            or len(self.headers) > limits.max_headers
            or len(url) > limits.max_url_bytes
            or not keeps_alive
        ):
            self.check_head()
        self.incoming = request = LaneRequest(route)
        try:
            request.read(self.headers, limits.max_request_bytes)
        except InvalidRequest as error:
            raise self.stop(error) from None
        self.headers = []  # so that trailers are not mistaken for headers
        self.stage = BODY
        request.is_last = not keeps_alive or (request.has_connection and parser.get_http_version() == "1.0")
        if request.sent_id or self.gate.makes_ids:
            request.identify(self.gate.request_id(request.sent_id))
        if request.length > 0 and request.error is None:
            self._reserve(request)
        if request.error is not None and (request.awaits_continue or request.length > limits.drain_bytes):
            raise self.stop(request.error)
        if request.awaits_continue and self.running is None and not self.pipeline:
            self._send_continue(request)

    def on_body(self, data: bytes) -> None:
        """A piece of the body; most bodies come in one and are not copied."""
        request = self.incoming
        if request is None:
            super().on_body(data)
        elif len(data) == request.length:
            request.body = data
        else:
            self._collect(request, data)

    def on_message_complete(self) -> None:
        """Start the inference, or let it wait for its turn."""
        request = self.incoming
        if request is None:
            super().on_message_complete()
            return
        self.latest = request
        self.incoming = None
        self.stage = IDLE
        if request.is_last:
            self.ignores_input = True
        if self.running is None and not self.pipeline and not self.flow.write_paused:
            self.run_queued(request)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((None, request))
            self.check_pipeline()

    def _reserve(self, request: LaneRequest) -> None:
        """Take the body's size of the server's budget before it comes."""
        try:
            self.gate.charge(request.length)
        except TooManyInFlight as error:
            request.error = error.with_traceback(None)
        else:
            request.charged = request.length

    def _send_continue(self, request: LaneRequest) -> None:
        request.awaits_continue = False
        self.transport.write(_CONTINUE)

    def _collect(self, request: LaneRequest, data: bytes) -> None:
        """Add a piece to a body that comes in several."""
        size = len(data)
        self.body_bytes += size
        start = request.received
        request.received = end = start + size
        if request.error is not None:
            return
        if request.length >= 0:
            if start == 0:
                request.body = request.buffer()
            request.body[start:end] = data
            return
        if end > self.limits.max_request_bytes:
            raise self.stop(too_large(self.limits.max_request_bytes))
        try:
            self.gate.charge(size)
        except TooManyInFlight as error:
            raise self.stop(error) from None
        request.charged += size
        request.body += data

    # Answering.

    def run_queued(self, request: LaneRequest) -> None:
        """Start an inference whose turn it is."""
        self.running = request
        self.served += 1
        request.received_ns = now_ns = _monotonic_ns()
        if request.error is not None:
            self._reply(error_reply(request.error))
            return
        route = request.route
        exchange = self.endpoint.infer(route.model, route.version, request.body, request.headers, self._reply, now_ns)
        if self.running is request:
            self.exchange = exchange

    def _reply(self, reply: Reply) -> None:
        """Write the answer to the running inference; called from inside the batch's wake-up of the loop."""
        request: LaneRequest = self.running
        gate = self.gate
        is_last = (
            request.is_last or gate.is_draining or self.ends_after_reply or (self.is_bounded and self.is_last_reply())
        )
        fields = self.server_state.default_headers
        head = reply.head(_formatted(fields) if fields else b"", request.request_id, is_last)
        parts = reply.parts
        if reply.size > _JOINED_BYTES:
            self.transport.writelines([head, *parts])
        elif len(parts) == 1:
            self.transport.write(head + parts[0])
        else:
            self.transport.write(b"".join((head, *parts)))
        elapsed_ns = _monotonic_ns() - request.received_ns
        length = request.length
        request.route.stats.observe(reply.status, elapsed_ns, length if length >= 0 else request.received, reply.size)
        if gate.logs_access:
            self._log_access(request, reply.status, reply.size, elapsed_ns)
        gate.bytes_in_flight -= request.charged
        request.charged = 0
        request.body = b""
        self.running = self.exchange = None
        if is_last:
            self.end()
        elif self.pipeline or self.stage or self.flow.read_paused:
            self.advance()
        else:
            deadline = self.deadline
            due_s = self.loop.time() + self.limits.keep_alive_s
            if due_s > self.closes_at_s:
                due_s = self.closes_at_s
            deadline.due_s = due_s
            if due_s < deadline.fires_at_s:
                deadline.set(due_s)

    def _log_access(self, request: LaneRequest, status: int, size: int, elapsed_ns: int) -> None:
        self.gate.log_access(
            _client_of(self.client, request.forwarded_for, self.app),
            "POST",
            request.route.path,
            status,
            size,
            elapsed_ns,
            request.request_id,
        )

    def advance(self) -> None:
        """See the base class; also lets go a client that waits to be asked for its body."""
        super().advance()
        incoming = self.incoming
        if incoming is not None and incoming.awaits_continue and self.running is None and not self.pipeline:
            self._send_continue(incoming)

    # Ends.

    def pause_writing(self) -> None:
        """See the base class; a request that comes now must wait."""
        self.forget()
        super().pause_writing()

    def linger(self) -> None:
        """See the base class."""
        self.forget()
        super().linger()

    def refuse(self, *arguments: Any) -> None:
        """See the base class."""
        self.forget()
        super().refuse(*arguments)

    def holds_back(self) -> bool:
        """See the base class."""
        request = self.incoming
        return super().holds_back() if request is None else request.awaits_continue

    def drop_incoming(self) -> bool:
        """See the base class."""
        request = self.incoming
        if request is None:
            return super().drop_incoming()
        self.incoming = None
        self._release(request)
        return True

    def abandon(self) -> None:
        """See the base class; an inference that runs is cancelled."""
        request, exchange = self.running, self.exchange
        if self.incoming is not None:
            self._release(self.incoming)
            self.incoming = None
        for _, queued in self.pipeline:
            if isinstance(queued, LaneRequest):
                self._release(queued)
        super().abandon()
        self.forget()
        self.latest = self.exchange = None
        if isinstance(request, LaneRequest):
            self._release(request)
            elapsed_ns = _monotonic_ns() - request.received_ns
            request.route.stats.observe(499, elapsed_ns, max(request.length, request.received), 0)
            self._log_access(request, 499, 0, elapsed_ns)
        if exchange is not None:
            exchange.cancel()

    def _release(self, request: LaneRequest) -> None:
        self.gate.bytes_in_flight -= request.charged
        request.charged = 0
        request.body = b""


def _client_of(peer: tuple[str, int] | None, forwarded_for: bytes, app: Any) -> str:
    """Who asked, for the log: behind a trusted proxy the client that it names, as uvicorn's middleware decides it."""
    trusted = getattr(app, "trusted_hosts", None)
    if forwarded_for and trusted is not None and (peer[0] if peer else None) in trusted:
        peer = trusted.get_trusted_client_address(forwarded_for.decode("latin-1"))
    return f"{peer[0]}:{peer[1]}" if peer else ""


def _formatted(fields: list[tuple[bytes, bytes]]) -> bytes:
    """Uvicorn's own header fields (date) as they go on the wire."""
    return b"".join(b"%b: %b\r\n" % field for field in fields)


def lane_protocol(endpoint: InferEndpoint, root_path: str = "") -> type[InferConnection]:
    """The class to give uvicorn as `http=`: infer requests take the lane, all others its ASGI application."""
    routes = InferRoutes(endpoint.gate.http_stats, root_path)
    return type("InferConnection", (InferConnection,), {"gate": endpoint.gate, "endpoint": endpoint, "routes": routes})
