"""The kserve SDK's REST client, which needs an environment of its own.

`KERNELPORT_KSERVE_PYTHON` names its interpreter; the one that the benchmarks make is found by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# Read at import, because the tests themselves run without the developer's KERNELPORT_* variables.
PYTHON = Path(os.environ.get("KERNELPORT_KSERVE_PYTHON", ROOT / "benchmarks/envs/kserve/bin/python"))

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="no environment with the kserve SDK: set KERNELPORT_KSERVE_PYTHON"
)


@pytest.fixture(scope="module")
def seen(server) -> dict[str, Any]:
    """What the client saw."""
    script = Path(__file__).parent / "clients" / "kserve_session.py"
    done = subprocess.run([PYTHON, script, server.url], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_health_is_read_from_the_bodies(seen):
    assert (seen["live"], seen["live_v1"], seen["ready"]) == (True, True, True)
    assert (seen["model_ready"], seen["unknown_ready"]) == (True, False)


@pytest.mark.parametrize("form", ["json", "binary_in", "binary_both", "binary_out"])
def test_numbers_come_back_in_every_form(seen, form):
    assert seen[form] == ["echo_fp32", [[1, 2.5, -3, 4]]]


def test_an_empty_binary_tensor_with_null_data_beside_it_is_taken(seen):
    assert seen["empty"] == ["echo_flex", [[]]]


def test_texts_come_back(seen):
    assert seen["texts"][1] == [["a", "größe", "", "d"]]


def test_callers_at_once_each_get_their_own_row(seen):
    assert seen["many"] == list(range(32))


def test_not_a_number_is_sent_and_read_as_null(seen):
    assert seen["nan"] == [None, 1, 2, 3]


def test_the_text_of_an_error_reaches_the_user(seen):
    status, text = seen["error"]
    assert status == 404
    assert "nope" in text
