"""Findings of the validator as lines a person can act on. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from .yaml_text import KeyPath

LineOf = Callable[[KeyPath], int | None]
_KEY_FINDINGS = ("unknown_key", "empty_key")
_SHOWS_VALUE = ("_type", "_parsing", "literal_error", "_than_equal", "_than", "_too_short")


def explain(error: ValidationError, source: str, line_of: LineOf | None = None) -> list[str]:
    """One line per finding: `file:line: key.path: what is wrong`."""
    lines = []
    for finding in error.errors(include_url=False):
        path = tuple(finding["loc"])
        if finding["type"] in _KEY_FINDINGS:
            exact: KeyPath = (*path, str(finding.get("ctx", {}).get("key", "")).strip("'\""))
        else:
            exact = path
        line = line_of(exact) if line_of is not None else None
        place = source if line is None else f"{source}:{line}"
        dotted = ".".join(str(part) for part in path)
        lines.append(f"{place}: {dotted + ': ' if dotted else ''}{reason(finding)}")
    return lines


def reason(finding: Any) -> str:
    """What is wrong, in the words of a configuration file."""
    message = str(finding["msg"]).removeprefix("Value error, ").replace("a valid tuple", "a list")
    message = message.replace("a valid dictionary or instance of ", "a block of ")
    message = message.replace("a valid dictionary", "a mapping")
    if finding["type"].endswith(_SHOWS_VALUE):
        message += f", not {_short(finding['input'])}"
    return message[:1].lower() + message[1:]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
