"""What KernelPort's own code costs a request, without sockets, threads or neighbours.

    python -m benchmarks.hotpath [--workload tiny-json] [--connections 32] [--rounds 300] [--profile]

A real server is built, but one thread plays all parts in turn: it feeds request bytes to connections on a transport
that throws replies away, takes the batch as a lane would, runs it, and delivers it. CPU time of the thread is counted,
so a busy machine hardly changes the numbers; system calls and thread switches are not in them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import uvicorn
import uvloop
from kernelport.config.server import ServerSettings
from kernelport.http.lane import lane_protocol
from kernelport.server import Server
from kernelport.workers import execution
from uvicorn.server import ServerState

from .console import output
from .models import MODELS, model_file
from .report import markdown_table
from .rounds import RESULTS
from .servers.kernelport import write_repository
from .workloads import WORKLOADS, encode_request, sample_rows

DEVICE = "cpu"
HEAD = ("stage", "thread", "us per request")
STAGES = {
    "receive": ("parse, decode, check, queue", "event loop"),
    "take": ("take the batch", "lane"),
    "run": ("merge, execute, split", "lane"),
    "deliver": ("count, encode, reply", "event loop"),
}


class Discard(asyncio.Transport):
    """A transport whose peer reads everything at once."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40000), "sockname": ("127.0.0.1", 8080)})
        self.last = b""

    def write(self, data: Any) -> None:
        self.last = data

    def writelines(self, pieces: Any) -> None:
        self.last = b"".join(pieces)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """Nobody is connected."""

    def pause_reading(self) -> None:
        """Nothing is being read."""

    def resume_reading(self) -> None:
        """Nothing is being read."""


class QuietReport:
    """The server's start-up report, for nobody."""

    def loading(self, label: str) -> None: ...
    def settled(self, label: str) -> None: ...
    def started(self, rows: Any, urls: Any) -> None: ...


class SpareLane:
    """Stands in the list of parked lanes while this thread plays the lane."""

    def wake(self) -> None: ...


async def no_application(scope: Any, receive: Any, send: Any) -> None:
    raise NotImplementedError(f"only inferences are measured here, not {scope['type']}")


def raw_request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """The bytes that wrk sends."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:8080", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def one_round(server: Server, connections: list[Any], request: bytes, times: dict[str, list[float]]) -> None:
    """All connections ask once, and everything that is waiting gets answered."""
    dispatcher, clock, number = server.dispatcher, time.thread_time_ns, len(connections)
    lane = SpareLane()
    spent = dict.fromkeys(STAGES, 0)

    def timed(stage: str, call: Callable[..., Any], *arguments: Any) -> Any:
        began = clock()
        result = call(*arguments)
        spent[stage] += clock() - began
        return result

    def receive() -> None:
        for connection in connections:
            connection.data_received(request)

    timed("receive", receive)
    finished = None
    while (batch := timed("take", dispatcher.take, lane, DEVICE, finished)) is not None:
        timed("run", execution.run, batch, time.monotonic_ns)
        timed("deliver", dispatcher.finish, batch)
        finished = batch
    dispatcher.forget_lane(lane, DEVICE)
    for stage, value in spent.items():
        times[stage].append(value / 1e3 / number)


async def measure(workload_name: str, number: int, rounds: int, profile: cProfile.Profile | None) -> dict[str, float]:
    """Median CPU microseconds of each stage per request."""
    workload = WORKLOADS[workload_name]
    model = MODELS[workload.model]
    body = encode_request(model, sample_rows(model), workload.encoding)
    with tempfile.TemporaryDirectory(prefix="kernelport-bench-") as scratch:
        write_repository(Path(scratch), model, model_file(model.name, RESULTS / "models"))
        settings = ServerSettings(host="127.0.0.1", port=0, models=(scratch,))
        server = Server(settings, QuietReport())
        await server.start()
        try:
            config = uvicorn.Config(no_application, lifespan="off", log_config=None, access_log=False)
            config.load()
            protocol = lane_protocol(server.endpoint)
            request = raw_request(f"/v2/models/{model.name}/infer", body.content, body.headers)
            connections = []
            transport = Discard()
            for _ in range(number):
                connection = protocol(config, ServerState(), {}, asyncio.get_running_loop())
                connection.connection_made(transport)
                connections.append(connection)
            times: dict[str, list[float]] = {stage: [] for stage in STAGES}
            for count in range(rounds + 20):
                if count == 20:  # warmed up
                    times = {stage: [] for stage in STAGES}
                    if profile is not None:
                        profile.enable()
                one_round(server, connections, request, times)
            if profile is not None:
                profile.disable()
            answer = bytes(transport.last)
            if not answer.startswith(b"HTTP/1.1 200"):
                raise ValueError(f"the server answered {answer[:300]!r}")
            for connection in connections:
                connection.connection_lost(None)
        finally:
            await server.stop(0.0)
    return {stage: median(values) for stage, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hotpath")
    parser.add_argument("--workload", default="tiny-json", choices=list(WORKLOADS))
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--profile", action="store_true", help="also print the functions that take longest")
    arguments = parser.parse_args()
    profile = cProfile.Profile() if arguments.profile else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stages = runner.run(measure(arguments.workload, arguments.connections, arguments.rounds, profile))
    rows = [[STAGES[stage][0], STAGES[stage][1], f"{value:.1f}"] for stage, value in stages.items()]
    rows.append(["all", "", f"{sum(stages.values()):.1f}"])
    output.print(markdown_table(HEAD, rows))
    if profile is not None:
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
