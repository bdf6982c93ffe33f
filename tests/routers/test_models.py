"""Metadata, readiness, configuration and statistics of models."""

from __future__ import annotations

import pytest


def test_the_model_list_has_the_ready_models(ask, control):
    control.serve("another")
    assert ask("GET", "/v2/models").json() == {"models": ["another", "echo"]}


def test_model_metadata_lists_the_served_versions_as_strings(ask):
    assert ask("GET", "/v2/models/echo").json() == {
        "name": "echo",
        "versions": ["1", "3"],
        "platform": "onnxruntime_onnx",
        "inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "Y", "datatype": "FP32", "shape": [-1, 4]}],
    }


def test_metadata_with_a_version_lists_only_that_one(ask):
    assert ask("GET", "/v2/models/echo/versions/1").json()["versions"] == ["1"]


def test_a_query_string_does_not_choose_a_version(ask):
    assert ask("GET", "/v2/models/echo?version=1").json()["versions"] == ["1", "3"]


def test_percent_escapes_in_a_model_name_are_decoded(ask, control):
    control.serve("模 型")
    assert ask("GET", "/v2/models/%E6%A8%A1%20%E5%9E%8B").status_code == 200
    assert ask("GET", "/v2/models/ech%6F").status_code == 200


@pytest.mark.parametrize("what", ["", "/config"])
@pytest.mark.parametrize("path", ["/v2/models/nope", "/v2/models/echo/versions/7", "/v2/models/echo/versions/01"])
def test_unknown_models_and_versions_are_404(ask, path, what):
    answer = ask("GET", path + what)
    assert answer.status_code == 404
    assert "unknown model" in answer.json()["error"]


@pytest.mark.parametrize("version", ["abc", "-1", "+1", "1.0", "1_0", "%201", "２", "latest"])
@pytest.mark.parametrize("what", ["", "/ready", "/config", "/stats"])
def test_a_version_that_is_no_row_of_digits_is_an_unknown_path(ask, version, what):
    answer = ask("GET", f"/v2/models/echo/versions/{version}{what}")
    assert (answer.status_code, answer.json()) == (404, {"error": "Not Found"})


def test_a_ready_model_says_so_in_json(ask):
    for path in ("/v2/models/echo/ready", "/v2/models/echo/versions/3/ready"):
        answer = ask("GET", path)
        assert (answer.status_code, answer.json()) == (200, {"name": "echo", "ready": True})


@pytest.mark.parametrize("path", ["/v2/models/nope/ready", "/v2/models/echo/versions/9/ready"])
def test_a_model_that_is_not_ready_or_unknown_is_400(ask, path):
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()) == (400, {"error": "Model version not ready"})


def test_configuration_comes_with_and_without_a_version(ask):
    for path in ("/v2/models/echo/config", "/v2/models/echo/versions/1/config"):
        assert ask("GET", path).json()["max_batch_size"] == 8


def test_statistics_have_one_entry_for_each_version(ask):
    versions = [one["version"] for one in ask("GET", "/v2/models/echo/stats").json()["model_stats"]]
    assert versions == ["1", "3"]
    assert len(ask("GET", "/v2/models/echo/versions/3/stats").json()["model_stats"]) == 1


def test_statistics_of_all_models_shadow_a_model_named_stats(ask, control):
    control.serve("stats")
    assert "model_stats" in ask("GET", "/v2/models/stats").json()


def test_statistics_of_an_unknown_model_are_400(ask):
    answer = ask("GET", "/v2/models/nope/stats")
    assert (answer.status_code, "nope" in answer.json()["error"]) == (400, True)
