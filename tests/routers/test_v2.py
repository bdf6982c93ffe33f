"""Server metadata."""

from __future__ import annotations

import pytest
from kernelport import __version__


@pytest.mark.parametrize("path", ["/v2", "/v2/"])
def test_server_metadata_has_name_version_and_extensions(ask, path):
    body = ask("GET", path).json()
    assert (body["name"], body["version"]) == ("kernelport", __version__)
    assert "binary_tensor_data" in body["extensions"]
    assert "statistics" in body["extensions"]  # perf_analyzer reports server times only then
