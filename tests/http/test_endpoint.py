"""The infer endpoint without a transport."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Coroutine
from typing import Any

import pytest
from fakes.http_requests import json_body
from fakes.http_server import PATIENT, Plane
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.errors import Cancelled, InvalidRequest, KernelPortError, PayloadTooLarge
from kernelport.core.request import Call, InferenceRequest
from kernelport.http.endpoint import InferEndpoint, InferHeaders, infer_headers, parse_json_length
from kernelport.http.gate import Gate
from kernelport.http.reply import Reply
from kernelport.protocol.limits import EncodeLimits
from kernelport.telemetry.request_log import RequestLog

PLAIN = InferHeaders()


class Bench:
    """An endpoint over the test plane, and the replies it gave."""

    def __init__(self, **options: Any) -> None:
        self.plane = Plane()
        self.gate = Gate(PATIENT)
        self.endpoint = InferEndpoint(self.plane, self.gate, **options)
        self.replies: list[Reply] = []

    def infer(self, model: str = "echo", body: bytes | None = None, headers: InferHeaders = PLAIN) -> Any:
        return self.endpoint.infer(model, None, json_body() if body is None else body, headers, self.replies.append, 1)

    @property
    def status(self) -> int:
        assert self.gate.in_flight == 0
        assert self.gate.bytes_in_flight == 0
        [reply] = self.replies
        return reply.status


@pytest.fixture
def bench() -> Bench:
    return Bench()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_an_inference_is_answered_once(bench: Bench) -> None:
    bench.infer()
    assert bench.status == 200
    assert bench.plane.models["echo"].encodings == 1


def test_a_held_inference_is_in_flight_until_it_is_answered(bench: Bench) -> None:
    bench.infer("held")
    assert bench.gate.in_flight == 1
    assert not bench.replies
    bench.plane.finish(bench.plane.held[0], "held")
    assert bench.status == 200


def test_a_cancelled_inference_is_never_answered(bench: Bench) -> None:
    bench.infer("held").cancel()
    assert bench.plane.cancelled == 1
    assert not bench.replies
    assert bench.gate.in_flight == 0


def test_cancelling_an_answered_inference_does_nothing(bench: Bench) -> None:
    bench.infer().cancel()
    assert bench.status == 200


def test_an_answer_that_cannot_be_encoded_turns_the_outcome(bench: Bench) -> None:
    exchange = bench.infer("broken")
    assert bench.status == 500
    assert exchange.call.error is not None
    assert exchange.call.response is None


def test_an_answer_above_the_limit_turns_the_outcome() -> None:
    bench = Bench(encode_limits=EncodeLimits(max_response_bytes=1000))
    exchange = bench.infer("big")
    assert isinstance(exchange.call.error, KernelPortError)
    assert bench.status == 413 if isinstance(exchange.call.error, PayloadTooLarge) else bench.status >= 400


def test_closed_admission_refuses_before_anything_is_looked_up(bench: Bench) -> None:
    bench.gate.close_admission()
    bench.infer("nobody")
    assert bench.status == 503


def test_the_model_is_looked_up_before_the_encoding_is_judged(bench: Bench) -> None:
    bench.infer("nobody", headers=InferHeaders(content_encoding=b"br"))
    assert bench.status == 404
    assert not bench.plane.rejected


def test_a_fault_of_our_own_is_logged_and_hidden(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def broken(model: str, version: str | None) -> Any:
        raise ZeroDivisionError("secret")

    bench.plane.find = broken  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        bench.infer()
    assert bench.status == 500
    assert b"secret" not in bench.replies[0].body
    assert "secret" in caplog.text


def test_an_inflated_body_counts_as_bytes_in_flight() -> None:
    async def scenario() -> None:
        bench = Bench()
        body = json_body(rows=30)
        bench.infer("held", gzip.compress(body), InferHeaders(content_encoding=b"gzip"))
        assert bench.gate.bytes_in_flight == len(body)
        bench.plane.finish(bench.plane.held[0], "held")
        assert bench.status == 200

    run(scenario())


def test_a_client_that_goes_while_its_body_is_inflated_is_counted() -> None:
    async def scenario() -> None:
        bench = Bench()
        body = b'{"x":"' + b"y" * 900_000 + b'"}'
        bench.infer("echo", gzip.compress(body), InferHeaders(content_encoding=b"gzip")).cancel()
        while not bench.plane.rejected:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert isinstance(bench.plane.rejected[0], Cancelled)
        assert not bench.replies
        assert bench.gate.in_flight == 0

    run(scenario())


def test_the_request_log_hears_of_every_call() -> None:
    heard: list[tuple[str, str, str]] = []

    class Log(RequestLog):
        def record(self, call: Call, model: str, version: str, request_id: str, encoded_ns: int) -> None:
            heard.append((model, version, request_id))

    bench = Bench(request_log=Log(1, False))
    bench.infer(headers=InferHeaders(request_id=b"r-1"))
    bench.infer("full")
    assert heard == [("echo", "1", "r-1"), ("full", "1", "")]


def test_the_coroutine_returns_the_reply() -> None:
    async def scenario() -> None:
        bench = Bench()
        assert (await bench.endpoint.infer_async("echo", "1", json_body(), PLAIN)).status == 200
        assert (await bench.endpoint.infer_async("later", None, json_body(), PLAIN)).status == 200
        assert (await bench.endpoint.infer_async("nobody", None, json_body(), PLAIN)).status == 404

    run(scenario())


def test_the_coroutine_cancels_when_the_client_goes() -> None:
    async def scenario() -> None:
        bench = Bench()
        gone = asyncio.Event()
        asking = asyncio.ensure_future(bench.endpoint.infer_async("held", None, json_body(), PLAIN, gone.wait))
        await asyncio.sleep(0)
        gone.set()
        assert (await asking).status == 499
        assert bench.plane.cancelled == 1
        assert bench.gate.in_flight == 0

    run(scenario())


def test_cancelling_the_task_cancels_the_call() -> None:
    async def scenario() -> None:
        bench = Bench()
        forever = asyncio.Event()
        asking = asyncio.ensure_future(bench.endpoint.infer_async("held", None, json_body(), PLAIN, forever.wait))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert bench.plane.cancelled == 1

    run(scenario())


def test_an_answered_call_outlives_the_watch_for_the_client() -> None:
    async def scenario() -> None:
        bench = Bench()
        forever = asyncio.Event()
        asking = asyncio.ensure_future(bench.endpoint.infer_async("held", None, json_body(), PLAIN, forever.wait))
        await asyncio.sleep(0)
        bench.plane.finish(bench.plane.held[0], "held")
        assert (await asking).status == 200

    run(scenario())


@given(st.integers(0, 100))
def test_a_header_length_within_the_body_is_taken(length: int) -> None:
    assert parse_json_length(b" %d " % length, bytes(100)) == length


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"+1", b"1.0", b"1_0", b"101", b"9" * 19, b"3, 3", b"\xb2"])
def test_any_other_header_length_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequest, match="Inference-Header-Content-Length"):
        parse_json_length(value, bytes(100))


def test_raw_fields_become_the_headers_that_matter() -> None:
    headers = infer_headers(
        [(b"host", b"a"), (b"accept-encoding", b"gzip"), (b"content-encoding", b"a"), (b"content-encoding", b"b")], b"r"
    )
    assert headers.accept_encoding == b"gzip"
    assert headers.content_encoding == b"a, b"
    assert headers.json_length is None
    assert headers.request_id == b"r"


def test_outputs_with_values_that_json_lacks_are_named() -> None:
    bench = Bench()
    request = json_body().replace(b"1.0", b"NaN")
    bench.infer(body=request)
    assert bench.status == 200
    assert (b"kernelport-non-finite", b"y") in bench.replies[0].headers


def test_requests_reach_the_plane_decoded(bench: Bench) -> None:
    bench.infer("held", json_body(id="7"))
    request: InferenceRequest = bench.plane.held[0].request
    assert request.id == "7"
    assert request.inputs["x"].shape == (1, 4)
    bench.plane.held[0].cancel()
