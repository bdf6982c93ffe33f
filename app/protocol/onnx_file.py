"""Reads the few facts of an ONNX file that the runtime hides, without the onnx package. Runs on: loader thread.

The runtime reports an output of unknown rank exactly like a scalar, reads external weight files before anybody
could look at their paths, and tells the shapes only after the session (and so its arena policy) exists.
A walk over the protobuf wire format answers all three. Tensor contents are skipped by length over a mapped file,
so a model of many gigabytes costs a few pages of memory.
"""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import LoadError

# field number -> message type, for the messages below which an external tensor can hide
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_GRAPH_INPUT, _GRAPH_OUTPUT, _MODEL_GRAPH = 11, 12, 7
_TENSOR_NAME, _TENSOR_EXTERNAL, _TENSOR_LOCATION = 8, 13, 14
_MAX_DEPTH = 100  # protobuf's own limit on nested messages
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Dim = int | str  # a size, or the name of a symbolic dimension ("" when it has none)
Field = tuple[int, int, int, int]  # number, wire type, start and end of the value (varint: value, 0)


@dataclass(slots=True, frozen=True)
class ExternalTensor:
    """A tensor whose data lies in another file; offset and length are None when not given."""

    name: str
    location: str
    offset: int | None
    length: int | None


@dataclass(slots=True)
class GraphFacts:
    """Declared shapes of the main graph (None: the rank itself is not declared) and all external tensors."""

    inputs: dict[str, tuple[Dim, ...] | None] = field(default_factory=dict)
    outputs: dict[str, tuple[Dim, ...] | None] = field(default_factory=dict)
    external: list[ExternalTensor] = field(default_factory=list)


class _Malformed(Exception):
    """The bytes are not the protobuf wire format of an ONNX model."""


def read_graph_facts(path: Path) -> GraphFacts:
    """The facts of the ONNX file at `path`; LoadError when it is no regular file, empty or cut short."""
    mode = path.stat().st_mode if path.exists() else 0
    if not mode:
        raise LoadError(f"model file {path.name} does not exist")
    if not stat.S_ISREG(mode):
        raise LoadError(f"model file {path.name} is not a regular file")
    if path.stat().st_size == 0:
        raise LoadError(f"model file {path.name} is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        facts = GraphFacts()
        try:
            _read_model(data, facts)
        except (_Malformed, UnicodeDecodeError) as error:
            raise LoadError(f"{path.name} is not a complete ONNX file ({error})") from error
    return facts


def _read_model(data: mmap.mmap, facts: GraphFacts) -> None:
    end = len(data)
    has_graph = False
    for number, wire, start, stop in _fields(data, 0, end):
        if number == _MODEL_GRAPH and wire == _BYTES:
            has_graph = True
            for inner, _wire, first, last in _fields(data, start, stop):
                if inner in (_GRAPH_INPUT, _GRAPH_OUTPUT):
                    name, shape = _value_info(data, first, last)
                    (facts.inputs if inner == _GRAPH_INPUT else facts.outputs)[name] = shape
    if not has_graph:
        raise _Malformed("it has no graph")
    _find_external(data, "model", 0, end, facts.external, 0)


def _find_external(data: mmap.mmap, kind: str, start: int, end: int, found: list[ExternalTensor], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise _Malformed(f"messages nested deeper than {_MAX_DEPTH}")
    children = _CHILDREN[kind]
    for number, wire, first, last in _fields(data, start, end):
        child = children.get(number)
        if child is None or wire != _BYTES:
            continue
        if child == "tensor":
            _external_tensor(data, first, last, found)
        else:
            _find_external(data, child, first, last, found, depth + 1)


def _external_tensor(data: mmap.mmap, start: int, end: int, found: list[ExternalTensor]) -> None:
    name, is_external = "", False
    entries: dict[str, str] = {}
    for number, wire, first, last in _fields(data, start, end):
        if number == _TENSOR_NAME and wire == _BYTES:
            name = _text(data, first, last)
        elif number == _TENSOR_EXTERNAL and wire == _BYTES:
            is_external = True
            pair = {key: _text(data, a, b) for key, kind, a, b in _fields(data, first, last) if kind == _BYTES}
            entries[pair.get(1, "")] = pair.get(2, "")
        elif number == _TENSOR_LOCATION and wire == _VARINT:
            is_external = is_external or first == 1
    if is_external:
        offset, length = (_size(entries.get(key), key, name) for key in ("offset", "length"))
        found.append(ExternalTensor(name, entries.get("location", ""), offset, length))


def _size(text: str | None, key: str, tensor: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise _Malformed(f"external tensor {tensor!r} has {key} {text!r}")
    return int(text)


def _value_info(data: mmap.mmap, start: int, end: int) -> tuple[str, tuple[Dim, ...] | None]:
    """Name and shape of a ValueInfoProto; shape None when it is no tensor or declares no shape."""
    name = ""
    shape: tuple[Dim, ...] | None = None
    for number, wire, first, last in _fields(data, start, end):
        if number == 1 and wire == _BYTES:
            name = _text(data, first, last)
        elif number == 2 and wire == _BYTES:  # TypeProto
            for _tensor, _kind, a, b in _only(data, first, last, 1):
                for _shape, _kind2, c, d in _only(data, a, b, 2):
                    shape = tuple(_dim(data, e, f) for _dimension, _kind3, e, f in _only(data, c, d, 1))
    return name, shape


def _dim(data: mmap.mmap, start: int, end: int) -> Dim:
    value: Dim = ""
    for number, wire, first, last in _fields(data, start, end):
        if number == 1 and wire == _VARINT:
            value = first if first < 1 << 63 else ""  # negative: not a size
        elif number == 2 and wire == _BYTES:
            value = _text(data, first, last)
    return value


def _only(data: mmap.mmap, start: int, end: int, wanted: int) -> Iterator[Field]:
    return (one for one in _fields(data, start, end) if one[0] == wanted and one[1] == _BYTES)


def _text(data: mmap.mmap, start: int, end: int) -> str:
    return data[start:end].decode("utf-8")


def _fields(data: mmap.mmap, position: int, end: int) -> Iterator[Field]:
    """Every field of the message in data[position:end]: (number, wire type, start, end), varints by value."""
    while position < end:
        tag, position = _varint(data, position, end)
        number, wire = tag >> 3, tag & 7
        if wire == _BYTES:
            length, position = _varint(data, position, end)
            stop = position + length
        elif wire == _VARINT:
            value, position = _varint(data, position, end)
            yield number, wire, value, 0
            continue
        elif wire in (_FIXED64, _FIXED32):
            stop = position + (8 if wire == _FIXED64 else 4)
        else:
            raise _Malformed(f"wire type {wire} at byte {position}")
        if number == 0 or stop > end:
            raise _Malformed(f"field {number} at byte {position} runs past the end")
        yield number, wire, position, stop
        position = stop


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _Malformed(f"number cut short at byte {position}")
