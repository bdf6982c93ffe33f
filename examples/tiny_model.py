"""Writes a complete ONNX model with nothing but the standard library: y = x W + b.

usage: python examples/tiny_model.py FILE.onnx

The answer tells at a glance whether a server is right: for a row of four numbers it is their sum, their mean and the
last minus the first. The same file is the built-in model that a server without models serves.
"""

import struct
import sys
from pathlib import Path

FLOAT = 1
WEIGHTS = [[1.0, 0.25, -1.0], [1.0, 0.25, 0.0], [1.0, 0.25, 0.0], [1.0, 0.25, 1.0]]


def varint(value: int) -> bytes:
    """A number in protobuf's wire format."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """A number field of a message."""
    return varint(field << 3) + varint(value)


def block(field: int, value: bytes | str) -> bytes:
    """A text, bytes or message field of a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name: str, dims: list[int], values: list[float]) -> bytes:
    """TensorProto of floats."""
    sizes = b"".join(number(1, size) for size in dims)
    return sizes + number(2, FLOAT) + block(8, name) + block(9, struct.pack(f"<{len(values)}f", *values))


def value_info(name: str, dims: list[int | str]) -> bytes:
    """ValueInfoProto of a float tensor; a dimension that is a text is free and has that name."""
    shape = b"".join(block(1, block(2, dim) if isinstance(dim, str) else number(1, dim)) for dim in dims)
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, shape)))


def node(kind: str, inputs: list[str], output: str) -> bytes:
    """NodeProto."""
    return b"".join(block(1, name) for name in inputs) + block(2, output) + block(4, kind)


def tiny_model() -> bytes:
    """ModelProto: x FP32 [batch, 4] to y FP32 [batch, 3]."""
    graph = (
        block(1, node("MatMul", ["x", "W"], "xW"))
        + block(1, node("Add", ["xW", "b"], "y"))
        + block(2, "tiny")
        + block(5, tensor("W", [4, 3], [value for row in WEIGHTS for value in row]))
        + block(5, tensor("b", [3], [0.0, 0.0, 0.0]))
        + block(11, value_info("x", ["batch", 4]))
        + block(12, value_info("y", ["batch", 3]))
    )
    opset = block(1, "") + number(2, 13)
    return number(1, 8) + block(2, "kernelport") + block(7, graph) + block(8, opset)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(tiny_model())
