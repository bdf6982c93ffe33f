"""Inference through the FastAPI route: the same endpoint as the lane, another way in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from kernelport.core.errors import ModelNotReady, QueueFull

INFER = "/v2/models/echo/infer"
ROW = [1.0, 2.0, 3.0, 4.0]


def _body(**more: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32", "data": ROW}], **more}


@pytest.mark.parametrize("path", [INFER, "/v2/models/echo/versions/1/infer", "/v2/models/ech%6F/infer"])
def test_json_in_json_out(ask, path):
    answer = ask("POST", path, json=_body(id="seven"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "model_name": "echo",
        "model_version": "1" if "versions" in path else "3",
        "id": "seven",
        "outputs": [{"name": "Y", "datatype": "FP32", "shape": [1, 4], "data": ROW}],
    }


def test_the_answer_says_where_its_time_went(ask):
    assert "server-timing" in ask("POST", INFER, json=_body()).headers


def test_binary_in_binary_out(ask):
    tensor = np.array(ROW, "<f4").tobytes()
    head = json.dumps(
        {
            "inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    answer = ask("POST", INFER, content=head + tensor, headers={"Inference-Header-Content-Length": str(len(head))})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    split = int(answer.headers["inference-header-content-length"])
    assert answer.content[split:] == tensor
    assert json.loads(answer.content[:split])["outputs"][0]["parameters"] == {"binary_data_size": 16}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"nonsense", b'{"inputs": 1}', b"\xff\xfe"])
def test_a_malformed_body_is_400(ask, data, body):
    answer = ask("POST", INFER, content=body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert len(data.rejected) == 1


@pytest.mark.parametrize("length", ["x", "-1", "9999999"])
def test_a_bad_header_length_is_400(ask, length):
    assert ask("POST", INFER, json=_body(), headers={"Inference-Header-Content-Length": length}).status_code == 400


@pytest.mark.parametrize("path", ["/v2/models/nope/infer", "/v2/models/echo/versions/8/infer"])
def test_an_unknown_model_is_404(ask, path):
    answer = ask("POST", path, json=_body())
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "failure", [ModelNotReady("model 'echo' is loading"), QueueFull("1024 requests wait for model 'echo'")]
)
def test_what_can_be_tried_again_is_503_with_retry_after(ask, data, failure):
    data.failure = failure
    answer = ask("POST", INFER, json=_body())
    assert (answer.status_code, answer.json()) == (503, {"error": str(failure)})
    assert answer.headers["retry-after"] == "1"


def test_a_stopping_server_refuses(ask, gate):
    gate.is_open = False
    assert ask("POST", INFER, json=_body()).status_code == 503


def test_an_unknown_content_encoding_is_501_and_names_the_known_ones(ask):
    answer = ask("POST", INFER, json=_body(), headers={"content-encoding": "br"})
    assert answer.status_code == 501
    assert answer.headers["accept-encoding"] == "gzip, deflate"


def test_an_unexpected_failure_while_decoding_is_500(ask, data):
    data.failure = RuntimeError("the secret is 42")
    answer = ask("POST", INFER, json=_body())
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})


def test_a_client_that_hangs_up_cancels_its_call(app, data, gate):
    """Through every middleware: one that hid the disconnect would leave the call waiting for ever."""
    data.holds = True
    body = json.dumps(_body()).encode()

    async def hang_up() -> None:
        messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        messages.put_nowait({"type": "http.request", "body": body, "more_body": False})

        async def receive() -> dict[str, Any]:
            if messages.empty():
                assert data.held, "the call is waiting when the client leaves"
                return {"type": "http.disconnect"}
            return messages.get_nowait()

        async def send(message: dict[str, Any]) -> None:
            """Nobody listens any more."""

        await asyncio.wait_for(app(_scope("POST", INFER), receive, send), 10)

    asyncio.run(hang_up())
    [call] = data.held
    assert call.is_cancelled
    assert gate.in_flight == 0


def _scope(method: str, path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"server")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
