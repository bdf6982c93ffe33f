"""The infer endpoint over real sockets: every test runs through the lane and through the ASGI path."""

from __future__ import annotations

import gzip
import socket
import zlib
from typing import Any

import numpy as np
import orjson
import pytest
from fakes.http_requests import X, binary_body, check_echo, infer, json_body, outputs
from fakes.http_server import RawClient, Served


def test_a_json_request_is_answered(served: Served) -> None:
    answer = served.connect().ask(infer(json_body(id="7")))
    assert outputs(answer) == X
    assert answer.json["id"] == "7"
    assert answer.json["model_name"] == "echo"
    assert answer.json["model_version"] == "1"
    assert "queue;dur=" in answer.headers["server-timing"]
    assert "connection" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/echo/versions/1/infer",
        "/v2/models/echo/infer?x=1",
        "/v2/models/%65cho/infer",
        "http://somewhere/v2/models/echo/infer",
    ],
)
def test_other_spellings_of_the_path_reach_the_model(served: Served, path: str) -> None:
    assert outputs(served.connect().ask(infer(json_body(), path))) == X


@pytest.mark.parametrize("name", ["with%20space", "na%C3%AFve"])
def test_a_name_may_be_percent_encoded(served: Served, name: str) -> None:
    assert outputs(served.connect().ask(infer(json_body(), name))) == X


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/nobody/infer",
        "/v2/models/echo/versions/2/infer",
        "/v2/models/echo/versions/x/infer",
        "/v2/models//infer",
        "//v2/models/echo/infer",
        "/v2/models/echo/infer/",
        "/v2/models/a%2Fb/infer",
        "/V2/models/echo/infer",
    ],
)
def test_what_does_not_exist_is_404_and_the_connection_lives(served: Served, path: str) -> None:
    client = served.connect()
    answer = client.ask(infer(json_body(), path))
    assert answer.status == 404
    assert "error" in answer.json
    assert answer.headers["content-type"] == "application/json"
    check_echo(client)


def test_another_method_is_405(served: Served) -> None:
    client = served.connect()
    answer = client.ask(infer(b"", method="GET"))
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    check_echo(client)


