"""The OpenAPI document with models in it."""

from __future__ import annotations

from typing import Any

from kernelport.asgi import create_schema
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import FP32, TensorSpec
from kernelport.routers.examples import MAX_DOCUMENT_ELEMENTS, MAX_ELEMENTS
from kernelport.routers.schema import with_examples

URL = "http://localhost:8080"


def _model(name: str, width: int) -> ModelSpec:
    return ModelSpec(
        name, "1", "onnxruntime_onnx", "onnxruntime", 0, (TensorSpec("x", FP32, (1, width)),),
        (TensorSpec("y", FP32, None),),
    )  # fmt: skip


def test_a_model_with_a_long_input_gets_a_command_line_instead_of_an_example():
    document = with_examples(
        create_schema(), [(_model("long", MAX_ELEMENTS + 1), {}), (_model("short", 3), {})], "http://host:9000/behind"
    )
    run = document["paths"]["/v2/models/long/infer"]["post"]
    assert "curl --data-binary" in run["description"]
    assert "http://host:9000/behind/v2/models/long/infer" in run["description"]
    assert "examples" not in run["requestBody"]["content"]["application/json"]
    general = document["paths"]["/v2/models/{model}/infer"]["post"]
    assert list(general["parameters"][0]["examples"]) == ["long", "short"]
    assert list(general["requestBody"]["content"]["application/json"]["examples"]) == ["short"]


def test_names_with_special_characters_make_valid_paths_and_references():
    document = with_examples(create_schema(), [(_model("a {b}~/ü", 1), {})], URL)
    [path] = [one for one in document["paths"] if "%7Bb%7D" in one]
    assert path == "/v2/models/a%20%7Bb%7D~%2F%C3%BC/infer"
    assert list(document["components"]["examples"]) == ["model-0"]


def test_the_document_behind_a_proxy_names_the_prefix():
    assert with_examples(create_schema(), [], f"{URL}/behind")["servers"] == [{"url": "/behind"}]
    assert "servers" not in with_examples(create_schema(), [], URL)


def test_examples_never_leak_into_the_plain_document():
    base = create_schema()
    with_examples(base, [(_model("short", 3), {})], URL)
    assert base == create_schema()


def test_operations_have_unique_ids():
    document = with_examples(create_schema(), [(_model("one", 1), {}), (_model("two", 1), {})], URL)
    ids = [one["operationId"] for operations in document["paths"].values() for one in operations.values()]
    assert len(ids) == len(set(ids))


def test_many_large_models_do_not_make_an_endless_document():
    models: list[Any] = [(_model(f"m{number}", MAX_ELEMENTS), {}) for number in range(20)]
    document = with_examples(create_schema(), models, URL)
    assert len(document["components"]["examples"]) == MAX_DOCUMENT_ELEMENTS // MAX_ELEMENTS
    assert "curl" in document["paths"]["/v2/models/m19/infer"]["post"]["description"]
