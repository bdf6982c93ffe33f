"""The real clock: monotonic, and its timers run on the loop."""

import asyncio
import threading

from kernelport.core.clock import SystemClock


def test_time_never_goes_back() -> None:
    async def read() -> list[int]:
        clock = SystemClock(asyncio.get_running_loop())
        return [clock.now_ns() for _ in range(1000)]

    stamps = asyncio.run(read())
    assert stamps == sorted(stamps)


def test_a_timer_fires_once_on_the_loop_and_one_in_the_past_at_once() -> None:
    async def wait() -> list[str]:
        clock = SystemClock(asyncio.get_running_loop())
        fired: list[str] = []
        done = asyncio.Event()
        clock.call_at(clock.now_ns() - 1_000_000_000, lambda: fired.append("past"))
        clock.call_at(clock.now_ns() + 2_000_000, done.set)
        await done.wait()
        fired.append("soon")
        return fired

    assert asyncio.run(wait()) == ["past", "soon"]


def test_a_cancelled_timer_stays_silent() -> None:
    async def wait() -> list[str]:
        clock = SystemClock(asyncio.get_running_loop())
        fired: list[str] = []
        clock.call_at(clock.now_ns(), lambda: fired.append("cancelled")).cancel()
        done = asyncio.Event()
        clock.call_at(clock.now_ns() + 1_000_000, done.set)
        await done.wait()
        return fired

    assert asyncio.run(wait()) == []


def test_other_threads_reach_the_loop() -> None:
    async def wait() -> int:
        clock = SystemClock(asyncio.get_running_loop())
        arrived: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        thread = threading.Thread(target=lambda: clock.call_soon_threadsafe(arrived.set_result, 7))
        thread.start()
        value = await arrived
        thread.join()
        return value

    assert asyncio.run(wait()) == 7
