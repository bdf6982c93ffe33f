"""The legal moves of a model version's state. Runs on: anywhere (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import IllegalTransition
from ..core.model import ModelState

_MOVES: dict[ModelState, frozenset[ModelState]] = {
    ModelState.UNKNOWN: frozenset({ModelState.LOADING}),
    ModelState.LOADING: frozenset({ModelState.READY, ModelState.UNAVAILABLE}),
    ModelState.READY: frozenset({ModelState.UNLOADING}),
    ModelState.UNLOADING: frozenset({ModelState.UNAVAILABLE}),
    ModelState.UNAVAILABLE: frozenset({ModelState.LOADING}),
}

UNLOADED = "unloaded"


@dataclass(slots=True)
class VersionState:
    """State of one version with the reason for it.

    A READY version that is loaded anew stays READY: the old copy serves until the new one has taken over, and when
    the new one fails the reason says so while the state stays.
    """

    name: str
    version: str
    state: ModelState = ModelState.UNKNOWN
    reason: str = ""

    def move(self, state: ModelState, reason: str = "") -> None:
        """Go to `state`; raises IllegalTransition for a move that the table does not have."""
        if state not in _MOVES[self.state]:
            raise IllegalTransition(
                f"model '{self.name}' version {self.version} cannot go from {self.state.value} to {state.value}"
            )
        self.state = state
        self.reason = reason
