"""A real uvicorn server over a small data plane of its own, and a raw-socket client."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
from collections.abc import Callable, Hashable
from typing import Any, Literal

import numpy as np
import orjson
import uvicorn
from kernelport.asgi import create_app
from kernelport.core.errors import KernelPortError, ModelNotFound, QueueFull
from kernelport.core.model import ModelSpec
from kernelport.core.request import Call, InferenceRequest, InferenceResponse
from kernelport.core.servable import Admitted, Form
from kernelport.core.tensor import FP32, Tensor, TensorSpec
from kernelport.http.asgi_limits import AsgiLimits, disconnect_of, read_body, send_reply
from kernelport.http.endpoint import InferEndpoint, infer_headers
from kernelport.http.gate import Gate
from kernelport.http.infer_route import InferRoutes
from kernelport.http.lane import lane_protocol
from kernelport.http.limits import HttpLimits
from kernelport.http.reception import plain_protocol
from kernelport.telemetry.metrics import Metrics

Kind = Literal["lane", "asgi", "fastapi"]
TEST_PATHS = ("/live", "/size", "/headers", "/wait")

# Sizes are small, times are long enough for a busy machine.
PATIENT = HttpLimits(max_request_bytes=1 << 20, max_inflight_bytes=4 << 20, linger_s=0.2)
QUICK = dataclasses.replace(
    PATIENT, header_timeout_s=0.3, body_timeout_s=0.5, body_grace_s=0.25, keep_alive_s=0.5, write_timeout_s=0.3
)


class Model:
    """One served model of the test plane: output `y` is `x`; counts what was refused."""

    json_nonfinite = "null"
    splits_oversized = False

    def __init__(self, name: str) -> None:
        shape = (-1, 4)
        self.spec = ModelSpec(
            name,
            "1",
            "test",
            "test",
            0,
            (TensorSpec("x", FP32, shape, batch_axis=None),),
            (TensorSpec("y", FP32, shape, batch_axis=None),),
        )
        self.encodings = 0
        self.forms: dict[Form, Admitted] = {}

    def submit(self, request: InferenceRequest, rows: int, received_ns: int, key: Hashable = None) -> Call:
        raise AssertionError("the plane answers by itself")

    def remember(self, form: Form, request: InferenceRequest, rows: int) -> None:
        raise AssertionError("the plane admits by itself")

    def reject(self, error_outcome: str, elapsed_ns: int) -> None:
        raise AssertionError("the plane counts by itself")

    def encoded(self, elapsed_ns: int) -> None:
        self.encodings += 1


class Plane:
    """Models: `echo` answers at once, `later` on the next loop tick, `held` when released, `full` refuses,
    `big` answers 8 MiB, `broken` an output that cannot be encoded."""

    def __init__(self) -> None:
        self.models = {
            name: Model(name) for name in ("echo", "later", "held", "full", "big", "broken", "with space", "naïve")
        }
        self.held: list[Call] = []
        self.cancelled = 0
        self.rejected: list[KernelPortError] = []
        self.has_held = threading.Semaphore(0)
        self.has_cancelled = threading.Semaphore(0)

    def find(self, model: str, version: str | None) -> Model:
        found = self.models.get(model)
        if found is None or version not in (None, "1"):
            raise ModelNotFound(f"unknown model '{model}' version {version}")
        return found

    def infer(self, servable: Any, request: InferenceRequest, received_ns: int) -> Call:
        call = Call(request, received_ns)
        call.enqueued_ns = received_ns
        name = servable.spec.name
        if name == "held":
            call.on_cancel = self._on_cancel
            self.held.append(call)
            self.has_held.release()
        elif name == "full":
            call.finish(None, QueueFull("the queue of model 'full' is full"))
        elif name == "later":
            asyncio.get_running_loop().call_soon(self.finish, call, name)
        else:
            self.finish(call, name)
        return call

    def reject(self, servable: Any, error: KernelPortError, received_ns: int) -> None:
        self.rejected.append(error)

    def finish(self, call: Call, name: str) -> None:
        array = call.request.inputs["x"].array
        if name == "big":
            array = np.full((512, 4096), 1.5, np.float32)
        outputs = [Tensor("y", FP32, array)]
        if name == "broken":
            outputs = [Tensor("unknown", FP32, array)]
            outputs[0].array = None  # type: ignore[assignment]
        call.finish(InferenceResponse(name, "1", outputs), None)

    def _on_cancel(self, call: Call) -> None:
        self.cancelled += 1
        self.held.remove(call)
        self.has_cancelled.release()


class SmallApp:
    """An ASGI application with an infer route and a few others, without a framework."""

    def __init__(self, endpoint: InferEndpoint) -> None:
        self.endpoint = endpoint
        self.routes = InferRoutes(endpoint.gate.http_stats)
        self.disconnects = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": message["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        path, method = scope["path"], scope["method"]
        route = self.routes.resolve(scope["raw_path"])
        if route is not None and method == "POST":
            body = await read_body(scope, receive)
            reply = await self.endpoint.infer_async(
                route.model, route.version, body, infer_headers(scope["headers"]), disconnect_of(receive)
            )
            await send_reply(reply, send)
        elif route is not None:
            await self._answer(send, 405, {"error": "Method Not Allowed"}, [(b"allow", b"POST")])
        elif path == "/live":
            await self._answer(send, 200, {"live": True})
        elif path == "/size":
            await self._answer(send, 200, {"size": len(await read_body(scope, receive))})
        elif path == "/headers":
            await self._answer(send, 200, {name.decode(): value.decode() for name, value in scope["headers"]})
        elif path == "/wait":
            self.waiting.release()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.disconnects.release()
        else:
            await self._answer(send, 404, {"error": "Not Found"})

    async def _answer(self, send: Any, status: int, content: Any, extra: Any = ()) -> None:
        body = orjson.dumps(content)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *extra]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Answer:
    """One parsed response."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"


