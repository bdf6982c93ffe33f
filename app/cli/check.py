"""`check`: load every model as `serve` would, tell what is wrong, and serve nothing. Runs on: anywhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import orjson
from rich.markup import escape

from ..backends.probe import cuda_device_count
from ..config.server import ServerSettings
from ..core.errors import KernelPortError
from ..devices.cpu import effective_cpus
from ..devices.select import resolve_device
from ..lifecycle.loaded import LoadedVersion
from ..lifecycle.loader import Loader
from ..repository.model import RepositoryModel
from ..repository.repository import ModelRepository
from .console import output
from .options import settings_from, settings_options
from .table import duration_text

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim", "ok": "green"}
_OPTIONS = ("model_path", "model_name", "device", "backend_config", "max_batch_size", "intra_op_threads", "config")


@dataclass(slots=True, frozen=True)
class Finding:
    """One thing to know about a model; `level` is error, warning, note or ok. `model` empty: about the repository."""

    level: str
    model: str
    version: str
    text: str


@click.command()
@settings_options(only=_OPTIONS)
@click.option("--no-load", is_flag=True, help="Read folders and configurations only; load no model.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(no_load: bool, as_json: bool, **flags: Any) -> int:
    """Check the models in MODELS as a server would load them, without serving.

    Exit code 0: everything can be served; 1: at least one error; 2: MODELS cannot be read at all.
    """
    settings = settings_from(flags)
    if not settings.models and not settings.model_path:
        raise click.UsageError("give a model repository (MODELS), a model file, or --model-path")
    with _quiet_logs():
        findings = list(_check(settings, loads=not no_load))
    if as_json:
        click.echo(orjson.dumps([asdict(finding) for finding in findings], option=orjson.OPT_INDENT_2))
    else:
        _print(findings)
    return 1 if any(finding.level == "error" for finding in findings) else 0


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What the server would log up to a warning is a finding here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _check(settings: ServerSettings, loads: bool) -> Iterator[Finding]:
    repository = ModelRepository(
        settings.repositories, Path(settings.model_path) if settings.model_path else None, settings.model_name
    )
    device = resolve_device(settings.device, cuda_device_count)
    models = repository.scan()
    for warning in repository.warnings:
        yield Finding("warning", "", "", warning)
    if not models:
        yield Finding("error", "", "", "there is no model here; see docs/quickstart.md for the layout of a repository")
    loader = Loader(settings, device, effective_cpus())
    try:
        for model in models.values():
            yield from _check_model(model, loader if loads else None)
    finally:
        loader.close()


def _check_model(model: RepositoryModel, loader: Loader | None) -> Iterator[Finding]:
    for warning in model.warnings:
        yield Finding("warning", model.name, "", warning)
    if model.problem:
        yield Finding("error", model.name, "", model.problem)
        return
    for version in model.chosen.missing:
        yield Finding("warning", model.name, version, "version_policy asks for this version, which is not there")
    for version in model.chosen.versions:
        if loader is None:
            yield Finding("ok", model.name, version, "configuration and files can be read")
            continue
        try:
            loaded = loader.load(model, version)
        except KernelPortError as error:
            yield Finding("error", model.name, version, str(error))
            continue
        loaded.close()
        yield from _told(model, version, loaded)


def _told(model: RepositoryModel, version: str, loaded: LoadedVersion) -> Iterator[Finding]:
    spec = loaded.spec
    batching = f"max_batch_size {spec.max_batch_size}" if spec.max_batch_size else "no batch dimension"
    merging = "requests are merged" if loaded.batch_policy.merges else "requests run one by one"
    facts = (f"{spec.backend} on {', '.join(loaded.permits)}", batching, merging, duration_text(loaded.load_ns / 1e9))
    yield Finding("ok", model.name, version, ", ".join(facts))
    for tensor in spec.inputs:
        yield Finding("note", model.name, version, f"input {tensor.describe()}")
    for tensor in spec.outputs:
        yield Finding("note", model.name, version, f"output {tensor.describe()}")
    for note in loaded.notes:
        if note not in model.warnings:
            yield Finding("note", model.name, version, note)


def _print(findings: Sequence[Finding]) -> None:
    console = output()
    for finding in findings:
        subject = " ".join(part for part in (finding.model, finding.version) if part)
        style = _STYLES[finding.level]
        lines = finding.text.splitlines() or [""]
        console.print(f"[{style}]{finding.level:<8}[/]{escape(f'{subject}: ' if subject else '')}{escape(lines[0])}")
        for line in lines[1:]:
            console.print(f"        {escape(line)}")
    counts = {level: sum(finding.level == level for finding in findings) for level in ("error", "warning")}
    models = len({finding.model for finding in findings if finding.model})
    console.print(
        f"{_plural(models, 'model')}, {_plural(counts['error'], 'error')}, {_plural(counts['warning'], 'warning')}"
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
