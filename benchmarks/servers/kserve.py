"""The KServe Python SDK's model server with a custom model on onnxruntime; it has no batching of its own."""

from __future__ import annotations

from .base import INSIDE, Command, Launch, Server


class KServe(Server):
    name = "kserve"
    about = "KServe SDK model server, custom model, one worker, latency and access logs off"
    requirements = ("kserve==0.21.0", "onnxruntime")
    encodings = frozenset({"json", "binary"})

    def command(self, launch: Launch) -> Command:
        script = str(INSIDE / "kserve_app.py")
        flags = ["--http_port", str(launch.port), "--enable_grpc", "false", "--enable_latency_logging", "false"]
        env = {"BENCH_MODEL": str(launch.file), "BENCH_NAME": launch.model.name}
        return Command([self.python, script, *flags], env)
