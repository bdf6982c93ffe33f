"""Swagger UI out of package files, and the document with examples that it shows."""

from __future__ import annotations

import re

import pytest


def test_the_page_loads_nothing_from_elsewhere(ask):
    page = ask("GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    links = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(links) == 4
    for link in links:
        assert "://" not in link
        assert ask("GET", f"/{link}").status_code == 200


@pytest.mark.parametrize(
    ("name", "content_type"),
    [("swagger-ui-bundle.js", "text/javascript"), ("swagger-ui.css", "text/css"), ("favicon-32x32.png", "image/png")],
)
def test_swagger_ui_files_have_their_type_and_may_be_cached(ask, name, content_type):
    answer = ask("GET", f"/docs/{name}")
    assert answer.headers["content-type"].startswith(content_type)
    assert answer.headers["cache-control"] == "max-age=3600"
    assert len(answer.content) > 500


def test_no_other_file_can_be_had(ask):
    for path in ("/docs/swagger-ui.css.map", "/docs/../pyproject.toml", "/docs/%2e%2e/main.py"):
        assert ask("GET", path).status_code == 404


def test_each_ready_model_has_an_operation_whose_example_works(ask):
    document = ask("GET", "/openapi.json").json()
    paths = [path for path, one in document["paths"].items() if "Loaded models" in one.get("post", {}).get("tags", ())]
    assert paths == ["/v2/models/echo/infer"]
    operation = document["paths"]["/v2/models/echo/infer"]["post"]
    assert "parameters" not in operation, "nothing to fill in"
    [example] = operation["requestBody"]["content"]["application/json"]["examples"].values()
    value = document["components"]["examples"][example["$ref"].rpartition("/")[2]]["value"]
    assert value["inputs"][0]["shape"] == [2, 4], "the shape that the warm-up ran with"
    assert ask("POST", "/v2/models/echo/infer", json=value).status_code == 200


def test_the_general_operation_offers_every_model(ask):
    operation = ask("GET", "/openapi.json").json()["paths"]["/v2/models/{model}/infer"]["post"]
    assert operation["parameters"][0]["examples"] == {"echo": {"value": "echo"}}
    assert list(operation["requestBody"]["content"]["application/json"]["examples"]) == ["echo"]


def test_a_server_without_models_publishes_the_plain_document(ask, control, app):
    control.specs.clear()
    assert ask("GET", "/openapi.json").json() == app.state.schema


def test_models_that_come_and_go_do_so_in_the_document_too(ask, control):
    control.serve("late")
    assert "/v2/models/late/infer" in ask("GET", "/openapi.json").json()["paths"]
    del control.specs["late"]
    assert "/v2/models/late/infer" not in ask("GET", "/openapi.json").json()["paths"]