def test_a_binary_request_gets_a_binary_answer(served: Served) -> None:
    body, length = binary_body(rows=3)
    answer = served.connect().ask(infer(body, "echo", f"inference-header-content-length: {length}"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    json_length = int(answer.headers["inference-header-content-length"])
    assert orjson.loads(answer.body[:json_length])["outputs"][0]["parameters"] == {"binary_data_size": 48}
    assert np.frombuffer(answer.body[json_length:], np.float32).tolist() == X * 3


def test_a_raw_request_is_one_tensor(served: Served) -> None:
    body = np.array(X, np.float32).tobytes()
    answer = served.connect().ask(infer(body, "echo", "Inference-Header-Content-Length: 0"))
    assert answer.status == 200
    assert answer.body.endswith(body)


@pytest.mark.parametrize("value", ["abc", "-1", "99999", "1.5", "", "1 2", "+1", "0x10", "\u00b2", "9" * 30])
def test_a_bad_header_length_is_400(served: Served, value: str) -> None:
    client = served.connect()
    answer = client.ask(infer(json_body(), "echo", f"Inference-Header-Content-Length: {value}"))
    assert answer.status == 400
    assert "error" in answer.json
    check_echo(client)
    assert len(served.plane.rejected) == 1


def test_a_body_that_is_not_json_is_400_and_counted(served: Served) -> None:
    client = served.connect()
    assert client.ask(infer(b"nonsense")).status == 400
    assert client.ask(infer(b"")).status == 400
    check_echo(client)
    assert [type(error).__name__ for error in served.plane.rejected] == ["MalformedBody", "MalformedBody"]


def test_a_full_queue_says_when_to_come_back(served: Served) -> None:
    client = served.connect()
    answer = client.ask(infer(json_body(), "full"))
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    check_echo(client)


def test_an_answer_that_cannot_be_encoded_is_500_without_details(served: Served) -> None:
    client = served.connect()
    answer = client.ask(infer(json_body(), "broken"))
    assert answer.status == 500
    assert answer.json == {"error": "internal error"}
    check_echo(client)


def test_timings_come_as_parameters_when_asked_for(served: Served) -> None:
    answer = served.connect().ask(infer(json_body(parameters={"timing": True})))
    assert "queue_ns" in answer.json["parameters"]


def test_answers_that_come_later_are_written_too(served: Served) -> None:
    client = served.connect()
    for _ in range(3):
        assert outputs(client.ask(infer(json_body(), "later"))) == X


def test_a_body_in_many_pieces_is_put_together(served: Served) -> None:
    body, length = binary_body(rows=10_000)
    request = infer(body, "echo", f"Inference-Header-Content-Length: {length}")
    client = served.connect()
    client.send(request[:100], request[100:50_000], request[50_000:])
    answer = client.answer()
    assert answer.status == 200
    assert np.array_equal(
        np.frombuffer(answer.body[int(answer.headers["inference-header-content-length"]) :], np.float32),
        np.tile(np.array(X, np.float32), 10_000),
    )


def test_a_request_may_come_byte_by_byte(served: Served) -> None:
    client = served.connect()
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = infer(json_body())
    client.send(*(request[at : at + 1] for at in range(len(request))))
    assert outputs(client.answer()) == X


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_a_chunked_body_is_put_together(served: Served, size: int) -> None:
    body = json_body(rows=100 if size > 1 else 1)
    client = served.connect()
    client.send(
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"".join(
            b"%x\r\n%b\r\n" % (len(body[at : at + size]), body[at : at + size]) for at in range(0, len(body), size)
        ),
        b"0\r\n\r\n",
    )
    assert outputs(client.answer())[:4] == X
    check_echo(client)


def test_trailers_do_not_become_headers(served: Served) -> None:
    body = json_body()
    client = served.connect()
    client.send(
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"%x\r\n%b\r\n0\r\nInference-Header-Content-Length: 3\r\nX-Request-Id: q\r\n\r\n" % (len(body), body),
    )
    answer = client.answer()
    assert outputs(answer) == X
    assert "x-request-id" not in answer.headers
    check_echo(client)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
def test_a_compressed_body_is_inflated(served: Served, encoding: str) -> None:
    pack: Any = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}[encoding]
    answer = served.connect().ask(infer(pack(json_body()), "echo", f"Content-Encoding: {encoding}"))
    assert outputs(answer) == X


def test_a_big_compressed_body_is_inflated_off_the_loop(served: Served) -> None:
    body, length = binary_body(rows=40_000)
    answer = served.connect().ask(
        infer(gzip.compress(body), "echo", "Content-Encoding: gzip", f"Inference-Header-Content-Length: {length}")
    )
    assert answer.status == 200
    assert len(answer.body) > 640_000


@pytest.mark.parametrize("encoding", ["br", "GZIP", "x-gzip", "gzip, gzip", "zstd"])
def test_an_unknown_encoding_is_501_and_says_what_is_known(served: Served, encoding: str) -> None:
    client = served.connect()
    answer = client.ask(infer(json_body(), "echo", f"Content-Encoding: {encoding}"))
    assert answer.status == 501
    assert answer.headers["accept-encoding"] == "gzip, deflate"
    check_echo(client)


@pytest.mark.parametrize(
    "body",
    [
        b"not gzip",
        gzip.compress(json_body())[:-4],
        gzip.compress(json_body()) + b"more",
        gzip.compress(json_body())[:-8] + b"\0" * 8,
        b"",
    ],
)
def test_a_broken_stream_is_400(served: Served, body: bytes) -> None:
    client = served.connect()
    assert client.ask(infer(body, "echo", "Content-Encoding: gzip")).status == 400
    check_echo(client)


def test_a_body_that_inflates_without_end_is_413(served: Served) -> None:
    bomb = gzip.compress(bytes(20 << 20))
    client = served.connect()
    assert client.ask(infer(bomb, "echo", "Content-Encoding: gzip")).status == 413
    check_echo(client)


@pytest.mark.parametrize(("coding", "unpack"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_a_big_answer_is_compressed_when_asked_for(served: Served, coding: str, unpack: object) -> None:
    answer = served.connect().ask(infer(json_body(rows=200), "echo", f"Accept-Encoding: {coding}, br"))
    assert answer.headers["content-encoding"] == coding
    assert callable(unpack)
    assert orjson.loads(unpack(answer.body))["outputs"][0]["data"] == X * 200


def test_a_very_big_answer_is_compressed_off_the_loop(served: Served) -> None:
    body, length = binary_body()
    client = served.connect()
    answer = client.ask(infer(body, "big", "Accept-Encoding: gzip", f"Inference-Header-Content-Length: {length}"))
    assert len(gzip.decompress(answer.body)) > 8_000_000
    check_echo(client)


def test_a_small_answer_and_an_error_are_not_compressed(served: Served) -> None:
    client = served.connect()
    assert "content-encoding" not in client.ask(infer(json_body(), "echo", "Accept-Encoding: gzip")).headers
    assert "content-encoding" not in client.ask(infer(b"{", "echo", "Accept-Encoding: gzip")).headers


@pytest.mark.parametrize("sent", ["abc-1", "x" * 128])
def test_a_request_id_is_echoed(served: Served, sent: str) -> None:
    client = served.connect()
    for request in (infer(json_body(), "echo", f"X-Request-Id: {sent}"), infer(b"{", "echo", f"X-Request-Id: {sent}")):
        assert client.ask(request).headers["x-request-id"] == sent


@pytest.mark.parametrize("sent", ["x" * 129, "a b", "\u00e4"])
def test_a_request_id_that_is_not_sane_is_dropped(served: Served, sent: str) -> None:
    answer = served.connect().ask(infer(json_body(), "echo", f"X-Request-Id: {sent}"))
    assert "x-request-id" not in answer.headers


def test_replies_are_counted_by_route(served: Served) -> None:
    client = served.connect()
    client.ask(infer(json_body()))
    client.ask(infer(b"{"))
    client.ask(infer(json_body(), "/v2/models/echo/versions/1/infer"))
    if served.kind == "lane":
        routes = served.gate.http_stats.routes
        assert routes["/v2/models/{model}/infer", "POST"].statuses == {200: 1, 400: 1}
        assert routes["/v2/models/{model}/versions/{version}/infer", "POST"].statuses == {200: 1}


class TestHeadsThatAreKnown:
    """Requests whose head is the one before, byte for byte; the lane does not parse them again."""

    @pytest.fixture
    def client(self, served: Served) -> RawClient:
        client = served.connect()
        check_echo(client)
        check_echo(client)
        return client

    @staticmethod
    def other_body() -> bytes:
        return json_body().replace(b"1.0,2.0", b"9.0,8.0")

    def test_the_new_body_counts(self, client: RawClient) -> None:
        assert outputs(client.ask(infer(self.other_body()))) == [9.0, 8.0, 3.0, 4.0]

    def test_a_broken_body_of_the_same_size_is_400(self, client: RawClient) -> None:
        assert client.ask(infer(b"x" * len(json_body()))).status == 400
        check_echo(client)

    def test_two_such_requests_in_one_packet_are_two(self, client: RawClient) -> None:
        client.send(infer(json_body()) + infer(self.other_body()))
        assert outputs(client.answer()) == X
        assert outputs(client.answer())[0] == 9.0

    def test_such_a_request_in_two_packets_is_one(self, client: RawClient) -> None:
        request = infer(self.other_body())
        client.send(request[:70])
        client.send(request[70:])
        assert outputs(client.answer())[0] == 9.0
        check_echo(client)

    def test_the_same_bytes_inside_a_body_are_a_body(self, client: RawClient) -> None:
        request = infer(json_body())
        outer = b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % (2 * len(request))
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.send(outer + b"x")
        client.send(request)
        client.send(request[:-1])
        assert client.answer().json == {"size": 2 * len(request)}
        check_echo(client)

    def test_such_a_request_waits_for_its_turn(self, served: Served) -> None:
        client = served.connect()
        held = infer(json_body(id="a"), "held")
        for _ in range(2):
            client.send(held)
            assert served.plane.has_held.acquire(timeout=5)
            served.release()
            assert client.answer().json["id"] == "a"
        client.send(held)
        assert served.plane.has_held.acquire(timeout=5)
        client.send(held.replace(b'"a"', b'"b"'))
        served.release()
        assert client.answer().json["id"] == "a"
        assert served.plane.has_held.acquire(timeout=5)
        served.release()
        assert client.answer().json["id"] == "b"

    def test_a_draining_server_closes_after_it(self, client: RawClient, served: Served) -> None:
        served.call(served.gate.begin_drain)
        assert client.ask(infer(json_body())).closes
        assert client.read_to_end() == b""
