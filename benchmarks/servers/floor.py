"""The featureless floor (benchmarks/floor.py), with either of two JSON decoders."""

from __future__ import annotations

from .base import ROOT, Command, Launch, Server


class Floor(Server):
    """No checks, limits, metrics or errors: what remains is what any Python server of this shape must pay."""

    encodings = frozenset({"json", "binary"})

    def __init__(self, name: str = "floor", decoder: str = "simdjson") -> None:
        self.name = name
        self.about = f"featureless server, JSON by {decoder}"
        self._decoder = decoder

    def command(self, launch: Launch) -> Command:
        arguments = [self.python, "-m", "benchmarks.floor", str(launch.file), "--port", str(launch.port)]
        options = ["--decoder", self._decoder, "--max-batch-size", str(launch.model.max_batch_size)]
        return Command([*arguments, *options], {"PYTHONPATH": str(ROOT.parent)})
