"""The infer endpoint without a transport: body and a few header values in, one `Reply` out. Runs on: event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from ..core.errors import Cancelled, InvalidRequest, KernelPortError
from ..core.request import Call, InferenceRequest
from ..core.servable import Servable
from ..protocol.limits import DECODE_DEFAULTS, ENCODE_DEFAULTS, DecodeLimits, EncodeLimits
from ..protocol.v2_decode import decode_request
from ..protocol.v2_encode import encode_response
from ..telemetry.request_log import RequestLog
from ..telemetry.timing_header import server_timing, timing_parameters
from .compression import Body, Inflater, choose_coding, compress, is_identity
from .gate import Gate
from .reply import Header, Reply, error_reply
from .status import public_error

_monotonic_ns = time.monotonic_ns


class DataPlane(Protocol):
    """What the endpoint needs of the serving side."""

    def find(self, model: str, version: str | None, /) -> Servable:
        """The model version that answers; raises ModelNotFound or ModelNotReady."""

    def infer(self, servable: Servable, request: InferenceRequest, received_ns: int) -> Call:
        """Start an inference; never raises, the call may be finished already."""

    def reject(self, servable: Servable, error: KernelPortError, received_ns: int) -> None:
        """Count a request that failed before `infer`."""


class InferHeaders:
    """The request header fields that matter to an inference, raw; b"" or None when absent."""

    __slots__ = ("accept_encoding", "content_encoding", "json_length", "request_id")

    def __init__(
        self,
        json_length: bytes | None = None,
        content_encoding: bytes = b"",
        accept_encoding: bytes = b"",
        request_id: bytes = b"",
    ) -> None:
        self.json_length = json_length
        self.content_encoding = content_encoding
        self.accept_encoding = accept_encoding
        self.request_id = request_id


def infer_headers(fields: Iterable[tuple[bytes, bytes]], request_id: bytes = b"") -> InferHeaders:
    """The fields that matter among raw ones with lower-case names, as ASGI has them."""
    found: dict[bytes, bytes] = {}
    for name, value in fields:
        found[name] = value if name not in found else found[name] + b", " + value
    return InferHeaders(
        found.get(b"inference-header-content-length"),
        found.get(b"content-encoding", b""),
        found.get(b"accept-encoding", b""),
        request_id,
    )


class InferEndpoint:
    """Decodes, starts the call, encodes its answer. Both HTTP paths call it."""

    __slots__ = ("decode_limits", "encode_limits", "gate", "limits", "plane", "request_log")

    def __init__(
        self,
        plane: DataPlane,
        gate: Gate,
        decode_limits: DecodeLimits = DECODE_DEFAULTS,
        encode_limits: EncodeLimits = ENCODE_DEFAULTS,
        request_log: RequestLog | None = None,
    ) -> None:
        self.plane = plane
        self.gate = gate
        self.limits = gate.limits
        self.decode_limits = decode_limits
        self.encode_limits = encode_limits
        self.request_log = request_log

    def infer(
        self,
        model: str,
        version: str | None,
        body: Body,
        headers: InferHeaders,
        reply: Callable[[Reply], None],
        received_ns: int,
    ) -> Exchange:
        """Start an inference; `reply` is called exactly once, perhaps before this returns, never after a cancel."""
        exchange = Exchange(self, headers, reply, received_ns)
        gate = self.gate
        gate.in_flight += 1
        try:
            if not gate.is_open:
                gate.check_open()
            exchange.servable = servable = self.plane.find(model, version)
            encoding = headers.content_encoding
            if encoding and not is_identity(encoding):
                exchange.inflate(body, encoding)
                return exchange
            length = headers.json_length
            request = decode_request(
                body, None if length is None else parse_json_length(length, body), servable.spec, self.decode_limits
            )
        except Exception as error:
            exchange.refuse(error)
            return exchange
        exchange.call = call = self.plane.infer(servable, request, received_ns)
        call.add_done_callback(exchange.on_done)
        return exchange

    async def infer_async(
        self,
        model: str,
        version: str | None,
        body: Body,
        headers: InferHeaders,
        disconnected: Callable[[], Awaitable[Any]] | None = None,
    ) -> Reply:
        """The same as a coroutine; the call is cancelled with the task, or when `disconnected()` returns."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        exchange = self.infer(model, version, body, headers, answer.set_result, _monotonic_ns())
        if answer.done():
            return answer.result()
        waits: list[asyncio.Future[Any]] = [answer]
        if disconnected is not None:
            waits.append(asyncio.ensure_future(disconnected()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watch in waits[1:]:
                watch.cancel()
            if not answer.done():
                exchange.cancel()
        if answer.done():
            return answer.result()
        return error_reply(Cancelled("the client went away before the answer was ready"))


class Exchange:
    """One inference between its request and its reply; `cancel` it when the client has gone."""

    __slots__ = ("_charged", "_endpoint", "_headers", "_received_ns", "_reply", "call", "is_cancelled", "servable")

    def __init__(
        self, endpoint: InferEndpoint, headers: InferHeaders, reply: Callable[[Reply], None], received_ns: int
    ) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._reply = reply
        self._received_ns = received_ns
        self._charged = 0
        self.servable: Servable | None = None
        self.call: Call | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Nobody waits for the answer any more: no reply will be given."""
        self.is_cancelled = True
        if self.call is not None:
            self.call.cancel()

    def refuse(self, error: BaseException) -> None:
        """Answer a request that failed before it became a call."""
        known = public_error(error, "reading an inference request")
        if self.servable is not None:
            self._endpoint.plane.reject(self.servable, known, self._received_ns)
        if self.is_cancelled:
            self._leave()
        else:
            self._finish(error_reply(known))

    def on_done(self, call: Call) -> None:
        """Encode the answer of a call that has finished, and reply."""
        if self.is_cancelled:
            self._leave()
            return
        response = call.response
        if response is None:
            self._finish_failed(call)
            return
        endpoint = self._endpoint
        servable = self.servable
        assert servable is not None
        begun_ns = _monotonic_ns()
        try:
            if call.request.parameters and call.request.parameters.get("timing") is True:
                response.parameters.update(timing_parameters(call))
            encoded = encode_response(
                response, call.request, servable.spec, servable.json_nonfinite, endpoint.encode_limits
            )
        except Exception as error:
            call.error = public_error(error, f"encoding an answer of model '{servable.spec.name}'")
            call.response = None
            self._finish_failed(call)
            return
        encode_ns = _monotonic_ns() - begun_ns
        servable.encoded(encode_ns)
        parts = encoded.parts
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        extra = _nonfinite_field(encoded.nonfinite) if encoded.nonfinite else ()
        reply = Reply(200, parts, size, extra, encoded.json_length, server_timing(call, encode_ns))
        if self._headers.accept_encoding and size >= endpoint.limits.compress_min_bytes:
            coding = choose_coding(self._headers.accept_encoding)
            if coding:
                self._compress(reply, coding)
                return
        self._finish(reply)

    def _finish_failed(self, call: Call) -> None:
        error = call.error or KernelPortError("internal error")
        self._finish(error_reply(error, server_timing=server_timing(call)))

    def _finish(self, reply: Reply) -> None:
        if self._endpoint.request_log is not None:
            self._log(self._endpoint.request_log)
        self._leave()
        self._reply(reply)

    def _log(self, log: RequestLog) -> None:
        if self.call is not None and self.servable is not None:
            spec = self.servable.spec
            identity = self._headers.request_id.decode("latin-1")
            log.record(self.call, spec.name, spec.version, identity, _monotonic_ns())

    def _leave(self) -> None:
        gate = self._endpoint.gate
        gate.bytes_in_flight -= self._charged
        gate.in_flight -= 1
        if gate.is_awaited:
            gate.wake_idle()

    # Compressed bodies: the first part on the event loop, what is big in the loop's executor.

    def inflate(self, body: Body, encoding: bytes) -> None:
        """Inflate the body, then go on as with a plain one; raises as `Inflater.step`."""
        limits = self._endpoint.limits
        inflater = Inflater(encoding, body, limits.max_request_bytes)
        if inflater.step(limits.executor_bytes):
            self._inflated(inflater.output)
            return
        running = asyncio.get_running_loop().run_in_executor(None, inflater.run)
        running.add_done_callback(self._on_inflated)

    def _on_inflated(self, running: asyncio.Future[bytearray]) -> None:
        try:
            if self.is_cancelled:
                raise Cancelled("the client went away while its request was being read")
            self._inflated(running.result())
        except Exception as error:
            self.refuse(error)

    def _inflated(self, body: bytearray) -> None:
        """Decode an inflated body and start the call."""
        endpoint = self._endpoint
        servable = self.servable
        assert servable is not None
        endpoint.gate.charge(len(body))
        self._charged = len(body)
        length = self._headers.json_length
        request = decode_request(
            body, None if length is None else parse_json_length(length, body), servable.spec, endpoint.decode_limits
        )
        self.call = call = endpoint.plane.infer(servable, request, self._received_ns)
        call.add_done_callback(self.on_done)

    def _compress(self, reply: Reply, coding: bytes) -> None:
        if reply.size < self._endpoint.limits.executor_bytes:
            self._finish(_recoded(reply, compress(reply.parts, coding), coding))
            return
        running = asyncio.get_running_loop().run_in_executor(None, compress, reply.parts, coding)

        def compressed(done: asyncio.Future[bytes]) -> None:
            if self.is_cancelled:
                self._leave()
            else:
                self._finish(_recoded(reply, done.result(), coding))

        running.add_done_callback(compressed)


def parse_json_length(value: bytes, body: Body) -> int:
    """The length of the JSON part from its header; raises InvalidRequest unless it is a number within the body."""
    text = value.strip()
    if not text.isdigit() or len(text) > 18:
        raise InvalidRequest(f"Inference-Header-Content-Length must be a whole number, got {text.decode('latin-1')!r}")
    length = int(text)
    if length > len(body):
        raise InvalidRequest(
            f"Inference-Header-Content-Length is {length}, but the whole body has only {len(body)} bytes"
        )
    return length


def _nonfinite_field(names: tuple[str, ...]) -> tuple[Header, ...]:
    """The header that names the outputs in which null stands for a value that JSON cannot write."""
    return ((b"kernelport-non-finite", _header_value(", ".join(names))),)


def _header_value(text: str) -> bytes:
    """Output names as a header value: percent-encoded where HTTP allows no such byte."""
    return "".join(one if " " <= one <= "~" else "".join(f"%{b:02X}" for b in one.encode()) for one in text).encode()


def _recoded(reply: Reply, body: bytes, coding: bytes) -> Reply:
    extra = (*reply.extra, (b"content-encoding", coding))
    return Reply(reply.status, [body], len(body), extra, reply.json_length, reply.server_timing)
