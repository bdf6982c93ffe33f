"""Slow requests leave one line with the time of every step; quiet requests leave none."""

import logging

import pytest
from kernelport.core.errors import QueueFull
from kernelport.core.request import Call, InferenceRequest
from kernelport.core.timing import BatchTiming
from kernelport.telemetry.request_log import REQUEST_LOGGER, SLOW_LOGGER, request_log, step_ms

MS = 1_000_000


def answered_call() -> Call:
    """decode 1 ms, queue 2 ms, merge 3 ms, compute 40 ms, split 5 ms."""
    call = Call(InferenceRequest({}), 10 * MS)
    call.enqueued_ns = 11 * MS
    call.batch = batch = BatchTiming(13 * MS, 8, 3, "delay")
    batch.compute_start_ns = 16 * MS
    batch.compute_end_ns = 56 * MS
    batch.done_ns = 61 * MS
    return call


STEPS = {
    "decode_ms": 1.0,
    "queue_ms": 2.0,
    "merge_ms": 3.0,
    "compute_ms": 40.0,
    "split_ms": 5.0,
    "encode_ms": 6.0,
}


def facts(record: logging.LogRecord) -> dict[str, object]:
    """What the line carries beyond the usual fields of a record."""
    usual = vars(logging.makeLogRecord({})).keys() | {"message"}
    return {key: value for key, value in vars(record).items() if key not in usual}


def test_steps_add_up_to_the_whole() -> None:
    steps = step_ms(answered_call(), 67 * MS)
    assert steps == STEPS
    assert list(steps) == list(STEPS)
    assert sum(steps.values()) == 57.0


def test_steps_a_call_never_reached_are_absent() -> None:
    call = Call(InferenceRequest({}), 10 * MS)
    assert step_ms(call, 12 * MS) == {}
    call.enqueued_ns = 11 * MS
    assert step_ms(call, 12 * MS) == {"decode_ms": 1.0}


def test_slow_request_is_a_warning_with_everything(caplog: pytest.LogCaptureFixture) -> None:
    log = request_log(57)
    assert log is not None
    log.record(answered_call(), "resnet", "2", "req-9", 67 * MS)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.message) == (SLOW_LOGGER, "WARNING", "slow request")
    assert facts(record) == {
        "request_id": "req-9",
        "model": "resnet",
        "version": "2",
        "outcome": "success",
        "total_ms": 57.0,
        **STEPS,
        "batch_rows": 8,
        "batch_requests": 3,
        "batch_reason": "delay",
    }


def test_request_below_the_limit_leaves_no_line(caplog: pytest.LogCaptureFixture) -> None:
    log = request_log(57.001)
    assert log is not None
    log.record(answered_call(), "resnet", "2", "", 67 * MS)
    assert caplog.records == []


def test_slow_refusal_shows_its_outcome(caplog: pytest.LogCaptureFixture) -> None:
    log = request_log(1)
    assert log is not None
    call = Call(InferenceRequest({}), 0)
    call.finish(None, QueueFull("full"))
    log.record(call, "resnet", "1", "", 2 * MS)
    assert facts(caplog.records[0]) == {
        "request_id": "",
        "model": "resnet",
        "version": "1",
        "outcome": "queue_full",
        "total_ms": 2.0,
    }


def test_without_limit_and_debug_there_is_no_log() -> None:
    assert request_log(0) is None
    assert request_log(-1) is None


def test_at_debug_level_every_request_leaves_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, REQUEST_LOGGER):
        log = request_log(0)
        assert log is not None
        log.record(answered_call(), "resnet", "2", "", 67 * MS)
    (record,) = caplog.records
    assert (record.name, record.levelname) == (REQUEST_LOGGER, "DEBUG")
    assert facts(record)["compute_ms"] == 40.0
