"""Liveness and readiness, for people, load balancers and orchestrators. Runs on: event loop."""

from __future__ import annotations

import orjson
from fastapi import APIRouter, Response

from .bodies import Responses, answers, ref
from .planes import Control

router = APIRouter(tags=["Health"], default_response_class=Response)


def _json(content: dict[str, object], status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


def _probe(schema: str) -> Responses:
    content = {"application/json": {"schema": ref(schema)}}
    return {**answers(schema), 503: {"description": "No.", "content": content}}


@router.head("/livez", include_in_schema=False)
@router.head("/v2/health/live", include_in_schema=False)
@router.get("/livez", summary="Server live (alias)", responses=_probe("Live"))
@router.get("/v2/health/live", summary="Server live", responses=_probe("Live"))
async def live(control: Control) -> Response:
    """200 while the server process works; restart it when this fails."""
    is_live = control.is_live()
    return _json({"live": is_live}, 200 if is_live else 503)


@router.head("/readyz", include_in_schema=False)
@router.head("/v2/health/ready", include_in_schema=False)
@router.get("/readyz", summary="Server ready (alias)", responses=_probe("Ready"))
@router.get("/v2/health/ready", summary="Server ready", responses=_probe("Ready"))
async def ready(control: Control) -> Response:
    """200 when every model that should be loaded takes requests; 503 with the reason otherwise."""
    if control.is_ready():
        return _json({"ready": True})
    return _json({"ready": False, "reason": control.why_not_ready()}, 503)


@router.get("/", summary="Server alive", responses=answers("Alive"))
async def alive() -> Response:
    """A constant, for clients of the v1 protocol."""
    return _json({"status": "alive"})
