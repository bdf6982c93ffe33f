"""Bodies of everything but inference: metadata, statistics, repository index, load and unload. Runs on: event loop."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ..core.errors import MalformedBody
from ..core.model import ModelSpec, ModelState, ModelStatus
from ..core.tensor import TensorSpec
from ..telemetry.stats import Histogram, ModelStats
from .json_depth import depth_of
from .json_strict import BOM

_MAX_DEPTH = 64

# Outcomes of requests that were accepted and then failed; those refused at the door are no failures of the model.
_FAILURES = ("queue_timeout", "deadline", "cancelled", "backend", "internal")


def metadata_body(spec: ModelSpec, versions: Sequence[str]) -> dict[str, Any]:
    """Model metadata; shapes as clients send them, batch dimension included."""
    return {
        "name": spec.name,
        "versions": list(versions),
        "platform": spec.platform,
        "inputs": [_tensor_metadata(one) for one in spec.inputs],
        "outputs": [_tensor_metadata(one) for one in spec.outputs],
    }


def _tensor_metadata(one: TensorSpec) -> dict[str, Any]:
    # An unknown rank cannot be written down; -1 is what clients understand as "ask nobody".
    shape = [-1] if one.shape is None else list(one.shape)
    return {"name": one.name, "datatype": one.datatype.name, "shape": shape}


def index_body(statuses: Iterable[ModelStatus]) -> list[dict[str, str]]:
    """The repository index; a model that was never asked for has only a name."""
    return [_index_entry(status) for status in statuses]


def _index_entry(status: ModelStatus) -> dict[str, str]:
    if status.state is ModelState.UNKNOWN:
        return {"name": status.name}
    entry = {"name": status.name}
    if status.version:
        entry["version"] = status.version
    entry["state"] = status.state.value
    if status.reason:
        entry["reason"] = status.reason
    return entry


def statistics_body(models: Iterable[tuple[ModelSpec, ModelStats]]) -> dict[str, Any]:
    """The statistics extension; every member is there even before the first request, because clients index them."""
    return {"model_stats": [_model_statistics(spec, stats) for spec, stats in models]}


def _model_statistics(spec: ModelSpec, stats: ModelStats) -> dict[str, Any]:
    return {
        "name": spec.name,
        "version": spec.version,
        "last_inference": stats.last_inference_ms,
        "inference_count": stats.rows,
        "execution_count": stats.executions,
        "inference_stats": {
            "success": _duration(stats.outcomes["success"], stats.request_time.total),
            "fail": _duration(sum(stats.outcomes[outcome] for outcome in _FAILURES), stats.fail_ns),
            "queue": _histogram(stats.queue_time),
            "compute_input": _histogram(stats.merge_time),
            "compute_infer": _histogram(stats.compute_time),
            "compute_output": _duration(stats.compute_time.count, stats.split_ns),
            "cache_hit": _duration(0, 0),
            "cache_miss": _duration(0, 0),
        },
        "response_stats": {},
        "batch_stats": [
            {
                "batch_size": size,
                "compute_input": _duration(one.count, one.merge_ns),
                "compute_infer": _duration(one.count, one.compute_ns),
                "compute_output": _duration(one.count, one.split_ns),
            }
            for size, one in sorted(stats.batch_sizes.items())
        ],
        "memory_usage": [],
    }


def _duration(count: int, total_ns: int) -> dict[str, int]:
    return {"count": count, "ns": total_ns}


def _histogram(histogram: Histogram) -> dict[str, int]:
    return _duration(histogram.count, histogram.total)


@dataclass(slots=True, frozen=True)
class LoadWish:
    """A load request: an own configuration and own files in place of the repository's, None for "as it is there"."""

    config: dict[str, Any] | None = None
    files: dict[str, bytes] | None = field(default=None, repr=False)


def parse_index(body: bytes) -> bool:
    """True if only READY models are asked for."""
    document = _document(body)
    ready = document.get("ready", False) if isinstance(document, dict) else False
    if not isinstance(ready, bool):
        raise MalformedBody("ready must be true or false")
    return ready


def parse_unload(body: bytes) -> bool:
    """True if the model's dependents are to be unloaded with it."""
    dependents = _parameters(body).get("unload_dependents", False)
    if not isinstance(dependents, bool):
        raise MalformedBody("parameter 'unload_dependents' must be true or false")
    return dependents


def parse_load(body: bytes) -> LoadWish:
    """The configuration and files that a load request brings along."""
    config: dict[str, Any] | None = None
    files: dict[str, bytes] = {}
    for name, value in _parameters(body).items():
        if not isinstance(value, str):
            raise MalformedBody(f"load parameter '{name}' must be a string")
        if name == "config":
            config = _config(value)
        elif name.startswith("file:") and len(name) > len("file:"):
            files[name.removeprefix("file:")] = _file(name, value)
        else:
            raise MalformedBody(f"load parameter '{name}' is unknown; there are 'config' and 'file:<version>/<name>'")
    if files and config is None:
        raise MalformedBody("load with files needs the parameter 'config' as well")
    return LoadWish(config, files or None)


def _config(text: str) -> dict[str, Any]:
    config = _json("load parameter 'config'", text.encode())
    if not isinstance(config, dict):
        raise MalformedBody("load parameter 'config' must be a JSON object with a model configuration")
    return config


def _file(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedBody(f"load parameter '{name}' is not valid base64") from None


def _parameters(body: bytes) -> dict[str, Any]:
    document = _document(body)
    if not isinstance(document, dict):
        raise MalformedBody("the body must be empty or a JSON object")
    parameters = document.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise MalformedBody("parameters must be an object")
    return parameters


def _document(body: bytes) -> Any:
    return _json("the body", body.removeprefix(BOM)) if body.strip() else {}


def _json(what: str, text: bytes) -> Any:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(f"{what} is not valid JSON: {error}") from None
    if depth_of(text) > _MAX_DEPTH:
        raise MalformedBody(f"{what} is nested more than {_MAX_DEPTH} levels deep")
    return document
