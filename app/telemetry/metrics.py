"""Everything `/metrics` shows, rendered at scrape from counters that others keep. Runs on: event loop (capture)."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from ..core.model import ModelState, ModelStatus
from .collectors import LaneCollector, MachineCollector
from .exposition import Family, escape_label, labels_text, merge_metrics, negotiate, number_text, write
from .families import KSERVE, NATIVE, TRITON, ModelFamily, histogram_samples, histogram_values
from .http_stats import HttpStats
from .loop_lag import LoopLag
from .stats import LATENCY_BOUNDS_NS, ModelStats

VOCABULARIES: tuple[str, ...] = ("triton", "kserve")


class ModelIdentity(Protocol):
    """What of a model's spec the labels need."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...


class GateReadings(Protocol):
    """What the gate knows about the HTTP front."""

    http_stats: HttpStats
    connections: int
    bytes_in_flight: int
    in_flight: int
    is_open: bool


Models = Callable[[], Iterable[tuple[ModelIdentity, ModelStats]]]
Statuses = Callable[[], Iterable[ModelStatus]]


@dataclass(slots=True, frozen=True)
class Capture:
    """Numbers that belong together, copied on the event loop and rendered anywhere."""

    models: dict[tuple[str, str], ModelStats]
    statuses: tuple[ModelStatus, ...]
    others: list[Family]


class Metrics:
    """The metrics of one server: own registry, no module-level state.

    `registry` holds process and HTTP collectors; the FastAPI instrumentator is given it too. Model counters do not
    pass through prometheus_client at all. `vocabularies` names the foreign names shown beside ours.
    """

    def __init__(
        self,
        models: Models,
        *,
        version: str = "",
        statuses: Statuses | None = None,
        gate: GateReadings | None = None,
        loop_lag: LoopLag | None = None,
        vocabularies: Collection[str] = VOCABULARIES,
    ) -> None:
        unknown = sorted(set(vocabularies) - set(VOCABULARIES))
        if unknown:
            raise ValueError(f"metric vocabulary {unknown[0]!r} is unknown; use {' or '.join(VOCABULARIES)}")
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        if gate is not None:
            self.registry.register(LaneCollector(gate.http_stats))
        if "triton" in vocabularies:
            self.registry.register(MachineCollector())
        self._models = models
        self._statuses = statuses
        self._gate = gate
        self._loop_lag = loop_lag
        self._per_version: tuple[ModelFamily, ...] = NATIVE + (TRITON if "triton" in vocabularies else ())
        self._per_name: tuple[ModelFamily, ...] = KSERVE if "kserve" in vocabularies else ()
        self._build = {"version": version, "python": platform.python_version()}
        self._templates: dict[str, list[str]] = {}

    async def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """Body and Content-Type for one scrape; the numbers are copied here, the text is made on a thread.

        Requests therefore never wait for a scrape, however many models there are.
        """
        return await asyncio.to_thread(self.render, self.capture(), accept)

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """The same on the calling thread."""
        return self.render(self.capture(), accept)

    def capture(self) -> Capture:
        """All numbers as they are now; event loop only. Counters that come twice are counted once."""
        models: dict[tuple[str, str], ModelStats] = {}
        copied: set[int] = set()
        for spec, stats in self._models():
            if id(stats) in copied:
                continue
            copied.add(id(stats))
            known = models.get((spec.name, spec.version))
            if known is None:
                models[spec.name, spec.version] = stats.copy()
            else:  # the old load of a version drains beside the new one: still one series
                known.add(stats)
        statuses = tuple(self._statuses()) if self._statuses is not None else ()
        return Capture(models, statuses, [*self._server_families(), *merge_metrics(self.registry.collect())])

    def render(self, capture: Capture, accept: str = "") -> tuple[bytes, str]:
        """The exposition of a capture and its Content-Type."""
        form = negotiate(accept)
        families = [*self._model_families(capture.models), _states(capture.statuses), *capture.others]
        return write(families, form), form.value

    def _model_families(self, models: Mapping[tuple[str, str], ModelStats]) -> list[Family]:
        by_name: dict[str, ModelStats] = {}
        if self._per_name:
            for (name, _), stats in models.items():
                if name in by_name:
                    by_name[name] = by_name[name].copy()
                    by_name[name].add(stats)
                else:
                    by_name[name] = stats
        versions = {
            f'model="{escape_label(name)}",version="{escape_label(version)}"': stats
            for (name, version), stats in models.items()
        }
        names = {f'model_name="{escape_label(name)}"': stats for name, stats in by_name.items()}
        templates = self._templates
        self._templates = fresh = {
            labels: templates.get(labels) or [family.template(labels) for family in group]
            for group, labelled in ((self._per_version, versions), (self._per_name, names))
            for labels in labelled
        }
        return _fill(self._per_version, versions, fresh) + _fill(self._per_name, names, fresh)

    def _server_families(self) -> list[Family]:
        build = f"kernelport_build_info{labels_text(self._build)} 1"
        families = [Family("kernelport_build_info", "gauge", "Version of the server and of Python.", [build])]
        if self._loop_lag is not None:
            families += _lag(self._loop_lag)
        if self._gate is not None:
            families += _gate(self._gate)
        return families


def _fill(
    group: Sequence[ModelFamily], labelled: Mapping[str, ModelStats], templates: Mapping[str, Sequence[str]]
) -> list[Family]:
    """The families of a group with one block of lines per model."""
    return [
        Family(
            family.name,
            family.kind,
            family.help,
            [templates[labels][index] % tuple(family.values(stats)) for labels, stats in labelled.items()],
        )
        for index, family in enumerate(group)
    ]


def _states(statuses: Iterable[ModelStatus]) -> Family:
    """One series per state, 1 for the one the version is in: the form alerts can count."""
    lines: dict[str, int] = {}
    for status in statuses:
        identity = {"model": status.name, "version": status.version}
        for state in ModelState:
            lines[f"kernelport_model_state{labels_text({**identity, 'state': state.value})}"] = status.state is state
    return Family(
        "kernelport_model_state",
        "gauge",
        "1 for the state a model version is in.",
        [f"{series} {value:d}" for series, value in lines.items()],
    )


def _lag(lag: LoopLag) -> list[Family]:
    bounds = (bound / 1e9 for bound in LATENCY_BOUNDS_NS)
    values = histogram_values(lag.lateness, 1_000_000_000)
    name = "kernelport_event_loop_lag_seconds"
    lines = [
        f"{name}{suffix}{f'{{{labels}}}' if labels else ''} {value}"
        for (suffix, labels), value in zip(histogram_samples(bounds), values, strict=True)
    ]
    return [
        Family(name, "histogram", "How late the event loop ran a timer, sampled four times a second.", lines),
        Family(
            "kernelport_event_loop_lag_max_seconds",
            "gauge",
            "The worst lateness since the start.",
            [f"kernelport_event_loop_lag_max_seconds {number_text(lag.max_ns / 1e9)}"],
        ),
    ]


def _gate(gate: GateReadings) -> list[Family]:
    readings = (
        ("kernelport_http_connections", "Open client connections.", gate.connections),
        (
            "kernelport_http_bytes_in_flight",
            "Bytes of requests and replies that the server holds.",
            gate.bytes_in_flight,
        ),
        ("kernelport_http_in_flight_requests", "Inferences between receipt and reply.", gate.in_flight),
        (
            "kernelport_admission_open",
            "1 while new inferences are admitted, 0 while the server stops.",
            int(gate.is_open),
        ),
    )
    return [Family(name, "gauge", text, [f"{name} {value}"]) for name, text, value in readings]
