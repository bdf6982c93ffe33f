"""What clients ask of the shared-memory extensions before they start."""

from __future__ import annotations

import pytest

KINDS = ["/v2/systemsharedmemory", "/v2/cudasharedmemory"]


@pytest.mark.parametrize("root", KINDS)
def test_no_region_is_registered(ask, root):
    assert ask("GET", f"{root}/status").json() == []
    answer = ask("GET", f"{root}/region/r1/status")
    assert answer.status_code == 404
    assert "r1" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/unregister", "/region/r1/unregister"])
@pytest.mark.parametrize("root", KINDS)
def test_unregistering_always_works(ask, root, path):
    answer = ask("POST", root + path)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("path", ["/register", "/region/r1/register"])
@pytest.mark.parametrize("root", KINDS)
def test_registering_is_refused_with_501(ask, root, path):
    answer = ask("POST", root + path, json={"key": "/k", "byte_size": 64})
    assert answer.status_code == 501
    assert "binary" in answer.json()["error"]
