"""The published schema: equal to the app's, and complete by the Open Inference Protocol."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kernelport.asgi import write_schema

ROOT = Path(__file__).parent.parent
OIP = json.loads((ROOT / "tests/data/oip_required.json").read_text())


def _published() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "openapi/openapi.yaml").read_text())
    return document


def _resolve(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _has_type(schema: dict[str, Any], wanted: str, document: dict[str, Any]) -> bool:
    """`wanted` is a JSON type, the OIP name of a schema, or "array of" one of them."""
    if wanted.startswith("array of "):
        found = _resolve(schema, document)
        return found["type"] == "array" and _has_type(found["items"], wanted.removeprefix("array of "), document)
    if wanted in OIP["schemas"]:
        return schema == {"$ref": f"#/components/schemas/{OIP['schemas'][wanted]['name']}"}
    return bool(_resolve(schema, document)["type"] == wanted)


def test_the_published_schema_is_the_one_the_app_generates() -> None:
    generated = io.StringIO()
    write_schema(generated)
    assert yaml.safe_load(generated.getvalue()) == _published(), "run: python -m kernelport.asgi > openapi/openapi.yaml"


@pytest.mark.parametrize("operation", OIP["operations"], ids=lambda one: f"{one['method']} {one['path']}")
def test_every_operation_of_the_protocol_is_published(operation: dict[str, Any]) -> None:
    document = _published()
    published = document["paths"][operation["path"]][operation["method"]]
    assert set(operation["statuses"]) <= set(published["responses"])
    if "answers" in operation:
        schema = published["responses"]["200"]["content"]["application/json"]["schema"]
        assert _has_type(schema, operation["answers"], document)
    if "takes" in operation:
        assert _has_type(
            published["requestBody"]["content"]["application/json"]["schema"], operation["takes"], document
        )


@pytest.mark.parametrize("oip_name", [name for name, one in OIP["schemas"].items() if "members" in one])
def test_every_member_of_the_protocol_is_published(oip_name: str) -> None:
    document = _published()
    wanted = OIP["schemas"][oip_name]
    schema = document["components"]["schemas"][wanted["name"]]
    for member, kind in wanted["members"].items():
        assert _has_type(schema["properties"][member], kind, document), member
    if wanted["direction"] == "answer":
        assert set(wanted["required"]) <= set(schema["required"]), "we promise less than the protocol"
    else:
        assert set(schema["required"]) <= set(wanted["required"]), "we demand more than the protocol"


def test_every_reference_in_the_published_schema_leads_somewhere() -> None:
    document = _published()
    text = json.dumps(document)
    used = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= set(document["components"]["schemas"])
    assert set(document["components"]["schemas"]) <= used, "schemas that nothing uses"


def test_every_error_in_the_published_schema_has_the_one_error_body() -> None:
    for path, operations in _published()["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"]
            for status, response in operation["responses"].items():
                if status == "200" or path in ("/livez", "/readyz", "/v2/health/live", "/v2/health/ready"):
                    continue
                assert response["content"] == {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
