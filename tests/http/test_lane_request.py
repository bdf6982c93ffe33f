"""Header fields of an inference as the lane reads them."""

import numpy as np
import pytest
from kernelport.core.errors import InvalidRequest
from kernelport.http.infer_route import InferRoute
from kernelport.http.lane_request import LaneRequest
from kernelport.telemetry.http_stats import RouteStats

ROUTE = InferRoute("m", None, "/v2/models/m/infer", RouteStats())


def read(*fields: tuple[bytes, bytes]) -> LaneRequest:
    request = LaneRequest(ROUTE)
    request.read(list(fields), 1000)
    return request


def test_a_plain_request_shares_its_headers() -> None:
    first = read((b"Host", b"a"), (b"Content-Length", b"10"), (b"User-Agent", b"x"))
    second = read((b"Host", b"a"), (b"Content-Length", b"11"))
    assert first.headers is second.headers
    assert (first.length, second.length) == (10, 11)


def test_names_are_read_in_any_case() -> None:
    request = read((b"CONTENT-LENGTH", b"5"), (b"inference-HEADER-content-length", b"3"), (b"X-Request-ID", b"q"))
    assert request.length == 5
    assert request.headers.json_length == b"3"
    assert request.sent_id == b"q"


def test_a_field_sent_twice_is_seen_whole() -> None:
    name = b"Inference-Header-Content-Length"
    assert read((name.lower(), b"3"), (name, b"4")).headers.json_length == b"3, 4"


def test_identifying_does_not_touch_the_shared_headers() -> None:
    request, other = read((b"host", b"a")), read((b"host", b"a"))
    request.identify(b"id")
    assert request.headers.request_id == b"id"
    assert other.headers.request_id == b""


def test_a_chunked_request_has_no_length() -> None:
    assert read((b"transfer-encoding", b"Chunked")).length == -1


def test_contradictions_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="Transfer-Encoding"):
        read((b"transfer-encoding", b"gzip, chunked"))
    with pytest.raises(InvalidRequest, match="Host"):
        read((b"host", b"a"), (b"host", b"b"))


def test_a_body_above_the_limit_is_marked() -> None:
    assert read((b"content-length", b"1000")).error is None
    assert read((b"content-length", b"1001")).error is not None


def test_an_expectation_without_a_body_is_none() -> None:
    assert read((b"expect", b"100-Continue"), (b"content-length", b"5")).awaits_continue
    assert not read((b"expect", b"100-continue"), (b"content-length", b"0")).awaits_continue


@pytest.mark.parametrize("json_length", [0, 1, 63, 64, 200])
def test_the_tensors_of_a_binary_body_are_aligned(json_length: int) -> None:
    request = read((b"content-length", b"300"), (b"inference-header-content-length", b"%d" % json_length))
    buffer = request.buffer()
    assert len(buffer) == 300
    if json_length < 300:
        assert np.frombuffer(buffer, np.uint8, offset=json_length).ctypes.data % 64 == 0


@pytest.mark.parametrize("json_length", [b"", b"x", b"-1", b"9" * 40])
def test_a_bad_header_length_still_gets_a_buffer(json_length: bytes) -> None:
    request = read((b"content-length", b"300"), (b"inference-header-content-length", json_length))
    assert len(request.buffer()) == 300
