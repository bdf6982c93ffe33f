"""Index, load and unload over HTTP."""

from __future__ import annotations

import base64
import json

import pytest

INDEX = "/v2/repository/index"
LOAD = "/v2/repository/models/{}/load"
UNLOAD = "/v2/repository/models/{}/unload"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"ready": false}'])
def test_the_index_is_an_array_with_states_and_reasons(ask, control, body):
    control.failed["bad"] = "not an ONNX file"
    assert ask("POST", INDEX, content=body).json() == [
        {"name": "echo", "version": "1", "state": "READY"},
        {"name": "echo", "version": "3", "state": "READY"},
        {"name": "bad", "version": "1", "state": "UNAVAILABLE", "reason": "not an ONNX file"},
        {"name": "sleeping"},
    ]


def test_the_index_can_be_of_ready_models_only(ask):
    assert {one["name"] for one in ask("POST", INDEX, content=b'{"ready": true}').json()} == {"echo"}


def test_the_index_ignores_a_repository_name(ask):
    assert ask("POST", "/v2/repository/any/index").json() == ask("POST", INDEX).json()


@pytest.mark.parametrize("body", [b"{", b'{"ready": "yes"}', b"nonsense"])
def test_a_malformed_index_request_is_400(ask, body):
    assert ask("POST", INDEX, content=body).status_code == 400


@pytest.mark.parametrize("body", [b"", b"{}", b'{"parameters": {}}'])
def test_load_answers_200_with_an_empty_body_once_the_model_is_there(ask, control, body):
    answer = ask("POST", LOAD.format("fresh"), content=body)
    assert (answer.status_code, answer.content) == (200, b"")
    assert control.loads == [("fresh", None, None)]


def test_load_hands_configuration_and_files_on(ask, control):
    parameters = {
        "config": json.dumps({"max_batch_size": 4}),
        "file:1/model.onnx": base64.b64encode(b"\x00onnx").decode(),
    }
    assert ask("POST", LOAD.format("fresh"), json={"parameters": parameters}).status_code == 200
    [(name, config, files)] = control.loads
    assert (name, config) == ("fresh", {"max_batch_size": 4})
    assert files is not None
    assert list(files.values()) == [b"\x00onnx"]


@pytest.mark.parametrize(
    ("name", "status", "text"), [("broken", 400, "not an ONNX file"), ("missing", 404, "in no repository")]
)
def test_a_load_that_fails_says_why(ask, name, status, text):
    answer = ask("POST", LOAD.format(name))
    assert answer.status_code == status
    assert text in answer.json()["error"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"parameters": {"config": 7}}', b'{"parameters": {"file:1/x": "!"}}', b'{"parameters": []}']
)
def test_a_malformed_load_request_is_400_and_loads_nothing(ask, control, body):
    assert ask("POST", LOAD.format("fresh"), content=body).status_code == 400
    assert control.loads == []


@pytest.mark.parametrize("name", ["echo", "never-heard-of"])
@pytest.mark.parametrize("body", [b"", b"{}", b'{"parameters": {"unload_dependents": true}}'])
def test_unload_answers_200_with_an_empty_body_for_any_model(ask, control, name, body):
    answer = ask("POST", UNLOAD.format(name), content=body)
    assert (answer.status_code, answer.content) == (200, b"")
    assert name not in control.specs


@pytest.mark.parametrize("mode", ["none", "poll"])
@pytest.mark.parametrize("path", [LOAD, UNLOAD])
def test_load_and_unload_are_503_unless_the_mode_is_explicit(ask, control, mode, path):
    control.mode = mode
    answer = ask("POST", path.format("echo"))
    assert answer.status_code == 503
    assert "--model-control-mode explicit" in answer.json()["error"]
    assert "echo" in control.specs


@pytest.mark.parametrize("action", ["load", "unload"])
def test_a_repository_name_in_the_path_of_load_and_unload_is_501(ask, action):
    assert ask("POST", f"/v2/repository/other/models/echo/{action}").status_code == 501
