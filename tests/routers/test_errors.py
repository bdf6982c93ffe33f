"""One error format for everything that goes wrong on the way to a route and in it."""

from __future__ import annotations

import logging

import pytest

UNKNOWN = ["/V2", "//v2", "/v2/health", "/v2/health/live/", "/v2/models/", "/v2/models/echo/versions", "/v2/nothing",
           "/v2/models/a%2Fb", "/v2/models/echo/", "/v1/models/echo", "/v2/repository/index/", "/docs/"]  # fmt: skip

WRONG_METHOD = [
    ("POST", "/v2/health/live", "GET, HEAD"),
    ("POST", "/v2", "GET"),
    ("HEAD", "/v2", "GET"),
    ("DELETE", "/v2/models/echo", "GET"),
    ("POST", "/v2/models/stats", "GET"),
    ("GET", "/v2/models/echo/infer", "POST"),
    ("GET", "/v2/models/echo/versions/1/infer", "POST"),
    ("OPTIONS", "/v2/models/echo/infer", "POST"),
    ("BREW", "/v2/health/ready", "GET, HEAD"),
    ("GET", "/v2/repository/index", "POST"),
    ("GET", "/v2/repository/models/echo/load", "POST"),
    ("POST", "/v2/systemsharedmemory/status", "GET"),
    ("POST", "/metrics", "GET"),
    ("POST", "/docs", "GET"),
]


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_404_and_never_redirected(ask, method, path):
    answer = ask(method, f"http://server{path}")
    assert (answer.status_code, answer.json()) == (404, {"error": "Not Found"})
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("method", "path", "allowed"), WRONG_METHOD)
def test_a_wrong_method_is_405_and_says_which_are_right(ask, method, path, allowed):
    answer = ask(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert answer.headers["content-type"] == "application/json"
    if method != "HEAD":
        assert answer.json() == {"error": "Method Not Allowed"}


def test_an_unexpected_failure_is_500_without_details_and_one_traceback_in_the_log(ask, control, monkeypatch, caplog):
    def explode() -> list[str]:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(control, "model_names", explode)
    with caplog.at_level(logging.ERROR):
        answer = ask("GET", "/v2/models")
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
    assert answer.headers["content-type"] == "application/json"
    [record] = caplog.records
    assert record.exc_info is not None
    assert "secret" in str(record.exc_info[1])


@pytest.mark.parametrize("content_type", ["text/html", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_the_content_type_of_a_request_does_not_matter(ask, content_type):
    headers = {"content-type": content_type} if content_type else {}
    assert ask("POST", "/v2/repository/index", content=b'{"ready": true}', headers=headers).status_code == 200


def test_other_origins_are_not_let_in(ask):
    answer = ask("GET", "/v2", headers={"origin": "http://elsewhere.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
