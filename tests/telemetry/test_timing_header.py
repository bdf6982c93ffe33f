"""The Server-Timing header is valid, exact, and there for calls that never ran too."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.request import Call, InferenceRequest
from kernelport.core.timing import BatchTiming
from kernelport.telemetry.timing_header import server_timing, timing_parameters

TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
METRIC = rf'{TOKEN}(?:;{TOKEN}=(?:{TOKEN}|"(?:[^"\\]|\\.)*"))*'
SERVER_TIMING = re.compile(rf"{METRIC}(?:, {METRIC})*")


def call_in_batch() -> Call:
    """Queued at 1 ms, taken at 1.25 ms, merged for 20 us, computed for 1.5 ms; 8 rows of 3 requests."""
    call = Call(InferenceRequest({}), 900_000)
    call.enqueued_ns = 1_000_000
    call.batch = batch = BatchTiming(1_250_000, 8, 3, "size")
    batch.compute_start_ns = 1_270_000
    batch.compute_end_ns = 2_770_000
    batch.done_ns = 2_780_000
    return call


def test_header_names_every_step_in_milliseconds_and_the_batch_size() -> None:
    assert server_timing(call_in_batch()) == b'queue;dur=0.250, batch;dur=0.020, compute;dur=1.500, size;desc="8"'


def test_header_has_the_encode_step_when_it_was_measured() -> None:
    assert server_timing(call_in_batch(), 12_000).endswith(b', size;desc="8", encode;dur=0.012')


def test_calls_of_one_batch_share_its_members_and_keep_their_own_wait() -> None:
    first = call_in_batch()
    second = Call(InferenceRequest({}), 0)
    second.enqueued_ns = 1_150_000
    second.batch = first.batch
    first_members = server_timing(first).split(b", ", 1)
    second_members = server_timing(second).split(b", ", 1)
    assert first_members[1] == second_members[1]
    assert (first_members[0], second_members[0]) == (b"queue;dur=0.250", b"queue;dur=0.100")


def test_a_refused_call_has_a_queue_time_of_zero() -> None:
    call = Call(InferenceRequest({}), 900_000)
    call.finished_ns = 950_000
    assert server_timing(call) == b"queue;dur=0.000"


def test_a_call_that_timed_out_in_the_queue_shows_its_wait() -> None:
    call = Call(InferenceRequest({}), 0)
    call.enqueued_ns = 1_000_000
    call.finished_ns = 101_000_000
    assert server_timing(call) == b"queue;dur=100.000"
    assert timing_parameters(call)["queue_ns"] == 100_000_000


def test_parameters_are_whole_nanoseconds() -> None:
    assert timing_parameters(call_in_batch()) == {
        "queue_ns": 250_000,
        "merge_ns": 20_000,
        "compute_ns": 1_500_000,
        "batch_rows": 8,
        "batch_requests": 3,
    }


@pytest.mark.parametrize("enqueued_ns", [0, 5])
def test_a_call_without_batch_has_the_same_parameters_as_zeros(enqueued_ns: int) -> None:
    call = Call(InferenceRequest({}), 1)
    call.enqueued_ns = enqueued_ns
    assert timing_parameters(call) == dict.fromkeys(timing_parameters(call_in_batch()), 0)


spans = st.integers(0, 10**13)


@given(spans, spans, spans, spans, st.integers(1, 10**6))
def test_header_is_always_valid_and_loses_less_than_a_microsecond(
    queue_ns: int, merge_ns: int, compute_ns: int, encode_ns: int, rows: int
) -> None:
    call = Call(InferenceRequest({}), 1)
    call.enqueued_ns = 1
    call.batch = batch = BatchTiming(1 + queue_ns, rows, 1, "idle")
    batch.compute_start_ns = batch.taken_ns + merge_ns
    batch.compute_end_ns = batch.compute_start_ns + compute_ns
    value = server_timing(call, encode_ns).decode("ascii")
    assert SERVER_TIMING.fullmatch(value)
    durations = dict(re.findall(r"(\w+);dur=([0-9.]+)", value))
    for name, span_ns in (("queue", queue_ns), ("batch", merge_ns), ("compute", compute_ns)):
        assert abs(float(durations[name]) * 1e6 - span_ns) <= 501
    assert f'size;desc="{rows}"' in value
