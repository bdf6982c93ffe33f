"""Connections: order, keep-alive, pipelining, hang-ups, draining, bounds; on every way that inferences can take."""

from __future__ import annotations

import dataclasses
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from fakes.http_requests import X, binary_body, check_echo, infer, json_body, outputs
from fakes.http_server import PATIENT, Kind, Served
from kernelport.http.limits import HttpLimits


def test_the_client_is_asked_for_a_body_it_holds_back(served: Served) -> None:
    client = served.connect()
    body = json_body()
    client.send(infer(b"", "echo", "Expect: 100-continue", length=len(body)))
    assert client.answer().status == 100
    assert outputs(client.ask(body)) == X
    check_echo(client)


def test_a_held_back_body_over_the_limit_is_never_asked_for(served: Served) -> None:
    client = served.connect()
    answer = client.ask(infer(b"", "echo", "Expect: 100-continue", length=100_000_000))
    assert answer.status == 413
    assert answer.closes
    assert client.read_to_end() == b""


def test_requests_on_one_connection_are_answered_one_after_another(served: Served) -> None:
    client = served.connect()
    for number in range(20):
        assert client.ask(infer(json_body(id=str(number)))).json["id"] == str(number)


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    client = served.connect()
    models = ["echo", "later", "full", "echo", "nobody", "later", "echo"]
    client.send(b"".join(infer(json_body(id=str(at)), model) for at, model in enumerate(models)))
    answers = [client.answer() for _ in models]
    assert [answer.status for answer in answers] == [200, 200, 503, 200, 404, 200, 200]
    assert [answer.json.get("id") for answer in answers if answer.status == 200] == ["0", "1", "3", "5", "6"]


def test_pipelined_requests_of_both_kinds_are_answered_in_order(served: Served) -> None:
    client = served.connect()
    live = b"GET /live HTTP/1.1\r\nHost: test\r\n\r\n"
    held = infer(json_body(id="held"), "held")
    client.send(live + held + live + infer(json_body(id="b")) + infer(json_body(id="c"), "later") + live + live)
    assert client.answer().json == {"live": True}
    assert served.plane.has_held.acquire(timeout=5)
    assert client.buffer == b""
    served.release()
    assert client.answer().json["id"] == "held"
    assert client.answer().json == {"live": True}
    assert client.answer().json["id"] == "b"
    assert client.answer().json["id"] == "c"
    assert client.answer().json == {"live": True}
    assert client.answer().json == {"live": True}
    check_echo(client)


def test_a_pipelined_body_that_is_held_back_is_asked_for_in_its_turn(served: Served) -> None:
    client = served.connect()
    body = json_body(id="b")
    client.send(infer(json_body(id="a"), "held"), infer(b"", "echo", "Expect: 100-continue", length=len(body)))
    assert served.plane.has_held.acquire(timeout=5)
    served.release()
    assert client.answer().json["id"] == "a"
    assert client.answer().status == 100
    assert client.ask(body).json["id"] == "b"


def test_too_many_pipelined_requests_are_refused_after_the_first_ones(served: Served) -> None:
    client = served.connect()
    client.send(infer(json_body(), "held"))
    assert served.plane.has_held.acquire(timeout=5)
    client.send(infer(json_body()) * 200)
    served.release()
    statuses: list[int] = []
    while not statuses or statuses[-1] == 200:
        answer = client.answer()
        statuses.append(answer.status)
    assert statuses[-1] == 400
    assert answer.closes
    assert len(statuses) < 100
    assert client.read_to_end() == b""


def test_a_closing_request_is_the_last_one(served: Served) -> None:
    client = served.connect()
    client.send(infer(json_body(), "echo", "Connection: close") + infer(json_body()))
    answer = client.answer()
    assert outputs(answer) == X
    assert answer.closes
    assert client.read_to_end() == b""


@pytest.mark.parametrize("fields", [b"", b"Connection: keep-alive\r\n"])
def test_http_1_0_is_answered_and_closed(served: Served, fields: bytes) -> None:
    client = served.connect()
    body = json_body()
    answer = client.ask(
        b"POST /v2/models/echo/infer HTTP/1.0\r\n%bContent-Length: %d\r\n\r\n%b" % (fields, len(body), body)
    )
    assert outputs(answer) == X
    assert answer.closes
    assert client.read_to_end() == b""


def test_an_offer_to_upgrade_is_ignored(served: Served) -> None:
    client = served.connect()
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk")
    request = infer(json_body(), "echo", *offer)
    assert outputs(client.ask(request)) == X
    client.send(request[:-20], request[-20:])
    assert outputs(client.answer()) == X
    websocket = b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc"
    assert client.ask(b"POST /size HTTP/1.1\r\nHost: a\r\n" + websocket).json == {"size": 3}
    check_echo(client)


def test_a_hang_up_cancels_the_call(served: Served) -> None:
    client = served.connect()
    client.send(infer(json_body(), "held"))
    assert served.plane.has_held.acquire(timeout=5)
    client.close()
    assert served.plane.has_cancelled.acquire(timeout=5)
    check_echo(served.connect())


def test_a_hang_up_reaches_the_asgi_application(served: Served) -> None:
    client = served.connect()
    client.send(b"GET /wait HTTP/1.1\r\nHost: test\r\n\r\n")
    assert served.app.waiting.acquire(timeout=5)
    client.close()
    assert served.app.disconnects.acquire(timeout=5)


