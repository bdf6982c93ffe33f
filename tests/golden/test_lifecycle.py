"""The recorded load and unload cases, in the order they were sent, against a server of their own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.replay import differences, send
from golden.twins import write_repository
from server_process import ServerProcess

CLIENTS_FAULT = {"status": 400}  # Triton answers 500 to what the client sent wrong
UNKNOWN = {"status": 404}  # Triton answers 500
# Triton's health and readiness answers have no body, the kserve SDK reads ours.
WITH_BODY = {"compare": "status", "response_headers": {"Content-Type": "application/json"}}
DEVIATIONS: dict[str, dict[str, Any]] = {
    "load.unknown": UNKNOWN,
    "load.param_unknown": CLIENTS_FAULT,
    "load.config_malformed": CLIENTS_FAULT,
    "load.config_unknown_field": CLIENTS_FAULT,
    "load.file_without_config": CLIENTS_FAULT,
    "load.ready_after_reload": WITH_BODY,
    "load.ready_after_failure": {**WITH_BODY, "status": 503},
    "load.live_after_failure": WITH_BODY,
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    wanted = [part for name in write_repository(tmp_path) for part in ("--load-model", name)]
    options = ("--host", "127.0.0.1", "--model-control-mode", "explicit", "--allow-file-override")
    with ServerProcess(tmp_path, *options, *wanted) as running:
        yield running.url


def test_models_are_loaded_and_unloaded_as_recorded(url: str, repository_root: Path) -> None:
    # Not splitlines(): it also splits at U+2028.
    lines = (
        (repository_root / "tests/data/golden/lifecycle_cases.jsonl").read_text(encoding="utf-8").strip().split("\n")
    )
    cases = [json.loads(line) for line in lines]
    assert not DEVIATIONS.keys() - {case["id"] for case in cases}
    problems = []
    for case in cases:
        expected = {**case, **DEVIATIONS.get(case["id"], {})}
        found = differences(expected, send(expected, url))
        problems += [f"{case['id']} ({case['what']}): {one}" for one in found]
    assert not problems, "\n".join(problems)
