"""Requests that a loaded model can answer, made from its signature, for the documentation. Runs on: anywhere (pure)."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..core.model import ModelSpec
from ..core.tensor import DataType, Shape, TensorSpec

Shapes = Mapping[str, Shape]

# A list of numbers is a line each in the browser's text field, which these many lines leave usable.
MAX_ELEMENTS = 65_536
MAX_DOCUMENT_ELEMENTS = 4 * MAX_ELEMENTS

_VALUES: dict[str, list[Any]] = {
    "float": [index / 10 for index in range(10)],
    "int": [1, 0],
    "uint": [1, 0],
    "bool": [True, False],
    "bytes": ["some", "text"],
}


def example_shape(spec: TensorSpec, known: Shape | None = None) -> Shape:
    """`known` when it fits the declaration, else the declared shape with every free dimension at 1."""
    if known is not None and spec.accepts(known):
        return known
    return tuple(1 if size < 0 else size for size in spec.shape or ())


def example_data(datatype: DataType, count: int) -> list[Any]:
    """`count` harmless values: tenths for floats, zeros and ones for integers, short texts for BYTES."""
    row = _VALUES[datatype.kind]
    return (row * (count // len(row) + 1))[:count]


def _shapes(spec: ModelSpec, known: Shapes) -> dict[str, Shape]:
    return {one.name: example_shape(one, known.get(one.name)) for one in spec.inputs if not one.optional}


def example_size(spec: ModelSpec, known: Shapes) -> int:
    """How many elements an example request has."""
    return sum(map(math.prod, _shapes(spec, known).values()))


def example_request(spec: ModelSpec, known: Shapes) -> dict[str, Any]:
    """The body of a JSON inference request for that model.

    `known` are input shapes that the model has run with; a signature alone does not say which sizes work.
    """
    return {
        "inputs": [
            {
                "name": name,
                "shape": list(shape),
                "datatype": spec.inputs_by_name[name].datatype.name,
                "data": example_data(spec.inputs_by_name[name].datatype, math.prod(shape)),
            }
            for name, shape in _shapes(spec, known).items()
        ]
    }


def curl_command(spec: ModelSpec, known: Shapes, server_url: str) -> str:
    """A shell line that runs the model on zeros through the binary extension, where JSON would be too long."""
    inputs = []
    total_bytes = 0
    for name, shape in _shapes(spec, known).items():
        datatype = spec.inputs_by_name[name].datatype
        size_bytes = math.prod(shape) * (datatype.item_size or 4)  # four zero bytes are an empty BYTES element
        total_bytes += size_bytes
        inputs.append(
            {
                "name": name,
                "shape": list(shape),
                "datatype": datatype.name,
                "parameters": {"binary_data_size": size_bytes},
            }
        )
    head = json.dumps({"inputs": inputs}, separators=(",", ":"))
    url = f"{server_url}/v2/models/{quote(spec.name, safe='')}/infer"
    return (
        f"(printf %s {shlex.quote(head)}; head -c {total_bytes} /dev/zero) | curl --data-binary @- "
        f"-H 'Inference-Header-Content-Length: {len(head.encode())}' {shlex.quote(url)}"
    )
