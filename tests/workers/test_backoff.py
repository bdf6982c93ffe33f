"""How long a worker rests before it is started again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kernelport.workers.backoff import Backoff

SECOND = 1_000_000_000


@given(st.lists(st.integers(0, 900), max_size=40), st.integers(1, 8))
def test_no_window_ever_holds_more_restarts_than_the_limit(gaps_s: list[int], limit: int) -> None:
    backoff = Backoff(limit=limit, window_s=600, longest_s=60)
    now_s, granted = 0, []
    for gap_s in gaps_s:
        now_s += gap_s
        recent = [at for at in granted if now_s - at <= 600]
        delay_ns = backoff.next_delay_ns(now_s * SECOND)
        assert (delay_ns is None) == (len(recent) >= limit)
        if delay_ns is not None:
            assert delay_ns == min(2 ** len(recent), 60) * SECOND
            granted.append(now_s)


def test_the_defaults_are_five_restarts_in_ten_minutes() -> None:
    backoff = Backoff()
    delays = [backoff.next_delay_ns(0) for _ in range(6)]
    assert [delay and delay // SECOND for delay in delays] == [1, 2, 4, 8, 16, None]
    assert backoff.next_delay_ns(600 * SECOND) is None
    assert backoff.next_delay_ns(600 * SECOND + 1) == SECOND
