"""Infer requests as bytes, and what their answers must be."""

from __future__ import annotations

import numpy as np
import orjson
from fakes.http_server import Answer, RawClient

X = [1.0, 2.0, 3.0, 4.0]


def json_body(rows: int = 1, **members: object) -> bytes:
    return orjson.dumps(
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 4], "data": X * rows}], **members}
    )


def binary_body(rows: int = 1, binary_output: bool = True) -> tuple[bytes, int]:
    data = np.tile(np.array(X, np.float32), rows).tobytes()
    head = orjson.dumps(
        {
            "inputs": [
                {
                    "name": "x",
                    "datatype": "FP32",
                    "shape": [rows, 4],
                    "parameters": {"binary_data_size": len(data)},
                }
            ],
            "parameters": {"binary_data_output": binary_output},
        }
    )
    return head + data, len(head)


def infer(body: bytes, model: str = "echo", *fields: str, length: int | None = None, method: str = "POST") -> bytes:
    """A whole request; `fields` are extra header lines."""
    size = len(body) if length is None else length
    path = model if "/" in model else f"/v2/models/{model}/infer"
    lines = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {size}", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def outputs(answer: Answer) -> list[float]:
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/json"
    found: list[float] = answer.json["outputs"][0]["data"]
    return found


def check_echo(client: RawClient) -> None:
    """The connection is good for one more inference."""
    assert outputs(client.ask(infer(json_body()))) == X
