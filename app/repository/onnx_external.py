"""Which other files an ONNX model refers to, read from the wire format alone. Runs on: loader thread.

Only the structure is walked (tensors of the graph, of nodes' attributes, of sub-graphs, functions and sparse
initializers); the onnx package is not needed, and weights inside the file are skipped, not read.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from ..core.errors import LoadError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 64

# Message kinds, and which of their fields lead to which kind.
_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _TENSOR, _SPARSE, _FUNCTION, _ENTRY, _TRAINING = range(9)
_CHILDREN: dict[int, dict[int, int]] = {
    _MODEL: {7: _GRAPH, 20: _TRAINING, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
    _FUNCTION: {7: _NODE, 11: _ATTRIBUTE},
    _TRAINING: {1: _GRAPH, 2: _GRAPH},
    _TENSOR: {13: _ENTRY},
}


def external_locations(path: Path) -> tuple[str, ...]:
    """The `location` of every external tensor in an ONNX file, each once, sorted; raises LoadError if it is none.

    The file is mapped, so it must be one that nobody truncates meanwhile.
    """
    with open(path, "rb") as file:
        if path.stat().st_size == 0:
            raise LoadError(f"{path.name} is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            locations: set[str] = set()
            try:
                _walk(data, 0, len(data), _MODEL, locations, 0)
            except (IndexError, ValueError) as error:
                raise LoadError(f"{path.name} is cut short or no ONNX model ({error})") from error
    return tuple(sorted(locations))


def _walk(data: mmap.mmap, start: int, end: int, kind: int, locations: set[str], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if kind == _ENTRY:
        _read_entry(data, start, end, locations)
        return
    children = _CHILDREN[kind]
    position = start
    while position < end:
        tag, position = _varint(data, position, end)
        field, wire = tag >> 3, tag & 7
        if wire == _BYTES:
            size, position = _varint(data, position, end)
            if position + size > end:
                raise ValueError(f"a field of {size} bytes does not fit at byte {position}")
            child = children.get(field)
            if child is not None:
                _walk(data, position, position + size, child, locations, depth + 1)
            position += size
        else:
            position = _skip(data, position, end, wire)


def _read_entry(data: mmap.mmap, start: int, end: int, locations: set[str]) -> None:
    """One StringStringEntryProto: key and value."""
    texts = {1: b"", 2: b""}
    position = start
    while position < end:
        tag, position = _varint(data, position, end)
        if tag & 7 != _BYTES:
            position = _skip(data, position, end, tag & 7)
            continue
        size, position = _varint(data, position, end)
        if position + size > end:
            raise ValueError(f"a field of {size} bytes does not fit at byte {position}")
        texts[tag >> 3] = data[position : position + size]
        position += size
    if texts[1] == b"location":
        locations.add(texts[2].decode("utf-8"))


def _skip(data: mmap.mmap, position: int, end: int, wire: int) -> int:
    if wire == _VARINT:
        return _varint(data, position, end)[1]
    if wire in (_FIXED64, _FIXED32):
        position += 8 if wire == _FIXED64 else 4
        if position > end:
            raise ValueError("it ends inside a number")
        return position
    raise ValueError(f"wire type {wire} at byte {position}")


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= end or shift > 63:
            raise ValueError(f"it ends inside a number at byte {position}")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
