"""The real Triton of the package nvidia-pytriton, with a python-backend model that calls onnxruntime.

The package ships the tritonserver binary and its python backend, but not the native ONNX Runtime backend. It is started
directly on a model repository (no pytriton proxy in between) with dynamic batching on.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from .base import INSIDE, Command, Launch, Server

CONFIG = """\
name: "{name}"
backend: "python"
max_batch_size: {max_batch_size}
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {row} ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {output} ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
{batching}
"""


class Triton(Server):
    requirements = ("nvidia-pytriton==0.7.0", "onnxruntime")
    encodings = frozenset({"json", "binary"})

    def __init__(self, name: str = "triton", batching: bool = True) -> None:
        self.name = name
        self.about = f"tritonserver of nvidia-pytriton, python backend, dynamic batching {'on' if batching else 'off'}"
        self._batching = "dynamic_batching { }" if batching else ""

    @property
    def environment(self) -> Path:
        return super().environment.with_name("triton")

    def command(self, launch: Launch) -> Command:
        site = next((self.environment / "lib").glob("python3.*")) / "site-packages"
        tritonserver = site / "pytriton" / "tritonserver"
        repository = launch.directory / "repository"
        folder = repository / launch.model.name
        (folder / "1").mkdir(parents=True, exist_ok=True)
        shutil.copy(launch.file, folder / "1" / "model.onnx")
        shutil.copy(INSIDE / "triton_model.py", folder / "1" / "model.py")
        config = CONFIG.format(
            name=launch.model.name,
            max_batch_size=launch.model.max_batch_size,
            row=", ".join(map(str, launch.model.row_shape)),
            output=", ".join(map(str, launch.model.output_shape)),
            batching=self._batching,
        )
        (folder / "config.pbtxt").write_text(config)
        # The python backend looks for its stub in its own folder; the package keeps one stub for each Python version.
        backends = launch.directory / "backends"
        if not backends.exists():
            shutil.copytree(tritonserver / "backends", backends)
        version = site.parent.name.removeprefix("python")
        stub = tritonserver / "python_backend_stubs" / version / "triton_python_backend_stub"
        shutil.copy(stub, backends / "python" / stub.name)
        env = {
            "LD_LIBRARY_PATH": f"{site / 'nvidia_pytriton.libs'}:{_python_library()}",
            "PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.environment),
            "PYTHONPATH": str(site),
        }
        arguments = [
            str(tritonserver / "bin" / "tritonserver"),
            f"--model-repository={repository}",
            f"--backend-directory={backends}",
            f"--http-port={launch.port}",
            "--http-address=127.0.0.1",
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--log-verbose=0",
            "--backend-config=python,shm-default-byte-size=16777216",
        ]
        return Command(arguments, env)


def _python_library() -> str:
    return str(sysconfig.get_config_var("LIBDIR") or "")
