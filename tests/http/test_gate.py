"""The gate's accounts."""

import asyncio
import logging

import pytest
from kernelport.core.errors import ServerStopping, TooManyInFlight
from kernelport.http.gate import Gate
from kernelport.http.limits import HttpLimits
from kernelport.telemetry.logging import ACCESS_LOGGER


def test_the_budget_is_exact() -> None:
    gate = Gate(HttpLimits(max_inflight_bytes=100))
    gate.charge(60)
    gate.charge(40)
    with pytest.raises(TooManyInFlight, match="max_inflight_bytes = 100"):
        gate.charge(1)
    assert gate.bytes_in_flight == 100
    gate.release(60)
    gate.charge(60)


def test_connections_are_counted_and_bounded() -> None:
    gate = Gate(HttpLimits(max_connections=1))
    assert gate.connect()
    assert not gate.connect()
    gate.disconnect()
    gate.disconnect()
    assert gate.connect()


def test_closed_admission_refuses() -> None:
    gate = Gate(HttpLimits())
    gate.check_open()
    gate.close_admission()
    assert gate.is_draining
    with pytest.raises(ServerStopping):
        gate.check_open()


def test_waiting_ends_with_the_last_inference() -> None:
    async def scenario() -> None:
        gate = Gate(HttpLimits())
        await gate.until_idle()
        gate.in_flight = 2
        waiting = [asyncio.ensure_future(gate.until_idle()) for _ in range(2)]
        await asyncio.sleep(0)
        assert gate.is_awaited
        gate.in_flight -= 1
        gate.wake_idle()
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        gate.in_flight -= 1
        gate.wake_idle()
        await asyncio.gather(*waiting)

    asyncio.run(scenario())


def test_a_cancelled_wait_leaves_the_others_waiting() -> None:
    async def scenario() -> None:
        gate = Gate(HttpLimits())
        gate.in_flight = 1
        first, second = (asyncio.ensure_future(gate.until_idle()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.in_flight = 0
        gate.wake_idle()
        await second

    asyncio.run(scenario())


@pytest.mark.parametrize("sent", [b"", b"a b", b"\x00", b"x" * 129, b"caf\xe9"])
def test_an_id_is_made_only_when_wanted(sent: bytes) -> None:
    assert Gate(HttpLimits()).request_id(sent) == b""
    gate = Gate(HttpLimits(), makes_ids=True)
    made = [gate.request_id(sent), gate.request_id(sent)]
    assert len(set(made)) == 2
    assert all(one.isascii() and one for one in made)


def test_a_sane_id_is_kept() -> None:
    assert Gate(HttpLimits(), makes_ids=True).request_id(b"abc/1:2-3") == b"abc/1:2-3"


def test_the_access_log_is_silent_unless_it_was_on(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger(ACCESS_LOGGER)
    logger.setLevel(logging.CRITICAL)
    try:
        Gate(HttpLimits()).log_access("c", "POST", "/p", 200, 1, 1_500_000, b"id")
        assert not caplog.records
        logger.setLevel(logging.INFO)
        Gate(HttpLimits()).log_access("c", "POST", "/p", 200, 1, 1_500_000, b"id")
    finally:
        logger.setLevel(logging.NOTSET)
    [record] = caplog.records
    assert record.getMessage() == "POST /p 200"
    assert vars(record)["duration_ms"] == 1.5
    assert vars(record)["request_id"] == "id"
