"""Which versions of a model are served. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .part import Part, Positive


class LatestPolicy(Part):
    """The highest versions."""

    num_versions: Positive = Field(default=1, description="How many of the highest versions are served.")


class AllPolicy(Part):
    """Every version there is."""


class SpecificPolicy(Part):
    """The listed versions."""

    versions: tuple[Positive, ...] = Field(default=(), min_length=1, description="Versions to serve.")


class VersionPolicy(Part):
    """Exactly one of `latest`, `all`, `specific`."""

    latest: LatestPolicy | None = Field(
        default=None, description="Serve the highest versions (the default: the highest one)."
    )
    all: AllPolicy | None = Field(default=None, description="Serve every version: {}.")
    specific: SpecificPolicy | None = Field(default=None, description="Serve the listed versions.")

    @model_validator(mode="after")
    def _exactly_one(self) -> VersionPolicy:
        if (self.latest, self.all, self.specific).count(None) != 2:
            raise PydanticCustomError("version_policy", "give exactly one of latest, all and specific")
        return self


@dataclass(slots=True, frozen=True)
class VersionChoice:
    """The versions to serve, ascending, and the listed ones that do not exist."""

    versions: tuple[str, ...]
    missing: tuple[str, ...] = ()


def choose_versions(policy: VersionPolicy | None, available: Iterable[str]) -> VersionChoice:
    """Apply `policy` (None: the latest one) to the version names found on disk."""
    ordered = sorted(available, key=int)
    if policy is None:
        return VersionChoice(tuple(ordered[-1:]))
    if policy.specific is not None:
        wanted = [str(one) for one in sorted(set(policy.specific.versions))]
        return VersionChoice(
            tuple(one for one in wanted if one in ordered), tuple(one for one in wanted if one not in ordered)
        )
    if policy.latest is not None:
        return VersionChoice(tuple(ordered[-policy.latest.num_versions :]))
    return VersionChoice(tuple(ordered))
