"""The `parameters` of a request: the reserved ones with a meaning, the rest for the model. Runs on: event loop."""

from __future__ import annotations

from typing import Any

from ..core.errors import MalformedBody, Unsupported
from ..core.request import InferenceRequest, ParameterValue
from .json_document import OBJECTS
from .limits import MAX_NAME_LENGTH, MAX_PARAMETERS

_MAX_SEQUENCE_ID = 128
_MAX_UINT64 = 2**64 - 1
_MAX_INT64 = 2**63 - 1


def decode_parameters(members: Any, request: InferenceRequest) -> None:
    """Read the JSON object `members` into `request`; of duplicates the first counts.

    What the server itself acts on becomes an attribute, the rest (sequence members included) is the model's.
    """
    if not isinstance(members, OBJECTS):
        raise MalformedBody("parameters must be an object")
    own = request.parameters
    if len(members) > MAX_PARAMETERS:
        raise MalformedBody(f"there are {len(members)} parameters, this server takes at most {MAX_PARAMETERS}")
    seen: set[str] = set()
    # By items, because simdjson cannot look up a name that holds a NUL.
    for name, value in members.items():
        if name in seen:
            continue
        seen.add(name)
        if len(name) > MAX_NAME_LENGTH:
            raise MalformedBody(f"a parameter's name has {len(name)} characters, at most {MAX_NAME_LENGTH} are taken")
        if name == "binary_data_output":
            request.binary_output = _boolean(name, value)
        elif name == "priority":
            request.priority = _unsigned(name, value)
        elif name == "timeout":
            request.timeout_us = _unsigned(name, value)
        else:
            own[name] = _own(name, value)


def is_unsigned(value: Any) -> bool:
    """True for an integer literal that fits 64 bits unsigned."""
    return value.__class__ is int and 0 <= value <= _MAX_UINT64


def _unsigned(name: str, value: Any) -> int:
    if not is_unsigned(value):
        raise MalformedBody(f"parameter '{name}' must be a non-negative integer")
    return int(value)


def _boolean(name: str, value: Any) -> bool:
    if value.__class__ is not bool:
        raise MalformedBody(f"parameter '{name}' must be true or false")
    return bool(value)


def _own(name: str, value: Any) -> ParameterValue:
    if name.startswith("triton_"):
        raise MalformedBody(f"parameter '{name}': names that start with 'triton_' are reserved")
    if name == "sequence_id":
        return _sequence_id(value)
    if name in ("sequence_start", "sequence_end"):
        return _boolean(name, value)
    if value.__class__ is int and not -_MAX_INT64 - 1 <= value <= _MAX_INT64:
        value = _as_float(name, value)
    if not isinstance(value, (bool, int, float, str)):
        raise MalformedBody(f"parameter '{name}' must be a string, a number, true or false")
    return value


def _as_float(name: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise MalformedBody(f"parameter '{name}' is beyond the range of a 64-bit float") from None


def _sequence_id(value: Any) -> ParameterValue:
    if isinstance(value, str):
        if len(value) > _MAX_SEQUENCE_ID:
            raise Unsupported(
                f"parameter 'sequence_id' has {len(value)} characters, at most {_MAX_SEQUENCE_ID} are taken"
            )
        return value
    if not is_unsigned(value):
        raise MalformedBody("parameter 'sequence_id' must be a non-negative integer or a string")
    return int(value)
