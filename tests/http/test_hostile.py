"""Malformed, smuggled, slow and oversized requests: each is refused or cut off, none is a server error, none hangs.

Every case runs on every way that inferences can take, and the server must serve the next client.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from select import select

import pytest
from fakes.hostile_requests import CASES, GOOD, INFER, LAST, LIVE, SIZE, SLOW, Case, sized
from fakes.http_server import QUICK, RawClient, Served
from kernelport.http.limits import HttpLimits


def statuses_of(client: RawClient) -> tuple[list[int], bool]:
    """All statuses until the server closes, or is silent for a second; and whether it closed."""
    client.socket.settimeout(1.0)
    found = []
    try:
        while True:
            found.append(client.answer().status)
    except EOFError:
        return found, True
    except ConnectionResetError:
        assert not found, "a reset takes answers away that are still to be read"
        return found, True
    except TimeoutError:
        return found, False


def send_all(client: RawClient, case: Case) -> None:
    for number, piece in enumerate(case.pieces):
        if number and case.pause_s and 100 not in case.statuses and select([client.socket], [], [], case.pause_s)[0]:
            return  # the answer is there
        try:
            client.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return  # the server has had enough; what it said is still to be read


def check_alive(served: Served) -> None:
    client = served.connect()
    assert client.ask(LIVE).json == {"live": True}
    assert client.ask(sized(GOOD)).status == 200
    client.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_request_is_refused(served: Served, case: Case) -> None:
    client = served.connect()
    send_all(client, case)
    if case.stays:
        client.send(LAST)
    found, is_closed = statuses_of(client)
    assert found
    expected = case.statuses | {200} if case.stays else case.statuses
    assert set(found) <= expected, found
    assert is_closed
    if case.stays and found[0] != 400:
        assert found[-1] == 200, "the connection was out of step"
    check_alive(served)


class TestSlowClients:
    """Clients that send or read too slowly, against short deadlines."""

    @pytest.fixture
    def limits(self) -> HttpLimits:
        return QUICK

    @pytest.mark.parametrize("case", SLOW, ids=lambda case: case.name)
    def test_a_slow_client_is_cut_off(self, served: Served, case: Case) -> None:
        client = served.connect()
        send_all(client, case)
        found, is_closed = statuses_of(client)
        assert set(found) == case.statuses or (len(case.statuses) > 2 and set(found) <= case.statuses)
        assert is_closed
        check_alive(served)

    def test_slow_clients_do_not_delay_quick_ones(self, served: Served) -> None:
        for _ in range(50):
            served.connect().send(INFER[:10])
            served.connect().send(INFER + b"Content-Length: 1000\r\n\r\nab")
        quick = served.connect()
        for _ in range(50):
            assert quick.ask(sized(GOOD)).status == 200

    def test_a_client_that_does_not_read_is_cut_off(self, served: Served) -> None:
        body = GOOD[:-1] + b',"parameters":{"binary_data_output":true}}'
        client = served.connect()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(sized(body).replace(b"/echo/", b"/big/") * 3)
        served.until_at_rest()


@pytest.mark.parametrize("head", [INFER, SIZE])
def test_a_refusal_reaches_a_client_that_is_still_sending(served: Served, head: bytes) -> None:
    client = served.connect()
    client.send(head + b"Content-Length: 1500000\r\n\r\n", bytes(500_000))
    client.send(bytes(500_000), bytes(500_000))
    answer = client.answer()
    assert answer.status == 413
    assert answer.closes
    assert client.read_to_end() == b""


def test_a_small_refused_body_is_read_and_the_connection_lives(served: Served) -> None:
    client = served.connect()
    assert (
        client.ask(b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n", bytes(30_000)).status == 404
    )
    assert client.ask(sized(GOOD)).status == 200


def test_resets_and_half_closes_leave_nothing_behind(served: Served) -> None:
    for number in range(40):
        client = served.connect()
        client.send((sized(GOOD), LIVE, INFER, sized(GOOD)[:-5])[number % 4])
        if number % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        else:
            client.socket.shutdown(socket.SHUT_WR)
    check_alive(served)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_hostile_requests_do_not_make_the_server_grow(served: Served) -> None:
    heavy = [case for case in CASES if sum(map(len, case.pieces)) > 50_000]
    sizes = []
    for _ in range(3):
        for case in heavy:
            for _ in range(3):
                client = served.connect()
                send_all(client, case)
                client.close()
        served.until_at_rest()
        sizes.append(resident_bytes())
    assert len(heavy) > 10
    assert sizes[-1] - sizes[0] < 20 << 20
