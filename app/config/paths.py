"""Path texts from configurations, kept inside their folder. Runs on: loader thread."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import ConfigError

PLAIN_RELATIVE = "a relative path that stays inside the model's folder"


def is_plain_relative(text: str) -> bool:
    """True for a relative path that climbs nowhere, judged by its text alone."""
    path = Path(text)
    return bool(
        path.parts and "\x00" not in text and "\\" not in text and not path.is_absolute() and ".." not in path.parts
    )


def resolve_inside(root: Path, text: str, what: str) -> Path:
    """The real path of `text` under `root`; raises ConfigError when it is absolute, climbs out or leads out by a link.

    The message never depends on what exists outside, so that nothing can be learnt from it.
    """
    if is_plain_relative(text):
        base = root.resolve()
        try:
            resolved = (base / text).resolve()
        except (OSError, RuntimeError):  # a loop of links
            resolved = base
        if resolved != base and resolved.is_relative_to(base):
            return resolved
    raise ConfigError(f"{what} {text!r} must be {PLAIN_RELATIVE}")
