"""The `data` member of an output: flat, as orjson writes it; NaN and infinities as the model's policy says.

Runs on: event loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from ..core.errors import InvalidRequest
from ..core.tensor import BF16, BYTES, Array, DataType
from .narrowing import from_bfloat16


def json_data(name: str, datatype: DataType, array: Array) -> Any:
    """What orjson is to write for an output: a flat contiguous array, or a list of strings."""
    if datatype is BYTES:
        return _strings(name, array)
    flat = array.ravel()
    return from_bfloat16(flat) if datatype is BF16 else flat


def _strings(name: str, array: Array) -> list[str]:
    elements = array.ravel().tolist()
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError as error:
        culprit = error.object
    raise InvalidRequest(
        f"output '{name}': element {elements.index(culprit)} is not valid UTF-8 and cannot be a JSON string; "
        "ask for this output with binary_data"
    )


def has_nonfinite(data: Any) -> bool:
    """True if `data` (what `json_data` gave) holds a NaN or an infinity."""
    return isinstance(data, np.ndarray) and data.dtype.kind == "f" and not bool(np.isfinite(data).all())


def literal_data(flat: Array) -> orjson.Fragment:
    """`flat` with the bare tokens NaN, Infinity and -Infinity, which JSON does not know but Triton's clients do."""
    pieces = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY).split(b"null")
    tokens = [_token(value) for value in flat[~np.isfinite(flat)].tolist()]
    joined = [piece + token for piece, token in zip(pieces, [*tokens, b""], strict=True)]
    return orjson.Fragment(b"".join(joined))


def _token(value: float) -> bytes:
    if value != value:
        return b"NaN"
    return b"Infinity" if value > 0 else b"-Infinity"
