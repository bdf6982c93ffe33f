"""The servers under test, one file each; what runs inside a peer's own environment is in `inside/`."""

from __future__ import annotations

from .base import Server
from .fastapi import FastAPIRoute
from .floor import Floor
from .kernelport import KernelPort
from .kserve import KServe
from .litserve import LitServe
from .mlserver import MLServer
from .triton import Triton

SERVERS: dict[str, Server] = {
    server.name: server
    for server in (
        KernelPort(),
        KernelPort("kernelport-fastapi", ("--infer-lane", "false")),
        Floor(),
        Floor("floor-orjson", "orjson"),
        Triton(),
        Triton("triton-unbatched", batching=False),
        MLServer(),
        MLServer("mlserver-unbatched", batching=False),
        KServe(),
        LitServe(),
        LitServe("litserve-unbatched", batching=False),
        FastAPIRoute(),
    )
}
