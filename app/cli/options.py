"""The options of `serve`, made from the fields of `ServerSettings`. Runs on: anywhere (pure)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, get_args, get_origin

import click

from ..config.server import ServerSettings
from ..config.settings import load_settings
from ..config.sizes import format_bytes

# Variables of the client commands; `serve` must not take them for misspelt options of its own.
CLIENT_VARIABLES = frozenset({"KERNELPORT_URL"})
_POSITIONAL = "models"


def settings_options(only: Collection[str] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds one option per field of ServerSettings (those in `only`), and MODELS; values arrive by field name."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, field in reversed(ServerSettings.model_fields.items()):
            if name != _POSITIONAL and (only is None or name in only):
                command = _option(name, field.annotation, field.default, field.description or "")(command)
        return click.argument(_POSITIONAL, nargs=-1, metavar="[MODELS]...")(command)

    return decorate


def settings_from(flags: Mapping[str, Any]) -> ServerSettings:
    """The settings of this run: what was typed, over the environment, over the file; raises ConfigError."""
    typed = {name: value for name, value in flags.items() if value is not None and value != ()}
    environment = {name: value for name, value in os.environ.items() if name not in CLIENT_VARIABLES}
    return load_settings(typed, environment)


def flag(name: str) -> str:
    """`max_batch_size` to `--max-batch-size`."""
    return "--" + name.replace("_", "-")


def _option(name: str, annotation: Any, default: Any, text: str) -> Callable[[Any], Any]:
    """One option without a value of its own: absent means the environment, the file or the default decides."""
    kind = _kind(annotation)
    if kind is bool:
        shown = f"{text}  [default: {'on' if default else 'off'}]"
        return click.option(f"{flag(name)}/--no-{name.replace('_', '-')}", name, default=None, help=shown)
    if kind is tuple:
        return click.option(flag(name), name, multiple=True, metavar="TEXT", help=f"{text} Repeatable.")
    return click.option(
        flag(name), name, default=None, metavar=_metavar(name, annotation), help=text + _default_text(name, default)
    )


def _kind(annotation: Any) -> Any:
    """bool, tuple, or whatever else lies under Annotated."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return get_origin(annotation) or annotation


def _metavar(name: str, annotation: Any) -> str:
    kind = _kind(annotation)
    if kind is Literal:
        return "|".join(get_args(annotation))
    if name.endswith(("_bytes", "_rate")):
        return "BYTES"
    if kind is int or kind is float:
        return "SECONDS" if name.endswith(("_s", "_secs")) else "NUMBER"
    return "PATH" if name in ("config", "model_path", "uds") else "TEXT"


def _default_text(name: str, default: Any) -> str:
    if default == "" or default is None:
        return ""
    return f"  [default: {format_bytes(default) if name.endswith('_bytes') else default}]"
