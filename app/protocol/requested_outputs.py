"""The `outputs` of a request: which tensors are wanted, and in what form. Runs on: event loop."""

from __future__ import annotations

from typing import Any

from simdjson import Object as JsonObject

from ..core.errors import InvalidRequest, MalformedBody
from ..core.request import RequestedOutput
from .json_document import ARRAYS, OBJECTS
from .limits import MAX_NAME_LENGTH, MAX_TENSORS
from .parameters import is_unsigned


def decode_outputs(entries: Any) -> tuple[RequestedOutput, ...] | None:
    """Read the JSON array `entries`; None (all outputs) if it is empty."""
    if not isinstance(entries, ARRAYS):
        raise MalformedBody("outputs must be an array of objects with a name")
    if len(entries) > MAX_TENSORS:
        raise MalformedBody(f"there are {len(entries)} outputs, this server takes at most {MAX_TENSORS}")
    if len(entries) == 1:
        return (_decode_output(entries[0], 0),)
    outputs: dict[str, RequestedOutput] = {}
    for entry in entries:
        output = _decode_output(entry, len(outputs))
        if output.name in outputs:
            raise InvalidRequest(f"output '{output.name}' is requested twice")
        outputs[output.name] = output
    return tuple(outputs.values()) or None


def _decode_output(entry: Any, position: int) -> RequestedOutput:
    name, parameters = _members(entry)
    if name.__class__ is not str or len(name) > MAX_NAME_LENGTH:
        raise MalformedBody(
            f"outputs[{position}] must be an object with a name (a string of at most {MAX_NAME_LENGTH} characters)"
        )
    if not isinstance(parameters, OBJECTS):
        return RequestedOutput(name)
    names = list(parameters)
    if "shared_memory_region" in names:
        raise InvalidRequest(
            f"output '{name}': shared memory is not offered by this server; ask for binary_data instead"
        )
    binary = parameters["binary_data"] if "binary_data" in names else False
    if binary.__class__ is not bool:
        raise MalformedBody(f"output '{name}': parameter 'binary_data' must be true or false")
    top_k: Any = parameters["classification"] if "classification" in names else 0
    if not is_unsigned(top_k):
        raise MalformedBody(f"output '{name}': parameter 'classification' must be a non-negative integer")
    return RequestedOutput(name, bool(binary), top_k)


def _members(entry: Any) -> tuple[Any, Any]:
    """Name and parameters of a requested output; None for what is absent."""
    if entry.__class__ is not JsonObject or len(entry) != 2:
        return _unusual_members(entry)
    try:
        return entry["name"], entry["parameters"]
    except KeyError:  # slow, since it was a C++ exception, and rare
        return _unusual_members(entry)


def _unusual_members(entry: Any) -> tuple[Any, Any]:
    names = list(entry) if isinstance(entry, OBJECTS) else []
    return entry["name"] if "name" in names else None, entry["parameters"] if "parameters" in names else None
