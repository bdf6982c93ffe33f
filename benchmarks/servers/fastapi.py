"""A plain FastAPI route that calls onnxruntime, without batching: what a team writes on the first day."""

from __future__ import annotations

from .base import INSIDE, Command, Launch, Server


class FastAPIRoute(Server):
    name = "fastapi"
    about = "one async FastAPI route, orjson both ways, no batching, uvicorn with uvloop"
    requirements = ("fastapi", "uvicorn", "httptools", "uvloop", "orjson", "numpy", "onnxruntime")

    def command(self, launch: Launch) -> Command:
        script = str(INSIDE / "fastapi_app.py")
        return Command([self.python, script, str(launch.file), launch.model.name, str(launch.port)])
