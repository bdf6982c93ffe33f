"""The model repository extension: index, load, unload. Runs on: event loop."""

from __future__ import annotations

import orjson
from fastapi import APIRouter, Request, Response

from ..core.errors import Unsupported
from ..protocol.control import index_body, parse_index, parse_load, parse_unload
from .bodies import answers, takes
from .paths import Target
from .planes import Control

router = APIRouter(tags=["Repository"], default_response_class=Response)

_MODEL = "/v2/repository/models/{model}"
_OTHER_REPOSITORY = "/v2/repository/{repository}/models/{model}"


@router.post("/v2/repository/{repository}/index", include_in_schema=False)
@router.post(
    "/v2/repository/index",
    summary="Repository index",
    responses=answers("Index", 400),
    openapi_extra=takes("IndexRequest"),
)
async def index(request: Request, control: Control) -> Response:
    """Every model of the repository with its versions, their states, and why one cannot be served."""
    ready_only = parse_index(await request.body())
    return Response(orjson.dumps(index_body(control.index(ready_only))), media_type="application/json")


@router.post(
    f"{_MODEL}/load",
    summary="Load a model",
    responses=answers("", 400, 404, 503, description="The model takes requests. The body is empty."),
    openapi_extra=takes("LoadRequest"),
)
async def load(request: Request, control: Control, target: Target) -> Response:
    """Load a model, or load it anew; a failed reload leaves the version that serves in place."""
    wish = parse_load(await request.body())
    await control.load(target.name, wish.config, wish.files)
    return Response(media_type="application/json")


@router.post(
    f"{_MODEL}/unload",
    summary="Unload a model",
    responses=answers("", 400, 503, description="The model is gone, or was not there. The body is empty."),
    openapi_extra=takes("UnloadRequest"),
)
async def unload(request: Request, control: Control, target: Target) -> Response:
    """Take a model out of service; requests that it has accepted are finished first."""
    await control.unload(target.name, parse_unload(await request.body()))
    return Response(media_type="application/json")


@router.post(f"{_OTHER_REPOSITORY}/load", include_in_schema=False)
@router.post(f"{_OTHER_REPOSITORY}/unload", include_in_schema=False)
async def other_repository(request: Request) -> Response:
    """Refused: models are named alike in all repositories of a server."""
    await request.body()
    raise Unsupported("a repository name in the path is not supported; leave it out")
