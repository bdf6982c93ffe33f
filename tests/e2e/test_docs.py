"""The documentation of a running server: its examples work, and a real browser can show it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _examples(url: str) -> dict[str, Any]:
    """Path to example body, for every loaded model."""
    document = httpx.get(f"{url}/openapi.json").raise_for_status().json()
    found = {}
    for path, operations in document["paths"].items():
        operation = operations.get("post", {})
        if "Loaded models" in operation.get("tags", ()):
            [example] = operation["requestBody"]["content"]["application/json"]["examples"].values()
            found[path] = document["components"]["examples"][example["$ref"].rpartition("/")[2]]["value"]
    return found


def test_the_example_of_every_model_works_as_it_stands(server, models):
    examples = _examples(server.url)
    assert len(examples) == len(list(models.iterdir()))
    answers = {path: httpx.post(server.url + path, json=body) for path, body in examples.items()}
    assert {path: one.text for path, one in answers.items() if one.status_code != 200} == {}


def test_free_dimensions_have_the_size_that_the_warm_up_ran_with(server):
    [tensor] = _examples(server.url)["/v2/models/varlen_sum/infer"]["inputs"]
    assert tensor["shape"] == [1, 8]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_a_browser_shows_an_operation_for_every_model(server, models, tmp_path: Path):
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    page = subprocess.run(
        [*command, "--virtual-time-budget=20000", "--dump-dom", f"{server.url}/docs"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout
    for folder in models.iterdir():
        assert f"Run {folder.name}" in page


def test_behind_a_path_prefix_the_documentation_finds_its_server(serve, models):
    server = serve("--model-path", models / "echo_fp32", "--root-path", "/behind/a/proxy")
    document = httpx.get(f"{server.url}/openapi.json").json()
    assert document["servers"] == [{"url": "/behind/a/proxy"}]
