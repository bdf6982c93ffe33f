"""The gate for the ASGI path: body bounds, byte budget, request id, access log, orderly refusals. Runs on: event loop.

Plain ASGI on both sides, so that a client's disconnect reaches the application.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import numpy as np

from ..core.errors import Cancelled, KernelPortError, PayloadTooLarge
from ..telemetry.logging import request_id as request_id_variable
from .compression import Body
from .gate import Gate
from .reply import Reply, error_reply

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class AsgiLimits:
    """Middleware: what the lane does for inferences, for every other request."""

    def __init__(self, app: App, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Passage(self._gate, scope, receive, send).run(self._app)


class _Passage:
    """One request on its way through the gate."""

    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send) -> None:
        self._gate = gate
        self._limits = gate.limits
        self._scope = scope
        self._receive = receive
        self._send = send
        self._started_ns = time.monotonic_ns()
        self._charged = 0
        self._received = 0
        self._is_complete = False
        self._status = 0
        self._sent = 0
        self._refusal: KernelPortError | None = None  # raised into the application, which must not answer 200 to it
        self._is_refused = False
        self._length, sent_id, self._expects = _fields_of(scope)
        self._request_id = gate.request_id(sent_id)

    async def run(self, app: App) -> None:
        token = request_id_variable.set(self._request_id.decode("latin-1"))
        try:
            self._admit()
            await app(self._scope, self.receive, self.send)
        except KernelPortError as error:
            if self._status:
                raise
            await self._refuse(error)
        finally:
            request_id_variable.reset(token)
            self._gate.release(self._charged)
            if self._gate.logs_access:
                self._log()

    def _admit(self) -> None:
        """Refuse by what the head announces."""
        length = self._length
        if length is None:
            return
        if length > self._limits.max_request_bytes:
            raise self._too_large()
        self._gate.charge(length)
        self._charged = length

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"the request body is larger than max_request_bytes = {self._limits.max_request_bytes}")

    async def receive(self) -> Message:
        """The server's messages, with the body counted."""
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        size = len(message.get("body", b""))
        self._received += size
        self._is_complete = not message.get("more_body", False)
        try:
            if self._received > self._limits.max_request_bytes:
                raise self._too_large()
            if self._received > self._charged:
                self._gate.charge(self._received - self._charged)
                self._charged = self._received
        except KernelPortError as error:
            self._refusal = error
            raise
        return message

    async def send(self, message: Message) -> None:
        """The application's messages, with our header fields; a body that was refused overrules its answer."""
        if self._is_refused:
            return
        if message["type"] == "http.response.start":
            if self._refusal is not None:
                self._is_refused = True
                await self._refuse(self._refusal)
                return
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._own_fields()]
        elif message["type"] == "http.response.body":
            self._sent += len(message.get("body", b""))
        await self._send(message)

    def _own_fields(self) -> list[tuple[bytes, bytes]]:
        fields = []
        if self._request_id:
            fields.append((b"x-request-id", self._request_id))
        if self._gate.is_draining or (not self._is_complete and self._must_close()):
            fields.append((b"connection", b"close"))
        return fields

    def _must_close(self) -> bool:
        """The rest of the body is too long to be read for nothing, or the client may never send it."""
        if self._length is None:
            return self._is_chunked()
        left = self._length - self._received
        return left > self._limits.drain_bytes or (self._expects and left > 0)

    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self._scope["headers"])

    async def _refuse(self, error: KernelPortError) -> None:
        reply = error_reply(error)
        self._status = reply.status
        self._sent = reply.size
        start = {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [*reply.headers, *self._own_fields()],
        }
        await self._send(start)
        await self._send({"type": "http.response.body", "body": reply.body})

    def _log(self) -> None:
        scope = self._scope
        client = scope.get("client")
        self._gate.log_access(
            f"{client[0]}:{client[1]}" if client else "",
            scope["method"],
            scope["path"],
            self._status or 499,
            self._sent,
            time.monotonic_ns() - self._started_ns,
            self._request_id,
        )


def _fields_of(scope: Scope) -> tuple[int | None, bytes, bool]:
    """Content-Length (None when absent or not a number), X-Request-Id, and whether the client awaits a 100."""
    length: int | None = None
    request_id = b""
    expects = False
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = int(value) if value.isdigit() else None
        elif name == b"x-request-id":
            request_id = value
        elif name == b"expect":
            expects = value.lower() == b"100-continue"
    return length, request_id, expects


async def read_body(scope: Scope, receive: Receive) -> Body:
    """The whole request body in one buffer, sized by Content-Length if that is known; raises Cancelled on a hang-up.

    The limits above have checked the length already when this runs behind `AsgiLimits`.
    """
    length = _fields_of(scope)[0]
    message = await receive()
    piece: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False):
        return piece
    buffer: Any = bytearray() if length is None else np.empty(length, np.uint8).data
    end = 0
    while message["type"] == "http.request":
        piece = message.get("body", b"")
        if length is None:
            buffer += piece
        elif end + len(piece) > length:
            raise PayloadTooLarge("the request body is longer than its Content-Length")
        else:
            buffer[end : end + len(piece)] = piece
        end += len(piece)
        if not message.get("more_body", False):
            body: Body = buffer if length is None else buffer[:end]
            return body
        message = await receive()
    raise Cancelled("the client went away before its request was complete")


def disconnect_of(receive: Receive) -> Callable[[], Awaitable[None]]:
    """A function that returns once the client has gone; only after the body has been read."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    return disconnected


async def send_reply(reply: Reply, send: Send) -> None:
    """A `Reply` as ASGI messages, its parts not joined."""
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
    last = len(reply.parts) - 1
    for index, part in enumerate(reply.parts):
        await send({"type": "http.response.body", "body": bytes(part), "more_body": index < last})
