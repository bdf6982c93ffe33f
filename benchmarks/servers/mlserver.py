"""MLServer 1.7 with a custom runtime on onnxruntime, in the fastest of the configurations that were tried.

Tried and slower: a worker process (`parallel_workers: 1`, about 2,050 tiny requests/s instead of 2,350), and a
`max_batch_time` under 2 ms. Batching always waits that long for more, so one connection is served better without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .base import INSIDE, Command, Launch, Server


class MLServer(Server):
    requirements = ("mlserver==1.7.1", "onnxruntime", "numpy", "uvloop<0.22")

    def __init__(self, name: str = "mlserver", batching: bool = True) -> None:
        self.name = name
        self.about = f"MLServer, custom runtime, no worker processes, adaptive batching {'on' if batching else 'off'}"
        self._batching = batching

    @property
    def environment(self) -> Path:
        return super().environment.with_name("mlserver")

    def command(self, launch: Launch) -> Command:
        settings = {
            "debug": False,
            "parallel_workers": 0,
            "gzip_enabled": False,
            "metrics_endpoint": None,
            "host": "127.0.0.1",
            "http_port": launch.port,
            "grpc_port": 0,
        }
        model: dict[str, Any] = {
            "name": launch.model.name,
            "implementation": "mlserver_runtime.OnnxRuntime",
            "parameters": {"uri": str(launch.file), "version": "1"},
        }
        if self._batching:
            model |= {"max_batch_size": launch.model.max_batch_size, "max_batch_time": 0.005}
        (launch.directory / "settings.json").write_text(json.dumps(settings))
        (launch.directory / "model-settings.json").write_text(json.dumps(model))
        executable = str(self.environment / "bin" / "mlserver")
        return Command([self.python, executable, "start", str(launch.directory)], {"PYTHONPATH": str(INSIDE)})
