"""Logs are one line per event on stderr, in text or JSON, ours and uvicorn's alike."""

import json
import logging
import re
import warnings
from collections.abc import Iterator

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from kernelport.telemetry.logging import (
    ACCESS_LOGGER,
    JsonFormatter,
    TextFormatter,
    configure_logging,
    logging_config,
    one_line,
    request_id,
)

NAMES = ("", "kernelport", ACCESS_LOGGER, "uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")


@pytest.fixture(autouse=True)
def _global_logging_is_put_back() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(logger.level, logger.propagate, logger.handlers[:]) for logger in loggers]
    yield
    logging.captureWarnings(False)
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was logged; nothing may have gone to stdout."""
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_text_line_has_time_level_logger_request_id_and_extras(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    logging.getLogger("kernelport.server").info("loaded %s", "magika", extra={"request_id": "r-1", "rows": 3})
    (line,) = lines(capsys)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    kernelport\.server \[r-1\] loaded magika rows=3", line
    )


def test_json_line_is_one_object_with_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format="json")
    logging.getLogger("kernelport.server").warning('say "%s"', "hi", extra={"request_id": "r-1", "rows": 3})
    (line,) = lines(capsys)
    entry = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "warning",
        "logger": "kernelport.server",
        "message": 'say "hi"',
        "request_id": "r-1",
        "rows": 3,
    }


def test_request_id_comes_from_the_context_unless_given(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format="json")
    token = request_id.set("from-context")
    try:
        logging.getLogger("kernelport").info("one")
        logging.getLogger("kernelport").info("two", extra={"request_id": "given"})
    finally:
        request_id.reset(token)
    logging.getLogger("kernelport").info("three")
    entries = [json.loads(line) for line in lines(capsys)]
    assert [entry.get("request_id") for entry in entries] == ["from-context", "given", None]


def test_json_line_survives_what_json_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format="json")
    logging.getLogger("kernelport").info("odd \ud800", extra={"big": 2**80, "thing": object, 5: "five"})  # type: ignore[dict-item]
    (line,) = lines(capsys)
    assert json.loads(line)["big"] == str(2**80)


def test_extras_cannot_replace_the_fixed_members(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format="json")
    logging.getLogger("kernelport").info("real", extra={"level": "fake", "time": "never"})
    (line,) = lines(capsys)
    entry = json.loads(line)
    assert entry["level"] == "info"
    assert entry["time"] != "never"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_traceback_follows_the_message(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format=log_format)  # type: ignore[arg-type]
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logging.getLogger("kernelport").exception("failed", stack_info=True)
    logged = lines(capsys)
    text = "\n".join(logged) if log_format == "text" else json.loads(logged[0])["exception"]
    assert "Traceback (most recent call last)" in text
    assert "RuntimeError: boom" in text
    if log_format == "json":
        assert len(logged) == 1
        assert json.loads(logged[0])["stack"].startswith("Stack (most recent call last)")


def test_configuring_again_adds_no_second_handler(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    configure_logging()
    logging.getLogger("kernelport").info("once")
    assert len(lines(capsys)) == 1


def test_uvicorn_speaks_through_our_handler_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    uvicorn.Config(app=None, log_config=None)  # type: ignore[arg-type]
    logging.getLogger("uvicorn.error").info("Uvicorn running")
    logging.getLogger("uvicorn.access").info("GET /")
    (line,) = lines(capsys)
    assert line.endswith("uvicorn.error Uvicorn running")


def test_level_counts_for_us_and_other_libraries_only_warn(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug")
    logging.getLogger("kernelport.batcher").debug("ours")
    logging.getLogger("uvicorn.error").debug("uvicorn's")
    logging.getLogger("somebody.else").info("noise")
    logging.getLogger("somebody.else").warning("warning")
    assert [line.rsplit(" ", 1)[1] for line in lines(capsys)] == ["ours", "uvicorn's", "warning"]


def test_error_level_silences_warnings_of_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("error")
    logging.getLogger("kernelport").warning("ours")
    logging.getLogger("somebody.else").warning("theirs")
    assert lines(capsys) == []


@pytest.mark.parametrize(("access_log", "count"), [(True, 1), (False, 0)])
def test_access_log_has_its_own_switch(access_log: bool, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", access_log=access_log)
    logging.getLogger(ACCESS_LOGGER).info("POST /v2/models/m/infer 200")
    assert len(lines(capsys)) == count


def test_python_warnings_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old way", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "DeprecationWarning: old way" in lines(capsys)[0]


def test_unknown_level_and_format_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="log level 'loud' is unknown; use one of critical, error, warning"):
        logging_config("loud")
    with pytest.raises(ValueError, match="log format 'xml' is unknown; use text or json"):
        logging_config(log_format="xml")  # type: ignore[arg-type]


@given(st.text(), st.text())
def test_a_client_cannot_forge_a_second_line(message: str, identity: str) -> None:
    record = logging.makeLogRecord({"msg": message, "request_id": identity, "levelname": "INFO", "name": "kernelport"})
    assert len(TextFormatter().format(record).splitlines()) <= 1
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["level"] == "info"


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert one_line("a\x1b[31m\r\nb\u2028c\u00e9") == "a\\x1b[31m\\r\\nb\\u2028c\u00e9"
