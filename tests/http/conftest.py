"""Servers to talk to over real sockets, once for each way that an inference can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fakes.http_server import PATIENT, Kind, Served
from kernelport.http.limits import HttpLimits

Start = Callable[[HttpLimits, Kind], Served]


@pytest.fixture(params=["lane", "asgi", "fastapi"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """The way that inferences take."""
    way: Kind = request.param
    return way


@pytest.fixture
def limits() -> HttpLimits:
    """Bounds of the server; test classes override it."""
    return PATIENT


@pytest.fixture(scope="session")
def start() -> Iterator[Start]:
    """Gives running servers, one for each kind; starting one takes longer than most tests."""
    running: dict[tuple[HttpLimits, Kind], Served] = {}

    def started(limits: HttpLimits, kind: Kind) -> Served:
        served = running.get((limits, kind))
        if served is None:
            served = running[limits, kind] = Served(limits, kind)
            served.start()
        return served

    yield started
    for served in running.values():
        served.stop()
        assert served.gate.connections == 0


@pytest.fixture
def served(start: Start, limits: HttpLimits, kind: Kind) -> Iterator[Served]:
    """A server that is as new, and must come to rest after the test."""
    server = start(limits, kind)
    server.renew()
    yield server
    server.close_clients()
    server.until_at_rest()
