"""Where the command line writes: results to stdout, everything said about them to stderr. Runs on: anywhere."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console
from rich.markup import escape

_PLAIN_WIDTH = 200  # a log file has no width; wrapping would break lines that people grep


def _console(stream: TextIO) -> Console:
    is_terminal = stream.isatty()
    width = None if is_terminal or "COLUMNS" in os.environ else _PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=not is_terminal)


def output() -> Console:
    """The console for results (stdout)."""
    return _console(sys.stdout)


def messages() -> Console:
    """The console for notes, progress and errors (stderr)."""
    return _console(sys.stderr)


def complain(text: str) -> None:
    """Print one error message, its first words in red on a terminal."""
    messages().print(f"[bold red]Error:[/] {escape(text)}")
