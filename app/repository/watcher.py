"""Follows a repository in poll mode: what changed and has come to rest. Runs on: event loop (scan: loader thread)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ..core.errors import KernelPortError
from .model import RepositoryModel

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Changes:
    """Names of models to load, to look at again and to unload."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True, frozen=True)
class WatchState:
    """Fingerprints by model: as last seen, and as last acted upon (whether or not the load then succeeded)."""

    seen: Mapping[str, str] = field(default_factory=dict)
    applied: Mapping[str, str] = field(default_factory=dict)


def start_watching(models: Mapping[str, RepositoryModel]) -> WatchState:
    """The state after the models of the first scan have been loaded, or have failed to."""
    prints = {name: model.fingerprint for name, model in models.items()}
    return WatchState(prints, prints)


def step(state: WatchState, current: Mapping[str, str]) -> tuple[WatchState, Changes]:
    """Compare one poll's fingerprints with the state; a change counts once two polls in a row agree on it.

    So a file that is still being copied is left alone, and a model is acted upon at the latest at the second poll
    after its last byte. A model that failed is looked at again after any change of its files.
    """
    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    applied = dict(state.applied)
    for name, print_now in current.items():
        if state.seen.get(name) != print_now or applied.get(name) == print_now:
            continue
        (changed if name in applied else added).append(name)
        applied[name] = print_now
    for name in state.applied:
        if name not in current and name not in state.seen:
            removed.append(name)
            del applied[name]
    return WatchState(dict(current), applied), Changes(tuple(added), tuple(changed), tuple(removed))


Scan = Callable[[], Awaitable[Mapping[str, RepositoryModel]]]
Apply = Callable[[Changes, Mapping[str, RepositoryModel]], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]


async def watch(state: WatchState, scan: Scan, apply: Apply, period_s: float, sleep: Sleep) -> None:
    """Poll until cancelled. A repository that cannot be read changes nothing and is tried again at the next poll."""
    while True:
        await sleep(period_s)
        try:
            models = await scan()
        except (KernelPortError, OSError) as error:
            _log.warning("the repository cannot be read, its models stay as they are: %s", error)
            continue
        state, changes = step(state, {name: model.fingerprint for name, model in models.items()})
        if changes:
            await apply(changes, models)
