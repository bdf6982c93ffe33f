"""A server that somebody else started: only its address is known."""

from __future__ import annotations

from ..models import BenchModel
from ..workloads import Encoding
from .base import Command, Launch, Server


class AnyUrl(Server):
    """`--url name=http://host:port`: it must serve a model of the workload's name with input x and output y."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url.rstrip("/")
        self.about = self.url

    def refuses(self, model: BenchModel, encoding: Encoding) -> str:
        return ""

    def command(self, launch: Launch) -> Command:
        raise NotImplementedError(f"{self.name} is started by its owner")

    def version(self) -> str:
        return "unknown"
