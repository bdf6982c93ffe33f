"""Path parameters: model names, and versions that are digits only. Runs on: event loop."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

MODEL = "/v2/models/{model}"
VERSION = "/v2/models/{model}/versions/{version}"

DESCRIPTIONS = {
    "model": "Name of the model.",
    "version": "Version of the model: digits.",
    "region": "Name of a shared-memory region.",
}


class ModelPath(NamedTuple):
    """The model, and maybe the version, that a path names."""

    name: str
    version: str | None


async def _model_path(request: Request) -> ModelPath:
    """Read from the path alone: a declared optional parameter would also be taken from the query string."""
    version = request.path_params.get("version")
    if version is not None and not (version.isascii() and version.isdigit()):
        raise HTTPException(404)  # as for any path that does not exist
    return ModelPath(request.path_params["model"], version)


Target = Annotated[ModelPath, Depends(_model_path)]
