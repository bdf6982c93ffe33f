"""The OpenAPI document: made from the routes, then given examples for the models that are loaded.

Runs on: anywhere (pure).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from .. import __version__
from ..core.model import ModelSpec
from .bodies import SCHEMAS
from .examples import MAX_DOCUMENT_ELEMENTS, MAX_ELEMENTS, Shapes, curl_command, example_request, example_size
from .paths import DESCRIPTIONS, MODEL

Document = dict[str, Any]

_JSON = "application/json"
_LOADED = "Loaded models"
_TAGS = [
    {"name": "Inference", "description": "Run a model."},
    {"name": "Models", "description": "What the server knows about its models."},
    {"name": "Server", "description": "The server itself."},
    {"name": "Health", "description": "Probes for orchestrators and load balancers."},
    {"name": "Repository", "description": "Load and unload models (with `--model-control-mode explicit`)."},
    {"name": "Shared memory", "description": "Only what clients ask before they start; regions cannot be registered."},
    {"name": "Metrics", "description": "For Prometheus."},
]
_DESCRIPTION = """Inference for models of several frameworks over the
[Open Inference Protocol](https://github.com/kserve/open-inference-protocol), with Triton's extensions.
Every error has the body `{"error": "..."}`."""


def base_document(routes: Sequence[BaseRoute]) -> Document:
    """The document without any model; this is what `openapi/` holds."""
    document: Document = get_openapi(
        title="KernelPort", version=__version__, description=_DESCRIPTION, routes=routes, tags=_TAGS
    )
    document["components"] = {"schemas": dict(SCHEMAS)}
    for path, operations in document["paths"].items():
        parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", path)]
        for operation in operations.values():
            operation["responses"].pop("422", None)  # FastAPI's own validation answers 400 here
            if parameters:
                operation["parameters"] = parameters + operation.get("parameters", [])
    return document


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if name == "version":
        schema["pattern"] = "^[0-9]+$"
    return {"name": name, "in": "path", "required": True, "description": DESCRIPTIONS[name], "schema": schema}


def with_examples(base: Document, models: Sequence[tuple[ModelSpec, Shapes]], server_url: str) -> Document:
    """The document in which each of these models has an operation of its own that runs as it stands.

    With each model come input shapes that it has run with. `base` is not changed; the two share what is alike.
    """
    document = dict(base)
    path = urlsplit(server_url).path
    if path:  # a prefix that a proxy adds
        document["servers"] = [{"url": path}]
    if not models:
        return document
    generic = base["paths"][f"{MODEL}/infer"]["post"]
    examples: dict[str, Any] = {}  # by component name
    bodies: dict[str, Any] = {}  # by model name
    loaded: dict[str, Any] = {}
    left = MAX_DOCUMENT_ELEMENTS
    for number, (spec, shapes) in enumerate(models):
        key = f"model-{number}"
        size = example_size(spec, shapes)
        example = None
        if size <= min(left, MAX_ELEMENTS):
            left -= size
            examples[key] = {"summary": spec.name, "value": example_request(spec, shapes)}
            example = bodies[spec.name] = {"$ref": f"#/components/examples/{key}"}
        run = _model_operation(generic, spec, example, curl_command(spec, shapes, server_url))
        loaded[f"/v2/models/{quote(spec.name, safe='')}/infer"] = {"post": {**run, "operationId": f"run-{key}"}}
    names = {spec.name: {"value": spec.name} for spec, _ in models}
    document["paths"] = {**loaded, **base["paths"], f"{MODEL}/infer": {"post": _with_choices(generic, names, bodies)}}
    document["components"] = {**base["components"], "examples": examples}
    document["tags"] = [{"name": _LOADED, "description": "Ready to try."}, *base["tags"]]
    return document


def _with_choices(generic: Document, names: dict[str, Any], bodies: dict[str, Any]) -> Document:
    """The infer operation of any model, with the loaded ones to choose from."""
    model, *others = generic["parameters"]
    return {
        **generic,
        "parameters": [{**model, "examples": names}, *others],
        "requestBody": _with_body_examples(generic["requestBody"], bodies),
    }


def _with_body_examples(body: Document, examples: dict[str, Any]) -> Document:
    content = body["content"]
    return {**body, "content": {**content, _JSON: {**content[_JSON], "examples": examples}}} if examples else body


def _model_operation(generic: Document, spec: ModelSpec, example: Document | None, command: str) -> Document:
    """The infer operation with the model's name filled in, and without what only binary requests need."""
    description = _signature(spec)
    if example is None:
        description += f"\n\nIts input is too long to type as JSON; from a shell:\n\n```sh\n{command}\n```"
    body = {"required": True, "content": {_JSON: generic["requestBody"]["content"][_JSON]}}
    return {
        "tags": [_LOADED],
        "summary": f"Run {spec.name}",
        "description": description,
        "requestBody": _with_body_examples(body, {} if example is None else {spec.name: example}),
        "responses": {"200": generic["responses"]["200"], "default": generic["responses"]["400"]},
    }


def _signature(spec: ModelSpec) -> str:
    inputs = ", ".join(f"`{one.describe()}`" for one in spec.inputs)
    outputs = ", ".join(f"`{one.describe()}`" for one in spec.outputs)
    return f"Takes {inputs}; returns {outputs}. Version {spec.version}, {spec.platform}."
