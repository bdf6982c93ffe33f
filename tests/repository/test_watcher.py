"""What a poll makes of what it sees."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.model import ModelConfig
from kernelport.core.errors import ConfigError
from kernelport.repository.model import RepositoryModel
from kernelport.repository.watcher import Changes, WatchState, start_watching, step, watch


def replay(*polls: dict[str, str], applied: Mapping[str, str] = {}) -> list[Changes]:
    state = WatchState(applied, applied)
    changes = []
    for poll in polls:
        state, change = step(state, poll)
        changes.append(change)
    return changes


def test_an_addition_counts_at_the_second_poll_that_sees_it_alike() -> None:
    assert replay({"m": "a"}, {"m": "a"}, {"m": "a"}) == [Changes(), Changes(added=("m",)), Changes()]


def test_files_that_are_still_being_copied_are_left_alone() -> None:
    polls = [{"m": "old"}, {"m": "a"}, {"m": "b"}, {"m": "c"}, {"m": "c"}, {"m": "c"}]
    assert replay(*polls, applied={"m": "old"}) == [Changes()] * 4 + [Changes(changed=("m",)), Changes()]


def test_a_removal_counts_at_the_second_poll_that_misses_it() -> None:
    assert replay({}, {}, {}, applied={"m": "a"}) == [Changes(), Changes(removed=("m",)), Changes()]


def test_a_folder_that_is_away_for_a_moment_changes_nothing() -> None:
    assert replay({}, {"m": "a"}, {"m": "a"}, applied={"m": "a"}) == [Changes()] * 3


def test_a_change_that_is_taken_back_changes_nothing() -> None:
    assert replay({"m": "b"}, {"m": "a"}, {"m": "a"}, applied={"m": "a"}) == [Changes()] * 3


def test_a_model_that_was_removed_and_comes_back_is_added() -> None:
    changes = replay({}, {}, {"m": "a"}, {"m": "a"}, applied={"m": "a"})
    assert changes == [Changes(), Changes(removed=("m",)), Changes(), Changes(added=("m",))]


SEEN = st.dictionaries(st.sampled_from("mn"), st.sampled_from("ab"))


@given(SEEN, st.lists(SEEN, max_size=8))
def test_after_two_quiet_polls_what_was_applied_is_what_is_there(
    first: dict[str, str], polls: list[dict[str, str]]
) -> None:
    state = WatchState(first, first)
    present = set(first)
    for poll in [*polls, *[polls[-1] if polls else first] * 2]:
        state, changes = step(state, poll)
        assert set(changes.added).isdisjoint(present)
        assert set(changes.changed) <= present
        assert set(changes.removed) <= present
        present = (present | set(changes.added)) - set(changes.removed)
    assert dict(state.applied) == (polls[-1] if polls else first)


class Stopped(Exception):
    """Ends the endless loop of a test."""


def test_the_loop_applies_changes_and_outlives_an_unreadable_repository(caplog: pytest.LogCaptureFixture) -> None:
    def model(print_now: str) -> RepositoryModel:
        return RepositoryModel("m", Path("m"), {}, ModelConfig.model_validate({}), fingerprint=print_now)

    polls: list[dict[str, RepositoryModel] | ConfigError] = [
        {"m": model("b")},
        ConfigError("the mount is gone"),
        {"m": model("b")},
    ]
    scans = iter(polls)
    applied: list[Changes] = []
    slept: list[float] = []

    async def scan() -> Mapping[str, RepositoryModel]:
        try:
            seen = next(scans)
        except StopIteration as end:
            raise Stopped from end
        if isinstance(seen, ConfigError):
            raise seen
        return seen

    async def apply(changes: Changes, models: Mapping[str, RepositoryModel]) -> None:
        assert list(models) == ["m"]
        applied.append(changes)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with pytest.raises(Stopped):
        asyncio.run(watch(start_watching({"m": model("a")}), scan, apply, 15, sleep))
    assert applied == [Changes(changed=("m",))]
    assert slept == [15] * 4
    assert "the mount is gone" in caplog.text
