"""Proxies that take the path prefix off, and proxies that leave it on."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest


def _get(app: Any, path: str, prefix: str) -> httpx.Response:
    async def main() -> httpx.Response:
        # As uvicorn does: the prefix is put before whatever path came.
        transport = httpx.ASGITransport(app, root_path=prefix)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.get(prefix + path)

    return asyncio.run(main())


@pytest.mark.parametrize("path", ["/v2/models/echo", "/kp/v2/models/echo"])
def test_the_prefix_may_be_there_or_not(app, path):
    assert _get(app, path, "/kp").json()["name"] == "echo"


@pytest.mark.parametrize("path", ["/kpx/v2/models/echo", "/kp/kp/v2/models/echo", "/kp/nothing"])
def test_other_paths_are_still_unknown(app, path):
    assert _get(app, path, "/kp").status_code == 404


def test_the_documentation_names_the_prefix_once(app):
    for path in ("/openapi.json", "/kp/openapi.json"):
        assert _get(app, path, "/kp").json()["servers"] == [{"url": "/kp"}]


def test_requests_are_counted_under_the_route_however_they_came(app):
    _get(app, "/v2/models/echo", "/kp")
    _get(app, "/kp/v2/models/echo", "/kp")
    text = _get(app, "/metrics", "/kp").text
    assert 'http_requests_total{method="GET",status="2xx",handler="/v2/models/{model}"} 2' in text
