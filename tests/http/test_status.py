"""Every error code has a status, and nothing internal leaks into a body."""

import logging

import orjson
import pytest
from kernelport.core.errors import ErrorCode, InvalidRequest, KernelPortError, ModelNotFound, QueueFull
from kernelport.http.status import STATUS, error_body, error_text, public_error, status_of


def test_every_code_has_a_status() -> None:
    assert set(STATUS) == set(ErrorCode)


@pytest.mark.parametrize(
    ("error", "status"),
    [(InvalidRequest("x"), 400), (ModelNotFound("x"), 404), (QueueFull("x"), 503), (KernelPortError("x"), 500)],
)
def test_an_error_has_the_status_of_its_code(error: KernelPortError, status: int) -> None:
    assert status_of(error) == status


def test_a_body_is_one_json_member() -> None:
    assert orjson.loads(error_body(InvalidRequest('a "quoted" \u00e9'))) == {"error": 'a "quoted" \u00e9'}


def test_a_lone_surrogate_does_not_break_the_body() -> None:
    assert orjson.loads(error_text("name \ud800")) == {"error": "name ?"}


def test_an_error_raised_on_purpose_is_shown_as_it_is() -> None:
    error = InvalidRequest("say this")
    assert public_error(error, "testing") is error


def test_any_other_exception_is_logged_and_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        shown = public_error(ZeroDivisionError("secret"), "testing")
    assert str(shown) == "internal error"
    assert "secret" in caplog.text
    assert "while" not in str(shown)
