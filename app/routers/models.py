"""What the server tells about its models: metadata, readiness, configuration, statistics. Runs on: event loop."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response

from ..protocol.control import metadata_body, statistics_body
from .bodies import answers
from .paths import MODEL, VERSION, Target
from .planes import Control

router = APIRouter(tags=["Models"], default_response_class=Response)


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


@router.get("/v2/models", summary="Ready models", responses=answers("ModelList"))
async def model_list(control: Control) -> Response:
    """Names of the models that take requests; the repository index also has the others."""
    return _json({"models": control.model_names()})


@router.get("/v2/models/stats", summary="Statistics of all models", responses=answers("Statistics"))
async def all_statistics(control: Control) -> Response:
    """Counters of every served model version since it was loaded."""
    return _json(statistics_body(control.statistics()))


@router.get(VERSION, summary="Metadata of a version", responses=answers("ModelMetadata", 404, 503))
@router.get(MODEL, summary="Model metadata", responses=answers("ModelMetadata", 404, 503))
async def model_metadata(control: Control, target: Target) -> Response:
    """Names, datatypes and shapes of the inputs and outputs, and the versions that are served."""
    return _json(metadata_body(*control.metadata(target.name, target.version)))


@router.get(f"{VERSION}/ready", summary="Version ready", responses=answers("ModelReady", 400))
@router.get(f"{MODEL}/ready", summary="Model ready", responses=answers("ModelReady", 400))
async def model_ready(control: Control, target: Target) -> Response:
    """200 when the model version takes requests; 400 when it does not, and for unknown ones."""
    if control.is_model_ready(target.name, target.version):
        return _json({"name": target.name, "ready": True})
    return _json({"error": "Model version not ready"}, 400)


@router.get(f"{VERSION}/config", summary="Configuration of a version", responses=answers("ModelConfig", 404, 503))
@router.get(f"{MODEL}/config", summary="Model configuration", responses=answers("ModelConfig", 404, 503))
async def model_config(control: Control, target: Target) -> Response:
    """The configuration in force, completed from the model and with defaults written out."""
    return _json(control.config(target.name, target.version))


@router.get(f"{VERSION}/stats", summary="Statistics of a version", responses=answers("Statistics", 400))
@router.get(f"{MODEL}/stats", summary="Model statistics", responses=answers("Statistics", 400))
async def model_statistics(control: Control, target: Target) -> Response:
    """Counters since the model was loaded: one entry for each served version."""
    return _json(statistics_body(control.statistics(target.name, target.version)))
