"""Where the benchmarks print: results on standard output, progress on standard error."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

Say = Callable[[str], None]

output = Console(markup=False, highlight=False, soft_wrap=True)
_progress = Console(stderr=True, style="dim", markup=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line of progress."""
    _progress.print(text)
