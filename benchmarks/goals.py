"""The goals that the project has set itself, and whether a run meets them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .report import Line


@dataclass(frozen=True, slots=True)
class Goal:
    """`server` must reach `factor` times what `against` reaches: requests per second, or for p50 the inverse."""

    factor: float
    against: str
    server: str = "kernelport"
    measure: str = "requests/s"  # or "p50"

    def describe(self) -> str:
        what = "the throughput" if self.measure == "requests/s" else "as short a p50"
        return f"{self.factor:g} x {what} of {self.against}"


def reached(goal: Goal, lines: Sequence[Line]) -> float | None:
    """The factor that a run reached, or None when one of the two was not measured."""
    found = {line.server: line for line in lines if not line.failure}
    own, other = found.get(goal.server), found.get(goal.against)
    if own is None or other is None:
        return None
    if goal.measure == "p50":
        return other.p50_us / own.p50_us if own.p50_us else None
    return own.requests_per_s / other.requests_per_s if other.requests_per_s else None


def verdicts(goals: Sequence[Goal], lines: Sequence[Line]) -> list[list[str]]:
    """Rows of goal, reached factor, verdict."""
    rows = []
    for goal in goals:
        factor = reached(goal, lines)
        if factor is None:
            rows.append([goal.describe(), "-", "not measured"])
        else:
            rows.append([goal.describe(), f"{factor:.2f} x", "met" if factor >= goal.factor else "**missed**"])
    return rows
