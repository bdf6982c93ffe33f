"""Only legal moves change a version's state."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kernelport.core.errors import ErrorCode, IllegalTransition
from kernelport.core.model import ModelState
from kernelport.lifecycle.state import VersionState

# Written down a second time on purpose: a change of the table must be meant.
LEGAL = {
    ("UNKNOWN", "LOADING"),
    ("LOADING", "READY"),
    ("LOADING", "UNAVAILABLE"),
    ("READY", "UNLOADING"),
    ("UNLOADING", "UNAVAILABLE"),
    ("UNAVAILABLE", "LOADING"),
}
LIFE = [ModelState.LOADING, ModelState.READY, ModelState.UNLOADING, ModelState.UNAVAILABLE]


@pytest.mark.parametrize("before", ModelState, ids=lambda state: state.value)
@pytest.mark.parametrize("after", ModelState, ids=lambda state: state.value)
def test_the_table_has_exactly_the_moves_of_a_models_life(before: ModelState, after: ModelState) -> None:
    state = VersionState("m", "3", before, "why")
    if (before.value, after.value) in LEGAL:
        state.move(after, "because")
        assert (state.state, state.reason) == (after, "because")
        return
    with pytest.raises(IllegalTransition, match=f"model 'm' version 3 cannot go from {before.value} to {after.value}"):
        state.move(after)
    assert (state.state, state.reason) == (before, "why")


def test_a_reason_does_not_outlive_the_state_it_was_for() -> None:
    state = VersionState("m", "1", ModelState.LOADING)
    state.move(ModelState.UNAVAILABLE, "no such file")
    state.move(ModelState.LOADING)
    assert state.reason == ""


def test_an_illegal_move_is_a_conflict_with_the_servers_state() -> None:
    assert IllegalTransition("x").code is ErrorCode.FAILED_PRECONDITION


class Life(RuleBasedStateMachine):
    """Any order of events: the state follows the legal ones and ignores the others."""

    @initialize()
    def found(self) -> None:
        self.version = VersionState("m", "1")
        self.path = [ModelState.UNKNOWN]

    @rule(state=st.sampled_from(ModelState), reason=st.text(max_size=3))
    def try_to_move(self, state: ModelState, reason: str) -> None:
        if (self.path[-1].value, state.value) in LEGAL:
            self.version.move(state, reason)
            self.path.append(state)
        else:
            with pytest.raises(IllegalTransition):
                self.version.move(state, reason)

    @rule()
    def live_on(self) -> None:
        """Once through the whole life from wherever it is."""
        for state in LIFE:
            if (self.path[-1].value, state.value) in LEGAL:
                self.version.move(state)
                self.path.append(state)

    @invariant()
    def it_is_where_the_legal_moves_led(self) -> None:
        if hasattr(self, "version"):
            assert self.version.state is self.path[-1]
            assert self.path.count(ModelState.UNKNOWN) == 1


TestLife = Life.TestCase
