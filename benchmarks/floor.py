"""The featureless server that bounds what a Python server can reach: it parses, batches, runs, answers.

    python -m benchmarks.floor MODEL.onnx --port 8081 [--decoder simdjson|orjson] [--max-batch-size 32]

It answers `POST .../infer` for a model with one FP32 input and one FP32 output, as JSON or with the binary tensor
extension, and nothing else. It has no limits, checks, deadlines, metrics or errors: whatever a real server adds is
paid on top of it, and the ratio to this floor says how much. A request that it does not understand ends the
connection, or worse. Never expose it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
import orjson
import simdjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Array = np.ndarray[Any, np.dtype[np.float32]]
Reply = Callable[[Array], None]

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
BINARY_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ninference-header-content-length: "
SMALL_BODY = 4096  # below this orjson is faster than handing arrays over from simdjson


class Lane:
    """One thread that runs whatever has gathered while its last batch ran."""

    def __init__(self, session: onnxruntime.InferenceSession, max_rows: int, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        self._max_rows = max_rows
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Array, Reply]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._asleep = False
        threading.Thread(target=self._work, name="lane", daemon=True).start()

    def submit(self, rows: Array, reply: Reply) -> None:
        with self._lock:
            self._waiting.append((rows, reply))
            ring, self._asleep = self._asleep, False
        if ring:
            self._bell.put(None)

    def _take(self) -> list[tuple[Array, Reply]]:
        with self._lock:
            waiting = self._waiting
            self._asleep = not waiting
            batch = []
            room = self._max_rows
            while waiting and len(waiting[0][0]) <= room:
                room -= len(waiting[0][0])
                batch.append(waiting.popleft())
            return batch

    def _work(self) -> None:
        run, name = self._session.run, self._input
        while True:
            batch = self._take()
            if not batch:
                self._bell.get()
                continue
            rows = batch[0][0] if len(batch) == 1 else np.concatenate([item[0] for item in batch])
            self._loop.call_soon_threadsafe(_answer, batch, run(None, {name: rows})[0])


def _answer(batch: list[tuple[Array, Reply]], result: Array) -> None:
    """Runs once per batch on the event loop."""
    start = 0
    for rows, reply in batch:
        stop = start + len(rows)
        reply(result[start:stop])
        start = stop


class FloorProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 parser with the request handling taken out."""

    lane: Lane
    decoder = "simdjson"
    json_parser = simdjson.Parser()

    def on_message_begin(self) -> None:
        self.chunks: list[bytes] = []
        self.json_length = 0

    def on_url(self, url: bytes) -> None:
        self.is_infer = url.endswith(b"/infer")

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 31 and name.lower() == b"inference-header-content-length":
            self.json_length = int(value)

    def on_headers_complete(self) -> None:
        pass

    def on_body(self, body: bytes) -> None:
        self.chunks.append(body)

    def on_message_complete(self) -> None:
        if not self.is_infer:
            self.transport.write(JSON_HEAD + b"2\r\n\r\n{}")
            return
        body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        if self.json_length:
            tensor = orjson.loads(memoryview(body)[: self.json_length])["inputs"][0]
            rows = np.frombuffer(body, np.float32, offset=self.json_length).reshape(tensor["shape"])
            self.lane.submit(rows, self._reply_binary)
        else:
            self.lane.submit(self._decode(body), self._reply_json)

    def _decode(self, body: bytes) -> Array:
        if self.decoder == "orjson" or len(body) <= SMALL_BODY:
            tensor = orjson.loads(body)["inputs"][0]
            return np.array(tensor["data"], np.float32).reshape(tensor["shape"])
        document: Any = self.json_parser.parse(body)
        parsed = document["inputs"].at_pointer("/0")
        shape = parsed["shape"].as_list()
        data = np.frombuffer(parsed["data"].as_buffer(of_type="d"), np.float64)
        # simdjson refuses to reuse a parser while something of its last document is still referred to.
        del parsed, document
        return data.astype(np.float32).reshape(shape)

    def _reply_json(self, result: Array) -> None:
        if self.transport.is_closing():
            return
        output = {"name": "y", "datatype": "FP32", "shape": result.shape, "data": result.ravel()}
        body = orjson.dumps({"model_name": "floor", "outputs": [output]}, option=orjson.OPT_SERIALIZE_NUMPY)
        self.transport.write(b"%b%d\r\n\r\n%b" % (JSON_HEAD, len(body), body))

    def _reply_binary(self, result: Array) -> None:
        if self.transport.is_closing():
            return
        data = result.tobytes()
        output = {
            "name": "y",
            "datatype": "FP32",
            "shape": result.shape,
            "parameters": {"binary_data_size": len(data)},
        }
        head = orjson.dumps({"model_name": "floor", "outputs": [output]})
        self.transport.write(
            b"%b%d\r\ncontent-length: %d\r\n\r\n%b%b" % (BINARY_HEAD, len(head), len(head) + len(data), head, data)
        )


async def _no_application(scope: Any, receive: Any, send: Any) -> None:
    raise NotImplementedError(f"the floor has no application behind it ({scope['type']})")


async def _serve(arguments: argparse.Namespace) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
    FloorProtocol.lane = Lane(session, arguments.max_batch_size, asyncio.get_running_loop())
    FloorProtocol.decoder = arguments.decoder
    config = uvicorn.Config(
        _no_application, port=arguments.port, http=FloorProtocol, lifespan="off", access_log=False, log_level="warning"
    )
    await uvicorn.Server(config).serve()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--decoder", choices=("simdjson", "orjson"), default="simdjson")
    parser.add_argument("--max-batch-size", type=int, default=32)
    # The interpreter hands the GIL over every 5 ms by default; a lane that returns from native code waits for it.
    sys.setswitchinterval(0.0005)
    uvloop_run(_serve(parser.parse_args()))


def uvloop_run(main_coroutine: Any) -> None:
    import uvloop

    uvloop.run(main_coroutine)


if __name__ == "__main__":
    main()
