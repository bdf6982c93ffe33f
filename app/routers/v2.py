"""What a client asks first: which server this is and what it speaks. Runs on: event loop."""

from __future__ import annotations

import orjson
from fastapi import APIRouter, Response

from .. import __version__
from .bodies import answers

router = APIRouter(tags=["Server"], default_response_class=Response)

# Only what works is listed: clients switch features on by this.
EXTENSIONS = (
    "classification",
    "model_repository",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
)
_METADATA = orjson.dumps({"name": "kernelport", "version": __version__, "extensions": EXTENSIONS})


@router.get("/v2/", summary="Server metadata", responses=answers("ServerMetadata"))
@router.get("/v2", summary="Server metadata", responses=answers("ServerMetadata"))
async def server_metadata() -> Response:
    """Name and version of the server, and the protocol extensions it speaks."""
    return Response(_METADATA, media_type="application/json")
