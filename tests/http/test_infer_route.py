"""Which request targets are inferences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.http.infer_route import InferRoutes, path_of
from kernelport.telemetry.http_stats import HttpStats


def read(url: bytes, root_path: str = "") -> tuple[str, str | None] | None:
    route = InferRoutes(HttpStats(), root_path).resolve(url)
    return None if route is None else (route.model, route.version)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (b"/v2/models/m/infer", ("m", None)),
        (b"/v2/models/m/versions/3/infer", ("m", "3")),
        (b"/v2/models/m/infer?a=b&c", ("m", None)),
        (b"/v2/models/a%20b/infer", ("a b", None)),
        (b"/v2/models/%E2%82%AC/infer", ("\u20ac", None)),
        (b"http://host:80/v2/models/m/infer", ("m", None)),
        (b"/v2/models/versions/infer", ("versions", None)),
    ],
)
def test_inferences_are_recognised(url: bytes, target: tuple[str, str | None]) -> None:
    assert read(url) == target


@pytest.mark.parametrize(
    "url",
    [
        b"/v2/models/m",
        b"/v2/models/m/infer/",
        b"//v2/models/m/infer",
        b"/v2/models//infer",
        b"/v2/models/a/b/infer",
        b"/v2/models/a%2Fb/infer",
        b"/v2/models/m/versions/x/infer",
        b"/v2/models/m/versions//infer",
        b"/v2/models/m/infer%0A",
        b"/v1/models/m/infer",
        b"/V2/models/m/infer",
        b"infer",
        b"*",
        b"",
        "/v2/models/\u00e9/infer".encode(),
    ],
)
def test_everything_else_is_not(url: bytes) -> None:
    assert read(url) is None


def test_a_prefix_may_be_there_or_have_been_taken_away() -> None:
    assert read(b"/kp/v2/models/m/infer", "/kp") == ("m", None)
    assert read(b"/v2/models/m/infer", "/kp") == ("m", None)
    assert read(b"/kpx/v2/models/m/infer", "/kp") is None
    assert read(b"/kp/v2/models/m/infer") is None


def test_what_is_remembered_is_bounded() -> None:
    routes = InferRoutes(HttpStats())
    for number in range(5000):
        routes.resolve(b"/v2/models/%d/infer" % number)
        routes.resolve(b"/%d" % number)
    assert len(routes.known) <= 1024
    routes.resolve(b"/" + b"a" * 5000)
    assert all(len(url) <= 512 for url in routes.known)


@given(st.binary(max_size=60))
def test_any_target_is_survived(url: bytes) -> None:
    assert read(url) is None or b"infer" in url
    assert path_of(url) != b""
