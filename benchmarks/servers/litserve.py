"""LitServe 0.2 with its batching loop, one worker process.

Tried and slower: a shorter batch timeout (0: 680 tiny requests/s, 1 ms: 1,000, 5 ms: 1,180); `fast_queue` is equal.
"""

from __future__ import annotations

from pathlib import Path

from .base import INSIDE, Command, Launch, Server


class LitServe(Server):
    requirements = ("litserve==0.2.19", "onnxruntime", "numpy")

    # Its batching loop polls: about a seventh of a core while nobody asks.
    busy_when_idle = True

    def __init__(self, name: str = "litserve", batching: bool = True) -> None:
        self.name = name
        self.about = f"LitServe, one worker, batching {'with a wait of 5 ms' if batching else 'off'}"
        self._batching = batching

    @property
    def environment(self) -> Path:
        return super().environment.with_name("litserve")

    def command(self, launch: Launch) -> Command:
        script = str(INSIDE / "litserve_app.py")
        max_batch_size = launch.model.max_batch_size if self._batching else 1
        arguments = [str(launch.file), launch.model.name, str(launch.port), str(max_batch_size)]
        return Command([self.python, script, *arguments])
