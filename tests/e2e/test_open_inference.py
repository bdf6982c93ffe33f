"""Every operation of the Open Inference Protocol, asked of a running server and checked member by member."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

OIP = json.loads((Path(__file__).resolve().parent.parent / "data" / "oip_required.json").read_text())
TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "array": list, "object": dict}

REQUEST = {
    "id": "42",
    "parameters": {"colour": "blue"},
    "inputs": [{"name": "X", "shape": [2, 4], "datatype": "FP32", "data": [[1, 2, 3, 4], [5, 6, 7, 8]]}],
    "outputs": [{"name": "Y"}],
}


def _check(value: Any, wanted: str) -> None:
    """`wanted` is a JSON type, the name of a schema of the protocol, or "array of" one of them."""
    if wanted.startswith("array of "):
        assert isinstance(value, list)
        for one in value:
            _check(one, wanted.removeprefix("array of "))
        return
    schema = OIP["schemas"].get(wanted)
    if schema is None or "type" in schema:
        assert isinstance(value, TYPES[wanted if schema is None else schema["type"]])
        return
    assert set(schema["required"]) <= set(value)
    for member, kind in schema["members"].items():
        if member in value:
            _check(value[member], kind)


@pytest.mark.parametrize("operation", OIP["operations"], ids=lambda one: f"{one['method']} {one['path']}")
def test_the_answer_has_what_the_protocol_requires(server, operation):
    path = operation["path"].replace("{model}", "echo_fp32").replace("{version}", "1")
    body = REQUEST if operation["method"] == "post" else None
    answer = httpx.request(operation["method"], server.url + path, json=body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    if "answers" in operation:
        _check(answer.json(), operation["answers"])
    if body is not None:
        assert answer.json()["id"] == "42"
        assert [one["name"] for one in answer.json()["outputs"]] == ["Y"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_error_has_the_body_of_the_protocol(server, method):
    path = "/v2/models/nope" + ("/infer" if method == "POST" else "")
    answer = httpx.request(method, server.url + path, json=REQUEST if method == "POST" else None)
    assert answer.status_code == 404
    _check(answer.json(), "inference_error_response")
