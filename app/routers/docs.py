"""Swagger UI from package files, and the OpenAPI document it reads. Runs on: event loop."""

from __future__ import annotations

from functools import cache
from importlib import resources

import orjson
from fastapi import APIRouter, Request, Response

from .planes import Control
from .schema import with_examples

router = APIRouter(include_in_schema=False)

# Addresses are relative to the page, so that it also works behind a proxy that adds a path prefix.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>KernelPort</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""

# Colours are off because tens of thousands of coloured numbers freeze the browser.
_START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  syntaxHighlight: { activated: false },
});
"""

# Nothing may come from elsewhere; Swagger UI sets styles on elements and draws its icons from data URLs.
_POLICY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
}
_CACHED = {"Cache-Control": "max-age=3600", "X-Content-Type-Options": "nosniff"}

_FILES = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}


@cache
def _package_file(name: str) -> bytes:
    return resources.files("fastapi_swagger").joinpath("resources", name).read_bytes()


@router.get("/docs")
async def page() -> Response:
    """The page itself."""
    return Response(_PAGE, headers=_POLICY, media_type="text/html")


@router.get("/docs/start.js")
async def start_script() -> Response:
    """What starts Swagger UI on the page; a file of its own so that the page needs no inline script."""
    return Response(_START, headers=_CACHED, media_type="text/javascript")


async def package_file(request: Request) -> Response:
    """One of Swagger UI's own files."""
    name = request.scope["path"].rpartition("/")[2]
    return Response(_package_file(name), headers=_CACHED, media_type=_FILES[name])


for name in _FILES:
    router.get(f"/docs/{name}")(package_file)


@router.get("/openapi.json")
async def openapi(request: Request, control: Control) -> Response:
    """The published schema, with examples for the models that are ready now."""
    models = [(control.metadata(one, None)[0], control.sample_shapes(one)) for one in control.model_names()]
    document = with_examples(request.app.state.schema, models, str(request.base_url).rstrip("/"))
    return Response(orjson.dumps(document), media_type="application/json")