class RawClient:
    """A socket that speaks bytes, and reads responses one by one."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.socket.settimeout(10)
        self.buffer = b""

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def _more(self) -> None:
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise EOFError(self.buffer)
        self.buffer += piece

    def answer(self, has_body: bool = True) -> Answer:
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        status = int(lines[0].split()[1])
        size = int(headers.get("content-length", 0)) if has_body and status >= 200 else 0
        while len(self.buffer) < size:
            self._more()
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return Answer(status, headers, body)

    def ask(self, *pieces: bytes) -> Answer:
        self.send(*pieces)
        return self.answer()

    def read_to_end(self) -> bytes:
        """Everything until the server closes; raises if it resets the connection."""
        while piece := self.socket.recv(1 << 16):
            self.buffer += piece
        everything, self.buffer = self.buffer, b""
        return everything

    def close(self) -> None:
        self.socket.close()


class Served:
    """A running server and the ways in. Inferences take the lane, a small ASGI application, or the real one."""

    def __init__(
        self, limits: HttpLimits, kind: Kind = "lane", uds: str | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.plane = Plane()
        self.gate = Gate(limits)
        self.endpoint = InferEndpoint(self.plane, self.gate)
        self.app = SmallApp(self.endpoint)
        self.kind = kind
        protocol = lane_protocol(self.endpoint) if kind == "lane" else plain_protocol(self.gate)
        config = uvicorn.Config(
            self._with_framework() if kind == "fastapi" else AsgiLimits(self.app, self.gate),
            host=host,
            port=0,
            uds=uds,
            http=protocol,
            ws="none",
            loop="uvloop",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
        )
        self.uds = uds
        self.server = uvicorn.Server(config)
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.clients: list[RawClient] = []

    def _with_framework(self) -> Any:
        """The real application, with the test routes of the small one."""
        control: Any = None  # infer routes do without
        framework = create_app(self.endpoint, control, Metrics(list, gate=self.gate), self.gate)
        small = AsgiLimits(self.app, self.gate)

        async def either(scope: Any, receive: Any, send: Any) -> None:
            is_small = scope["type"] == "lifespan" or scope["path"] in TEST_PATHS
            await (small if is_small else framework)(scope, receive, send)

        return either

    def _run(self) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            serving = asyncio.ensure_future(self.server.serve())
            while not self.server.started and not serving.done():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            self._started.set()
            await serving

        with asyncio.Runner(loop_factory=self.server.config.get_loop_factory()) as runner:
            runner.run(serve())

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(10)
        self.address = self.server.servers[0].sockets[0].getsockname()

    def renew(self) -> None:
        """Forget what earlier tests did."""
        self.gate.is_open, self.gate.is_draining = True, False
        for route in self.gate.http_stats.routes.values():
            route.statuses.clear()
        self.plane.__init__()  # type: ignore[misc]
        self.app.__init__(self.endpoint)  # type: ignore[misc]

    def close_clients(self) -> None:
        while self.clients:
            self.clients.pop().close()

    def stop(self) -> None:
        self.close_clients()
        self.server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def connect(self) -> RawClient:
        if self.uds is not None:
            connected = socket.socket(socket.AF_UNIX)
            connected.connect(self.uds)
        else:
            connected = socket.create_connection(self.address[:2])
        client = RawClient(connected)
        self.clients.append(client)
        return client

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the server's loop."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def release(self) -> None:
        """Let the held calls finish."""

        def finish() -> None:
            calls = list(self.plane.held)
            self.plane.held.clear()
            for call in calls:
                self.plane.finish(call, "held")

        self.call(finish)

    def until_at_rest(self) -> None:
        """Wait until nothing is connected, charged or in flight any more."""

        async def rest() -> None:
            gate = self.gate
            while gate.connections or gate.bytes_in_flight or gate.in_flight:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

        try:
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(rest(), 5), self.loop).result()
        except TimeoutError:
            gate = self.gate
            raise AssertionError(
                f"left: {gate.connections} connections, {gate.bytes_in_flight} bytes, {gate.in_flight} inferences"
            ) from None
