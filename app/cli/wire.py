"""Requests of `infer` to bytes and answers back to arrays, in JSON or binary. Runs on: anywhere (pure)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import orjson

from ..core.tensor import BF16, BYTES, DATATYPES, Array, DataType
from ..protocol.binary import read_tensor, write_tensor
from ..protocol.narrowing import from_bfloat16, to_bfloat16
from .payload import Body

HEADER_LENGTH = "Inference-Header-Content-Length"


@dataclass(slots=True, frozen=True)
class Output:
    """One output of an answer; BF16 as float32 values, BYTES as an object array of `bytes` or, from JSON, `str`."""

    name: str
    datatype: DataType
    array: Array


def encode_json(body: Body) -> tuple[bytes, dict[str, str]]:
    """The request as one JSON document, with its headers; NaN and infinities as the bare words the server takes."""
    inputs = [{**one, "data": _plain(one)} for one in body["inputs"]] if isinstance(body.get("inputs"), list) else None
    whole = body if inputs is None else {**body, "inputs": inputs}
    return json.dumps(whole, ensure_ascii=False).encode(), {"Content-Type": "application/json"}


def encode_binary(body: Body) -> tuple[bytes, dict[str, str]]:
    """The request with every tensor after the JSON as raw bytes, asking for outputs in the same form."""
    heads, parts = [], []
    for one in body.get("inputs", ()):
        data = bytes(write_tensor(*_raw(one)))
        head = {key: value for key, value in one.items() if key != "data"}
        head["parameters"] = {**one.get("parameters", {}), "binary_data_size": len(data)}
        heads.append(head)
        parts.append(data)
    parameters = {"binary_data_output": True, **body.get("parameters", {})}
    header = json.dumps({**body, "inputs": heads, "parameters": parameters}, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(header))}
    return b"".join([header, *parts]), headers


def decode_answer(content: bytes, header_length: str | None) -> tuple[Body, list[Output]]:
    """The JSON part of an answer, and its outputs wherever their bytes were."""
    split = len(content) if header_length is None else int(header_length)
    try:
        answer: Body = orjson.loads(content[:split])
        entries = answer["outputs"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise click.ClickException("the answer is not that of an inference; is it an inference server?") from error
    outputs, offset = [], split
    for entry in entries:
        size = entry.get("parameters", {}).get("binary_data_size")
        outputs.append(_output(entry, content, offset, size))
        offset += size or 0
    return answer, outputs


def json_ready(output: Output) -> Body:
    """An output as the protocol writes it in JSON, whatever form it came in."""
    values = output.array.ravel().tolist()
    return {
        "name": output.name,
        "datatype": output.datatype.name,
        "shape": list(output.array.shape),
        "data": [_json_value(value) for value in values],
    }


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(entry: Mapping[str, Any]) -> Any:
    """An input's `data` as JSON can hold it."""
    data = entry.get("data")
    if not isinstance(data, np.ndarray):
        return data
    if entry["datatype"] == BF16.name:
        return from_bfloat16(data).ravel().tolist()
    if data.dtype != object:
        return data.ravel().tolist()
    try:
        return [item.decode() for item in data.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"input {entry['name']!r} holds bytes that are no text; send it with --binary"
        ) from error


def _raw(entry: Mapping[str, Any]) -> tuple[DataType, Array]:
    """An input's datatype and its array as it travels in binary."""
    name, data = entry.get("name"), entry.get("data")
    try:
        datatype = DATATYPES[entry["datatype"]]
        if isinstance(data, np.ndarray):
            return datatype, data
        if datatype is BYTES:
            return datatype, _elements(data)
        values = np.array(data, dtype=np.float64 if datatype is BF16 else datatype.dtype)
        return datatype, to_bfloat16(values.ravel()) if datatype is BF16 else values
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise click.UsageError(f"input {name!r} cannot be sent as binary: {error!r}") from error


def _elements(data: Any) -> Array:
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in np.array(data, dtype=object).ravel()]
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _output(entry: Mapping[str, Any], content: bytes, offset: int, size: int | None) -> Output:
    name, shape = entry["name"], entry["shape"]
    datatype = DATATYPES.get(entry["datatype"])
    if datatype is None:
        raise click.ClickException(f"output {name!r} has the unknown datatype {entry['datatype']!r}")
    if size is not None:
        array = read_tensor(name, datatype, shape, math.prod(shape), content, offset, size)
        return Output(name, datatype, from_bfloat16(array) if datatype is BF16 else array)
    data = entry["data"]
    if datatype is BYTES:
        array = np.empty(len(data), dtype=object)
        array[:] = data
    else:
        wide = np.dtype("<f4") if datatype is BF16 else datatype.dtype
        array = np.array([math.nan if value is None else value for value in data], dtype=wide)
    return Output(name, datatype, array.reshape(shape))
