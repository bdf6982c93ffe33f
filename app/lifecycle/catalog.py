"""What each model name means right now. Runs on: event loop; read on every request without a lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.errors import ModelNotFound, ModelNotReady
from .served_model import PinnedModel, ServedModel


@dataclass(slots=True, frozen=True)
class CatalogEntry:
    """Served versions of one name; `default` is the one for requests that name none (the highest)."""

    versions: Mapping[str, ServedModel] = field(default_factory=dict)
    default: ServedModel | None = None
    is_loading: bool = False

    @classmethod
    def of(cls, versions: Mapping[str, ServedModel], is_loading: bool = False) -> CatalogEntry:
        """The entry for these versions, ascending."""
        ordered = dict(sorted(versions.items(), key=lambda item: int(item[0])))
        return cls(ordered, next(reversed(ordered.values()), None), is_loading)


class Catalog:
    """Name to entry; the ModelManager alone replaces entries, whole."""

    def __init__(self) -> None:
        self._entries: dict[str, CatalogEntry] = {}

    def publish(self, name: str, entry: CatalogEntry) -> None:
        """From now on the name means this."""
        self._entries[name] = entry

    def versions(self, name: str) -> Mapping[str, ServedModel]:
        """The versions of a name that take requests, ascending; empty for an unknown name."""
        entry = self._entries.get(name)
        return {} if entry is None else entry.versions

    def find(self, name: str, version: str | None) -> ServedModel | PinnedModel:
        """The version that answers; raises ModelNotFound (404) or, while its first load runs, ModelNotReady (503)."""
        entry = self._entries.get(name)
        if entry is not None:
            if version is None:
                if entry.default is not None:
                    return entry.default
            else:
                served = entry.versions.get(version)
                if served is not None:
                    return served.pinned
        raise self._absent(name, version, entry)

    def served(self) -> list[ServedModel]:
        """All versions that take requests, by name, then version."""
        return [
            served for name in sorted(self._entries) for served in self._entries[name].versions.values()
        ]  # fmt: skip

    def _absent(self, name: str, version: str | None, entry: CatalogEntry | None) -> ModelNotFound | ModelNotReady:
        shown = name if len(name) <= 128 else name[:128] + "..."
        if entry is None:
            return ModelNotFound(f"Request for unknown model: '{shown}' is not found")
        if entry.is_loading:
            return ModelNotReady(f"model '{shown}' is loading")
        if version is None or not entry.versions:
            return ModelNotFound(f"Request for unknown model: '{shown}' has no available versions")
        have = ", ".join(entry.versions)
        return ModelNotFound(
            f"Request for unknown model: '{shown}' version {version[:32]} is not found; served: {have}"
        )
