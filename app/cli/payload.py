"""Inputs of `infer` from the command line or files to request bodies of the protocol. Runs on: anywhere (pure)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..core.tensor import BF16, BYTES, DATATYPES, Array, DataType

Body = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Payload:
    """One request: where it came from, and its body with plain lists or numpy arrays as `data`."""

    source: str
    body: Body


def read_payloads(data: str, datatypes: Mapping[str, DataType], stdin: str = "") -> Iterator[Payload]:
    """The requests in DATA: inline JSON, a .json, .jsonl or .npz file, or `-` for JSON lines on standard input.

    `datatypes` are the model's inputs by name; they give the short form {"INPUT": [..]} its datatypes.
    """
    if data.lstrip().startswith(("{", "[")):
        yield Payload("inline JSON", _body(_parse(data, "inline JSON"), "inline JSON", datatypes))
        return
    if data == "-":
        yield from _lines(stdin, "standard input", datatypes)
        return
    path = Path(data)
    if path.suffix == ".npz":
        yield Payload(data, _npz_body(path, datatypes))
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(f"{data}: {reason}; DATA is JSON, a .json, .jsonl or .npz file, or -") from error
    if path.suffix == ".jsonl":
        yield from _lines(text, data, datatypes)
    else:
        yield Payload(data, _body(_parse(text, data), data, datatypes))


def _lines(text: str, source: str, datatypes: Mapping[str, DataType]) -> Iterator[Payload]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            place = f"{source}:{number}"
            yield Payload(place, _body(_parse(line, place), place, datatypes))


def _parse(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise click.UsageError(f"{source}: not JSON: {error}") from error


def _body(parsed: Any, source: str, datatypes: Mapping[str, DataType]) -> Body:
    """A full request as it is; the short form, input names to values, completed."""
    if not isinstance(parsed, dict):
        raise click.UsageError(
            f'{source}: expected a whole request ({{"inputs": [...]}}) or inputs by name ({{"X": [[1, 2]]}})'
        )
    if isinstance(parsed.get("inputs"), list) and "inputs" not in datatypes:
        return parsed
    return {"inputs": [_named_input(name, value, source, datatypes) for name, value in parsed.items()]}


def _named_input(name: str, value: Any, source: str, datatypes: Mapping[str, DataType]) -> Body:
    datatype = datatypes.get(name)
    if datatype is None:
        known = ", ".join(datatypes) or "none"
        raise click.UsageError(f"{source}: the model has no input {name!r}; its inputs are {known}")
    wants = np.dtype(object) if datatype.kind == "bytes" else np.dtype(float) if datatype is BF16 else datatype.dtype
    try:
        array = np.array(value, dtype=wants)
    except (ValueError, TypeError, OverflowError) as error:
        raise click.UsageError(f"{source}: input {name!r} is no {datatype.name} tensor: {error}") from error
    # The values travel as they were written: the server, not numpy, decides what fits the datatype.
    flat = value if array.ndim == 0 else _flatten(value)
    return {
        "name": name,
        "shape": list(array.shape),
        "datatype": datatype.name,
        "data": flat if isinstance(flat, list) else [flat],
    }


def _flatten(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [leaf for part in value for leaf in _flatten(part)]


def _npz_body(path: Path, datatypes: Mapping[str, DataType]) -> Body:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            inputs = [_array_input(name, arrays[name], path, datatypes.get(name)) for name in arrays.files]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise click.UsageError(f"{path}: not a readable .npz file: {error}") from error
    return {"inputs": inputs}


def _array_input(name: str, array: Array, path: Path, wanted: DataType | None) -> Body:
    datatype = _datatype_of(array, wanted)
    if datatype is None:
        raise click.UsageError(f"{path}: array {name!r} has dtype {array.dtype}, which the protocol does not carry")
    if datatype is BYTES:
        array = _bytes_array(array)
    return {"name": name, "shape": list(array.shape), "datatype": datatype.name, "data": array}


def _bytes_array(array: Array) -> Array:
    """Fixed-width text or bytes to an object array of `bytes`."""
    flat = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel().tolist()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(array.shape)


def _datatype_of(array: Array, wanted: DataType | None) -> DataType | None:
    if array.dtype.kind in "US":
        return BYTES
    if wanted is BF16 and array.dtype == BF16.dtype:
        return BF16
    for datatype in DATATYPES.values():
        if datatype not in (BF16, BYTES) and datatype.dtype == array.dtype.newbyteorder("<"):
            return datatype
    return None
