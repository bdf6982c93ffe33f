"""The named workloads: which model, how many connections, which encoding; and the request bytes and the right answer.

Request values are fixed by a seed. JSON numbers are what a client gets from `array.tolist()`: float32 values written
as float64, about 20 characters each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .models import BenchModel

Encoding = Literal["json", "binary"]
JSON_LENGTH_HEADER = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table: what is asked, how often at once, and what the row is about."""

    name: str
    model: str
    encoding: Encoding
    connections: int
    about: str


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("tiny-json", "tiny", "json", 32, "4 floats in, 3 out, JSON, 32 connections"),
        Workload("tiny-json-1", "tiny", "json", 1, "4 floats in, 3 out, JSON, 1 connection"),
        Workload("mlp-json", "mlp", "json", 32, "MLP 256-1024-1024-1024-10, JSON, 32 connections"),
        Workload("mlp-binary", "mlp", "binary", 32, "MLP 256-1024-1024-1024-10, binary, 32 connections"),
        Workload("image-json", "image", "json", 8, "image 3x224x224, JSON, 8 connections"),
        Workload("image-binary", "image", "binary", 8, "image 3x224x224, binary, 8 connections"),
        # Twice the maximum batch in flight: a full batch is always waiting when one ends.
        Workload("slow-binary", "slow", "binary", 16, "convolutions, 3.5 ms a row, batch 8, binary, 16 connections"),
        Workload("magika-binary", "magika", "binary", 16, "magika (real network), batch 8, binary, 16 connections"),
    )
}


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The bytes of one request and the headers that belong to them."""

    content: bytes
    headers: dict[str, str]


Array = np.ndarray[Any, np.dtype[Any]]


def sample_rows(model: BenchModel, rows: int = 1) -> Array:
    """The input that every run sends: floats of [0, 1), or byte values for an integer input."""
    random = np.random.default_rng(2024)
    if model.datatype == "INT32":
        return random.integers(0, 256, (rows, *model.row_shape), dtype=np.int32)
    return random.random((rows, *model.row_shape), dtype=np.float32)


def encode_request(model: BenchModel, array: Array, encoding: Encoding) -> RequestBody:
    """An inference request of the Open Inference Protocol, or of its binary tensor extension."""
    tensor: dict[str, Any] = {"name": model.input_name, "datatype": model.datatype, "shape": list(array.shape)}
    if encoding == "json":
        tensor["data"] = array.ravel().tolist()
        content = json.dumps({"inputs": [tensor]}).encode()
        return RequestBody(content, {"Content-Type": "application/json"})
    tensor["parameters"] = {"binary_data_size": array.nbytes}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH_HEADER: str(len(head))}
    return RequestBody(head + array.tobytes(), headers)


def decode_answer(content: bytes, headers: dict[str, str]) -> Array:
    """The first output of an answer, whichever of the two encodings it came in."""
    lengths = [value for name, value in headers.items() if name.lower() == JSON_LENGTH_HEADER.lower()]
    if not lengths:
        output = json.loads(content)["outputs"][0]
        return np.asarray(output["data"], np.float32).reshape(output["shape"])
    output = json.loads(content[: int(lengths[0])])["outputs"][0]
    return np.frombuffer(content, np.float32, offset=int(lengths[0])).reshape(output["shape"])


@cache
def expected_answer(file: Path, model: BenchModel) -> Array:
    """What onnxruntime itself answers for the sample row, alone."""
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    result: Array = session.run(None, {model.input_name: sample_rows(model)})[0]
    return result
