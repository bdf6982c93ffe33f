"""Prometheus text out of families of ready-made sample lines, classic 0.0.4 or OpenMetrics. Runs on: anywhere (pure).

prometheus_client's own writer is not used: it forces `_total` on every counter, which Triton's names do not have, and
takes microseconds a sample where 200 models have 45,000.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class ExpositionFormat(Enum):
    """What a scraper can read; the value is the Content-Type of the answer."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class Family:
    """One metric family. `name` is without `_total`; `lines` are finished samples, no newline at the end of each."""

    name: str
    kind: str  # counter, gauge, histogram, summary, unknown; bare_counter: samples carry the name without `_total`
    help: str
    lines: list[str] = field(default_factory=list)


class Sample(Protocol):
    """A sample of prometheus_client."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> dict[str, str]: ...
    @property
    def value(self) -> float: ...


class Metric(Protocol):
    """A family of prometheus_client."""

    name: str
    documentation: str
    type: str

    @property
    def samples(self) -> Iterable[Sample]: ...


def negotiate(accept: str) -> ExpositionFormat:
    """OpenMetrics when the Accept header names it at least as dear as plain text; text in every other case."""
    wishes = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for entry in accept.lower().split(","):
        media_type, _, parameters = entry.partition(";")
        media_type = media_type.strip()
        if media_type in wishes:
            wishes[media_type] = max(wishes[media_type], _quality(parameters))
    openmetrics = wishes["application/openmetrics-text"]
    if openmetrics > 0 and openmetrics >= wishes["text/plain"]:
        return ExpositionFormat.OPENMETRICS
    return ExpositionFormat.TEXT


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def escape_label(value: str) -> str:
    """A label value as it stands between the quotes."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def labels_text(labels: dict[str, str]) -> str:
    """`{a="1",b="2"}`, or nothing for no labels."""
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{escape_label(value)}"' for key, value in labels.items()) + "}"


def number_text(value: float) -> str:
    """A sample value; whole numbers without exponent or fraction, so that counters read as they are."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def merge_metrics(metrics: Iterable[Metric]) -> list[Family]:
    """Families of prometheus_client, those of one name joined: equal samples add up, others stand side by side.

    So the FastAPI instrumentator and the infer lane share their http_* families. `_created` samples are dropped.
    """
    merged: dict[str, tuple[Metric, dict[tuple[str, str], float]]] = {}
    for metric in metrics:
        values = merged.setdefault(metric.name, (metric, {}))[1]
        for sample in metric.samples:
            if sample.name.endswith("_created"):
                continue
            key = (sample.name, labels_text(sample.labels))
            values[key] = values.get(key, 0.0) + sample.value
    return [
        Family(
            name,
            metric.type,
            metric.documentation,
            [f"{sample}{labels} {number_text(value)}" for (sample, labels), value in values.items()],
        )
        for name, (metric, values) in merged.items()
    ]


def write(families: Iterable[Family], form: ExpositionFormat) -> bytes:
    """The exposition; families without samples are left out."""
    is_openmetrics = form is ExpositionFormat.OPENMETRICS
    parts: list[str] = []
    for family in families:
        if not family.lines:
            continue
        name, kind = _header(family, is_openmetrics)
        text = family.help.replace("\\", r"\\").replace("\n", r"\n")
        if is_openmetrics:
            text = text.replace('"', r"\"")
        parts.append(f"# HELP {name} {text}\n# TYPE {name} {kind}")
        parts.extend(family.lines)
    if is_openmetrics:
        parts.append("# EOF")
    parts.append("")
    return "\n".join(parts).encode()


def _header(family: Family, is_openmetrics: bool) -> tuple[str, str]:
    """Name and type of a family's comment lines, which the two formats write differently."""
    name, kind = family.name, family.kind
    if kind == "bare_counter":
        # OpenMetrics knows no counter without `_total`; its type for such samples is `unknown`.
        return name, "unknown" if is_openmetrics else "counter"
    if is_openmetrics:
        return name, kind
    if kind == "counter":
        return f"{name}_total", kind
    if kind == "info":
        return f"{name}_info", "gauge"
    return name, {"unknown": "untyped", "stateset": "gauge"}.get(kind, kind)