def test_a_hang_up_in_the_middle_of_a_body_frees_what_it_held(served: Served) -> None:
    client = served.connect()
    client.send(infer(b"x" * 1000, length=500_000))
    client.close()
    check_echo(served.connect())


def test_a_draining_server_serves_and_asks_clients_to_leave(served: Served) -> None:
    client = served.connect()
    check_echo(client)
    served.call(served.gate.begin_drain)
    answer = client.ask(infer(json_body()))
    assert outputs(answer) == X
    assert answer.closes
    assert client.read_to_end() == b""
    live = served.connect().ask(b"GET /live HTTP/1.1\r\nHost: test\r\n\r\n")
    assert live.closes


def test_a_reply_that_was_under_way_when_draining_began_closes_too(served: Served) -> None:
    client = served.connect()
    client.send(infer(json_body(), "held"))
    assert served.plane.has_held.acquire(timeout=5)
    served.call(served.gate.begin_drain)
    served.release()
    assert client.answer().closes
    assert client.read_to_end() == b""


def test_closed_admission_refuses_new_inferences_and_finishes_old_ones(served: Served) -> None:
    old, new = served.connect(), served.connect()
    old.send(infer(json_body(), "held"))
    assert served.plane.has_held.acquire(timeout=5)
    served.call(served.gate.close_admission)
    answer = new.ask(infer(json_body()))
    assert answer.status == 503
    assert answer.closes
    served.release()
    assert outputs(old.answer()) == X


def test_a_stopping_uvicorn_waits_for_the_reply_that_is_owed(served: Served) -> None:
    client = served.connect()
    client.send(infer(json_body(), "held"))
    assert served.plane.has_held.acquire(timeout=5)
    served.call(lambda: [connection.shutdown() for connection in list(served.server.server_state.connections)])
    served.release()
    answer = client.answer()
    assert outputs(answer) == X
    assert answer.closes
    assert client.read_to_end() == b""


def test_a_unix_socket_works(kind: Kind, tmp_path: Path) -> None:
    served = Served(PATIENT, kind, uds=os.fspath(tmp_path / "s"))
    served.start()
    try:
        client = served.connect()
        check_echo(client)
        check_echo(client)
    finally:
        served.stop()


def test_ipv6_works(kind: Kind) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    served = Served(PATIENT, kind, host="::1")
    served.start()
    try:
        check_echo(served.connect())
    finally:
        served.stop()


class TestBoundedConnections:
    """Connections that end after a number of requests or a time."""

    @pytest.fixture
    def limits(self) -> HttpLimits:
        return dataclasses.replace(PATIENT, max_connection_requests=3, max_connections=2)

    def test_the_last_allowed_request_closes(self, served: Served) -> None:
        client = served.connect()
        assert not client.ask(infer(json_body())).closes
        assert not client.ask(infer(json_body())).closes
        assert client.ask(infer(json_body())).closes
        assert client.read_to_end() == b""

    def test_a_connection_too_many_is_told_so(self, served: Served) -> None:
        first, second = served.connect(), served.connect()
        check_echo(first)
        check_echo(second)
        third = served.connect()
        third.send(infer(json_body()))
        answer = third.answer()
        assert answer.status == 503
        assert answer.closes
        assert answer.headers["retry-after"] == "1"
        assert third.read_to_end() == b""
        third.close()
        check_echo(first)


class TestBudget:
    """The bytes that the whole server holds."""

    @pytest.fixture
    def limits(self) -> HttpLimits:
        return dataclasses.replace(PATIENT, max_inflight_bytes=100_000)

    def test_a_body_beyond_the_budget_is_refused_at_once(self, served: Served) -> None:
        client = served.connect()
        client.send(infer(b"", length=200_000))
        answer = client.answer()
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.closes

    def test_a_small_body_beyond_the_budget_leaves_the_connection_alive(self, served: Served) -> None:
        holder, client = served.connect(), served.connect()
        body, length = binary_body(rows=6_000)
        holder.send(infer(body, "held", f"Inference-Header-Content-Length: {length}"))
        assert served.plane.has_held.acquire(timeout=5)
        assert client.ask(infer(b"x" * 10_000)).status == 503
        check_echo(client)
        served.release()
        assert holder.answer().status == 200
        assert client.ask(infer(b"x" * 10_000)).status == 400

    def test_a_chunked_body_beyond_the_budget_is_cut_off(self, served: Served) -> None:
        client = served.connect()
        chunk = b"8000\r\n" + bytes(0x8000) + b"\r\n"
        client.send(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", chunk * 4)
        answer = client.answer()
        assert answer.status == 503
        assert answer.closes


class TestAge:
    """Connections that end after a time."""

    @pytest.fixture
    def limits(self) -> HttpLimits:
        return dataclasses.replace(PATIENT, max_connection_age_s=0.15)

    def test_an_old_connection_is_closed_when_idle(self, served: Served) -> None:
        client = served.connect()
        check_echo(client)
        assert client.read_to_end() == b""

    def test_the_reply_of_an_old_connection_closes_it(self, served: Served) -> None:
        client = served.connect()
        client.send(infer(json_body(), "held"))
        assert served.plane.has_held.acquire(timeout=5)
        connections: Any = served.server.server_state.connections
        closes_at_s = max(connection.closes_at_s for connection in connections)
        while served.loop.time() < closes_at_s:
            served.call(lambda: None)
        served.release()
        answer = client.answer()
        assert outputs(answer) == X
        assert answer.closes or served.kind != "lane"  # uvicorn has decided when it started the request
        assert client.read_to_end() == b""
