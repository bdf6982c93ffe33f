"""The FastAPI application: every route, one error format, limits and HTTP metrics. Runs on: event loop.

`python -m kernelport.asgi` writes the OpenAPI document, which `openapi/openapi.yaml` is.
"""

from __future__ import annotations

import sys
from typing import TextIO

import orjson
import yaml
from fastapi import FastAPI
from prometheus_fastapi_instrumentator import Instrumentator

from . import __version__
from .http.asgi_limits import AsgiLimits
from .http.endpoint import InferEndpoint
from .http.gate import Gate
from .routers import docs, health, inference, metrics, models, repository, shared_memory, v2
from .routers.errors import LastResort, add_exception_handlers
from .routers.prefix import PathPrefix
from .routers.schema import Document, base_document
from .serving.control import ControlPlane
from .telemetry.metrics import Metrics

_ROUTERS = (health, v2, models, inference, repository, shared_memory, metrics, docs)


def _routes_only() -> FastAPI:
    """The application without anything behind its routes."""
    app = FastAPI(
        title="KernelPort", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    for module in _ROUTERS:
        app.include_router(module.router)
    app.state.schema = base_document(app.routes)
    return app


def create_app(endpoint: InferEndpoint, control_plane: ControlPlane, readings: Metrics, gate: Gate) -> FastAPI:
    """The application over these planes. No middleware hides a client's disconnect: all are plain ASGI."""
    app = _routes_only()
    app.state.endpoint = endpoint
    app.state.control_plane = control_plane
    app.state.metrics = readings
    add_exception_handlers(app)
    # The last one added is the outermost: refusals of the limits are counted, and failures know their request id.
    app.add_middleware(LastResort)
    app.add_middleware(AsgiLimits, gate=gate)
    Instrumentator(registry=readings.registry).instrument(app)
    app.add_middleware(PathPrefix)
    return app


def create_schema() -> Document:
    """The OpenAPI document of a server without models."""
    schema: Document = _routes_only().state.schema
    return schema


def write_schema(out: TextIO) -> None:
    """Write that document as YAML."""
    plain = orjson.loads(orjson.dumps(create_schema()))  # without shared parts, which YAML would write as aliases
    yaml.safe_dump(plain, out, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    write_schema(sys.stdout)
