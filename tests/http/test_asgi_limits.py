"""The gate in front of an ASGI application, driven message by message."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from fakes.http_server import PATIENT
from kernelport.core.errors import Cancelled, PayloadTooLarge
from kernelport.http.asgi_limits import AsgiLimits, disconnect_of, read_body, send_reply
from kernelport.http.gate import Gate
from kernelport.http.reply import Reply
from kernelport.telemetry.logging import request_id

LIMITS = dataclasses.replace(PATIENT, max_request_bytes=1000, max_inflight_bytes=1500, drain_bytes=100)


class Sent:
    """What came out."""

    def __init__(self, messages: list[Any]) -> None:
        self.status = messages[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        self.body = b"".join(one["body"] for one in messages[1:])


def talk(
    app: Any,
    pieces: Iterable[bytes] = (b"",),
    headers: Iterable[tuple[bytes, bytes]] = (),
    gate: Gate | None = None,
    has_end: bool = True,
) -> Sent:
    gate = gate or Gate(LIMITS)
    scope = {"type": "http", "method": "POST", "path": "/p", "headers": list(headers), "client": ("1.2.3.4", 5)}
    pieces = list(pieces)
    incoming: list[Any] = [
        {"type": "http.request", "body": piece, "more_body": at < len(pieces) - 1 or not has_end}
        for at, piece in enumerate(pieces)
    ]
    outgoing: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        outgoing.append(message)

    before = gate.bytes_in_flight
    asyncio.run(AsgiLimits(app, gate)(scope, receive, send))
    assert gate.bytes_in_flight == before
    return Sent(outgoing)


async def size_app(scope: Any, receive: Any, send: Any) -> None:
    body = await read_body(scope, receive)
    await send_reply(Reply(200, [b"%d" % len(body)], 1), send)


async def early_app(scope: Any, receive: Any, send: Any) -> None:
    await send_reply(Reply(404, [b"{}"], 2), send)


async def careless_app(scope: Any, receive: Any, send: Any) -> None:
    try:
        await read_body(scope, receive)
    except PayloadTooLarge:
        await send_reply(Reply(200, [b"fine"], 4), send)


def test_a_body_within_the_limit_passes() -> None:
    assert talk(size_app, [b"x" * 600, b"x" * 400]).body == b"1000"


def test_a_body_above_the_limit_is_refused_while_it_comes() -> None:
    sent = talk(size_app, [b"x" * 600, b"x" * 401])
    assert sent.status == 413
    assert "max_request_bytes = 1000" in orjson.loads(sent.body)["error"]


def test_an_application_cannot_answer_well_to_a_refused_body() -> None:
    assert talk(careless_app, [b"x" * 1001]).status == 413


def test_an_announced_length_above_the_limit_is_refused_unread() -> None:
    sent = talk(size_app, headers=[(b"content-length", b"1001")])
    assert sent.status == 413
    assert sent.headers["connection"] == "close"


def test_a_length_beyond_the_budget_is_refused_and_may_be_tried_again() -> None:
    gate = Gate(LIMITS)
    gate.charge(1000)
    sent = talk(size_app, headers=[(b"content-length", b"900")], gate=gate)
    assert sent.status == 503
    assert sent.headers["retry-after"] == "1"


def test_a_body_beyond_the_budget_is_refused_while_it_comes() -> None:
    gate = Gate(LIMITS)
    gate.charge(1000)
    assert talk(size_app, [b"x" * 400, b"x" * 400], gate=gate).status == 503


@pytest.mark.parametrize(
    ("headers", "closes"),
    [
        ([], False),
        ([(b"content-length", b"0")], False),
        ([(b"content-length", b"100")], False),
        ([(b"content-length", b"101")], True),
        ([(b"content-length", b"5"), (b"expect", b"100-continue")], True),
        ([(b"transfer-encoding", b"chunked")], True),
    ],
)
def test_an_answer_before_a_long_body_closes(headers: list[tuple[bytes, bytes]], closes: bool) -> None:
    assert ("connection" in talk(early_app, headers=headers).headers) == closes


def test_an_answer_after_the_body_does_not_close() -> None:
    assert "connection" not in talk(size_app, [b"x" * 500], [(b"content-length", b"500")]).headers


def test_the_request_id_is_known_inside_and_outside() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(request_id.get())
        await early_app(scope, receive, send)

    assert talk(app, headers=[(b"x-request-id", b"r-1")]).headers["x-request-id"] == "r-1"
    made = talk(app, gate=Gate(LIMITS, makes_ids=True)).headers["x-request-id"]
    assert seen == ["r-1", made]
    assert "x-request-id" not in talk(app).headers
    assert request_id.get() == ""


def test_other_kinds_of_scope_pass_untouched() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send))

    untouched: Any = ({"type": "lifespan"}, object(), object())
    asyncio.run(AsgiLimits(app, Gate(LIMITS))(*untouched))
    assert seen == [untouched]


def test_a_hang_up_in_a_body_is_told() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        with pytest.raises(Cancelled):
            await read_body(scope, receive)
        await early_app(scope, receive, send)

    talk(app, [b"x"], [(b"content-length", b"5")], has_end=False)
    talk(app, [b"x"], has_end=False)


def test_a_body_longer_than_its_length_is_refused() -> None:
    assert talk(size_app, [b"x" * 5, b"x" * 5], [(b"content-length", b"6")]).status == 413


def test_waiting_for_a_hang_up_ends_with_it() -> None:
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    async def wait() -> None:
        await disconnect_of(receive)()

    asyncio.run(wait())
    assert not messages
