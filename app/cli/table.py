"""Tables for people: the models of a server and where it listens. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from ..serving.overview import ModelRow

_STATE_STYLES = {"READY": "green", "LOADING": "yellow", "UNLOADING": "yellow", "UNAVAILABLE": "red"}


def models_table(rows: Sequence[ModelRow], show_device: bool = True) -> Table:
    """The models with their states; a column that would be empty is left out."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    has_reason = any(row.reason for row in rows)
    for header in ("Model", "Version", "Backend" if show_device else "Platform"):
        table.add_column(header, overflow="fold")
    if show_device:
        table.add_column("Device")
        table.add_column("Load", justify="right")
    table.add_column("State")
    if has_reason:
        table.add_column("Reason", overflow="fold")
    for row in rows:
        cells = [escape(row.name), escape(row.version or "-"), escape(row.backend or "-")]
        if show_device:
            cells += [escape(row.device or "-"), duration_text(row.load_s)]
        style = _STATE_STYLES.get(row.state, "")
        cells.append(f"[{style}]{escape(row.state)}[/]" if style else escape(row.state))
        if has_reason:
            cells.append(escape(row.reason))
        table.add_row(*cells)
    return table


def duration_text(seconds: float | None) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`; a dash for nothing."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def summary_text(rows: Sequence[ModelRow]) -> str:
    """`3 models ready`, `2 models ready, 1 not ready`."""
    ready = sum(row.state == "READY" for row in rows)
    text = f"{ready} model{'' if ready == 1 else 's'} ready"
    waiting = len(rows) - ready
    return f"{text}, {waiting} not ready" if waiting else text


def urls_text(urls: Sequence[tuple[str, str]]) -> str:
    """What is where, a line each: a word ("infer", "docs") and a URL."""
    width = max((len(label) for label, _ in urls), default=0)
    return "\n".join(f"{label:<{width}}  {url}" for label, url in urls)
