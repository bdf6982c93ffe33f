"""What `serve` shows while models load and once it is up. Runs on: event loop, progress in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from .. import __version__
from ..serving.overview import ModelRow
from .table import duration_text, models_table, summary_text, urls_text

_LINE_EVERY_S = 5.0


class StartScreen:
    """A spinner on a terminal, else a line every five seconds, until the table of models is printed."""

    def __init__(
        self,
        console: Console,
        now_s: Callable[[], float] = time.monotonic,
        line_every_s: float = _LINE_EVERY_S,
    ) -> None:
        self._console = console
        self._now_s = now_s
        self._line_every_s = line_every_s
        self._loading: dict[str, float] = {}
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self._ticker: threading.Thread | None = None

    def loading(self, label: str) -> None:
        """A model ("resnet 3") has begun to load."""
        with self._lock:
            self._loading[label] = self._now_s()
        if self._ticker is None and not self._finished.is_set():
            self._ticker = threading.Thread(target=self._tick, name="start-screen", daemon=True)
            self._ticker.start()

    def settled(self, label: str) -> None:
        """That model is ready, or has failed."""
        with self._lock:
            self._loading.pop(label, None)

    def started(self, rows: Sequence[ModelRow], urls: Sequence[tuple[str, str]]) -> None:
        """Everything that loads at start is settled, and the server listens."""
        self.close()
        self._console.print(f"[bold]KernelPort {__version__}[/]: {summary_text(rows)}")
        if rows:
            self._console.print()
            self._console.print(models_table(rows))
        self._console.print()
        self._console.print(escape(urls_text(urls)), soft_wrap=True)

    def close(self) -> None:
        """End the progress display; harmless when there is none."""
        self._finished.set()
        if self._ticker is not None:
            self._ticker.join()
            self._ticker = None

    def progress_text(self) -> str:
        """`loading resnet 3 (12.0 s), bert 1 (3.1 s)`; empty when nothing loads."""
        now_s = self._now_s()
        with self._lock:
            parts = [f"{label} ({duration_text(now_s - since_s)})" for label, since_s in self._loading.items()]
        return f"loading {', '.join(parts)}" if parts else ""

    def _tick(self) -> None:
        if self._console.is_terminal:
            self._spin()
            return
        while not self._finished.wait(self._line_every_s):
            text = self.progress_text()
            if text:
                self._console.print(escape(text))

    def _spin(self) -> None:
        with self._console.status("loading models") as status:
            while not self._finished.wait(0.2):
                status.update(escape(self.progress_text() or "starting"))
