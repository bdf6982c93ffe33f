"""The models of a server as lines for people. Runs on: event loop."""

from __future__ import annotations

from dataclasses import dataclass

from .control import ControlPlane


@dataclass(slots=True, frozen=True)
class ModelRow:
    """One model version as a line of the table; `load_s` None when it was not loaded."""

    name: str
    version: str
    backend: str = ""
    device: str = ""
    load_s: float | None = None
    state: str = ""
    reason: str = ""


def model_rows(control: ControlPlane) -> list[ModelRow]:
    """Every line of the index, with what is known about the versions that serve."""
    served = {(one.spec.name, one.spec.version): one for one in control.served()}
    rows: list[ModelRow] = []
    for status in control.index():
        model = served.get((status.name, status.version))
        if model is None:
            rows.append(ModelRow(status.name, status.version, state=status.state.value, reason=status.reason))
            continue
        rows.append(
            ModelRow(
                status.name,
                status.version,
                model.spec.backend,
                ", ".join(model.loaded.permits),
                model.stats.load_ns / 1e9,
                status.state.value,
                status.reason,
            )
        )
    return rows
