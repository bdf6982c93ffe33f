"""The bodies of the v2 protocol as JSON Schema, for the published OpenAPI document. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import Any

from ..core.tensor import DATATYPES

JsonSchema = dict[str, Any]


def ref(name: str) -> JsonSchema:
    """A reference to one of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: JsonSchema, description: str = "") -> JsonSchema:
    schema: JsonSchema = {"type": "array", "items": items}
    return {**schema, "description": description} if description else schema


def _string(description: str = "", **more: Any) -> JsonSchema:
    schema: JsonSchema = {"type": "string", **more}
    return {**schema, "description": description} if description else schema


def _object(description: str, required: str, **properties: JsonSchema) -> JsonSchema:
    schema: JsonSchema = {"type": "object", "properties": properties}
    if description:
        schema["description"] = description
    if required:
        schema["required"] = required.split()
    return schema


_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_DURATION = ref("Duration")
_DURATIONS = "success fail queue compute_input compute_infer compute_output cache_hit cache_miss"

_TENSORS: dict[str, JsonSchema] = {
    "Datatype": _string("Name of an element type.", enum=list(DATATYPES)),
    "Parameters": {
        "type": "object",
        "description": "Named values of an extension: strings, numbers or booleans.",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    "TensorData": {
        "type": "array",
        "description": (
            "Elements in row-major order, flat or nested as `shape` says: numbers, booleans for BOOL, strings for "
            "BYTES. Float tensors also take the tokens NaN, Infinity and -Infinity, and null for NaN."
        ),
        "items": {"anyOf": [ref("TensorData"), {"type": ["number", "string", "boolean", "null"]}]},
    },
    "MetadataTensor": _object(
        "Name, element type and shape of an input or output; -1 marks a free dimension.",
        "name datatype shape",
        name=_string(),
        datatype=ref("Datatype"),
        shape=_list({"type": "integer", "minimum": -1}),
    ),
    "RequestInput": _object(
        "One input tensor. Exactly one of `data` and `parameters.binary_data_size` gives its elements.",
        "name shape datatype",
        name=_string(),
        shape=_list(_COUNT, "Full shape, batch dimension included."),
        datatype=ref("Datatype"),
        parameters=ref("Parameters"),
        data=ref("TensorData"),
    ),
    "RequestOutput": _object(
        "One output that is asked for. Parameters: `binary_data` (boolean), `classification` (top k as BYTES).",
        "name",
        name=_string(),
        parameters=ref("Parameters"),
    ),
    "ResponseOutput": _object(
        "One output tensor. When it was asked for in binary form, `parameters.binary_data_size` stands for `data`.",
        "name shape datatype data",
        name=_string(),
        shape=_list(_COUNT),
        datatype=ref("Datatype"),
        parameters=ref("Parameters"),
        data=ref("TensorData"),
    ),
}

_INFERENCE: dict[str, JsonSchema] = {
    "InferenceRequest": _object(
        "What to run a model on. Without `outputs` every output is returned.",
        "inputs",
        id=_string("Given back in the response."),
        parameters=ref("Parameters"),
        inputs=_list(ref("RequestInput")),
        outputs=_list(ref("RequestOutput")),
    ),
    "InferenceResponse": _object(
        "The outputs of one inference; `data` is always flat.",
        "model_name model_version outputs",
        model_name=_string(),
        model_version=_string("The version that ran."),
        id=_string("The request's id, when it had one."),
        parameters=ref("Parameters"),
        outputs=_list(ref("ResponseOutput")),
    ),
    "Error": _object("Why a request was refused or failed.", "error", error=_string()),
}

_METADATA: dict[str, JsonSchema] = {
    "Live": _object("Whether the server process works.", "live", live={"type": "boolean"}),
    "Ready": _object(
        "Whether requests should be sent here.",
        "ready",
        ready={"type": "boolean"},
        reason=_string("Why not, when it is not ready."),
    ),
    "Alive": _object("The server answers.", "status", status=_string(enum=["alive"])),
    "ServerMetadata": _object(
        "Name, version and protocol extensions of the server.",
        "name version extensions",
        name=_string(),
        version=_string(),
        extensions=_list(_string()),
    ),
    "ModelList": _object("Names of the models that are ready.", "models", models=_list(_string())),
    "ModelMetadata": _object(
        "The signature of a model; shapes include the batch dimension.",
        "name versions platform inputs outputs",
        name=_string(),
        versions=_list(_string(), "Versions that are served, ascending."),
        platform=_string(),
        inputs=_list(ref("MetadataTensor")),
        outputs=_list(ref("MetadataTensor")),
    ),
    "ModelReady": _object("The model version takes requests.", "name ready", name=_string(), ready={"type": "boolean"}),
    "ModelConfig": {
        "type": "object",
        "description": "The complete configuration of a model with Triton's field names, defaults written out.",
        "required": ["name", "max_batch_size", "input", "output"],
        "properties": {
            "name": _string(),
            "platform": _string(),
            "backend": _string(),
            "max_batch_size": _COUNT,
            "input": _list({"type": "object"}),
            "output": _list({"type": "object"}),
        },
        "additionalProperties": True,
    },
}

_STATISTICS: dict[str, JsonSchema] = {
    "Duration": _object("How often something happened and what it took in all.", "count ns", count=_COUNT, ns=_COUNT),
    "BatchStatistics": _object(
        "Executions of one batch size.",
        "batch_size compute_input compute_infer compute_output",
        batch_size=_COUNT,
        compute_input=_DURATION,
        compute_infer=_DURATION,
        compute_output=_DURATION,
    ),
    "ModelStatistics": _object(
        "Counters of one model version since it was loaded.",
        "name version last_inference inference_count execution_count inference_stats batch_stats",
        name=_string(),
        version=_string(),
        last_inference={**_COUNT, "description": "Milliseconds since the epoch; 0 before the first one."},
        inference_count={**_COUNT, "description": "Rows of the requests that succeeded."},
        execution_count={**_COUNT, "description": "Times the model ran."},
        inference_stats=_object("Per request.", _DURATIONS, **dict.fromkeys(_DURATIONS.split(), _DURATION)),
        response_stats={"type": "object"},
        batch_stats=_list(ref("BatchStatistics")),
        memory_usage=_list({"type": "object"}),
    ),
    "Statistics": _object("Statistics by model version.", "model_stats", model_stats=_list(ref("ModelStatistics"))),
}

_REPOSITORY: dict[str, JsonSchema] = {
    "IndexRequest": _object("Which models to list.", "", ready={"type": "boolean", "description": "Ready ones only."}),
    "IndexEntry": _object(
        "One version of a model; a model that was never loaded has only its name.",
        "name",
        name=_string(),
        version=_string(),
        state=_string(enum=["UNKNOWN", "READY", "UNAVAILABLE", "LOADING", "UNLOADING"]),
        reason=_string(),
    ),
    "Index": _list(ref("IndexEntry")),
    "Regions": _list({"type": "object"}, "Registered shared-memory regions."),
    "LoadRequest": _object(
        "How to load a model. `parameters.config` is a model configuration as JSON text, "
        "`parameters.file:<version>/<name>` the base64 of a file.",
        "",
        parameters={"type": "object", "additionalProperties": {"type": "string"}},
    ),
    "UnloadRequest": _object(
        "How to unload a model.",
        "",
        parameters=_object("", "", unload_dependents={"type": "boolean"}),
    ),
}

SCHEMAS: dict[str, JsonSchema] = {**_INFERENCE, **_TENSORS, **_METADATA, **_STATISTICS, **_REPOSITORY}

Responses = dict[int | str, dict[str, Any]]

_ERROR_TEXTS = {
    400: "The request cannot be answered as it was sent.",
    404: "No such model or version.",
    408: "The request came in too slowly.",
    413: "The body is larger than the server takes.",
    500: "The model failed.",
    501: "The server or the model does not have this feature.",
    503: "Not now: not ready, overloaded or stopping. `Retry-After` says when to come back.",
    504: "The request's deadline has passed.",
}


def answers(schema: str, *errors: int, description: str = "OK") -> Responses:
    """The `responses` of a route: a JSON body of that schema ("" for an empty body), and the errors it may give."""
    success: dict[str, Any] = {"description": description}
    if schema:
        success["content"] = {"application/json": {"schema": ref(schema)}}
    responses: Responses = {200: success}
    for status in errors:
        responses[status] = {
            "description": _ERROR_TEXTS[status],
            "content": {"application/json": {"schema": ref("Error")}},
        }
    return responses


def takes(schema: str, *, required: bool = False) -> dict[str, Any]:
    """The `openapi_extra` of a route that reads a JSON body of that schema by itself."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": ref(schema)}}}}
