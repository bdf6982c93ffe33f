"""Every event is counted exactly once, under the right outcome, and the sums add up."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from fixture_models import write_repository
from prometheus_client.parser import text_string_to_metric_families
from server_process import ServerProcess
from v2_http import body, infer, infer_many, metric, stats, tensor

SLOW = """
max_batch_size: 1
dynamic_batching { default_queue_policy { default_timeout_microseconds: 300000 max_queue_size: 1 } }
"""
GOOD = tensor("X", [[1, 2, 3, 4]])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    repository = write_repository(tmp_path / "models", ["echo_fp32", "gather_poison", "slow", "two_out"])
    (repository / "slow" / "config.pbtxt").write_text(SLOW)
    with ServerProcess(repository, "--host", "127.0.0.1") as running:
        yield running


def outcomes(url: str, model: str) -> dict[str, float]:
    """Requests of a model by outcome, and how many were received."""
    found: dict[str, float] = {}
    for line in httpx.get(f"{url}/metrics").text.splitlines():
        match = re.match(rf'kernelport_requests_total{{.*model="{model}".*}} (\S+)', line)
        if match:
            outcome = re.search(r'outcome="(\w+)"', line)
            assert outcome
            found[outcome[1]] = float(match[1])
    return found


def test_a_fresh_server_shows_every_series_at_zero(server: ServerProcess) -> None:
    assert set(outcomes(server.url, "echo_fp32").values()) == {0.0}
    for name in ("nv_inference_request_success", "nv_inference_count", "nv_inference_exec_count"):
        assert f'{name}{{model="echo_fp32",version="1"}} 0' in httpx.get(f"{server.url}/metrics").text


def test_each_failure_is_one_failure_with_its_outcome(server: ServerProcess) -> None:
    url = server.url
    bad = [
        {"content": b"{"},
        {"json": body(tensor("nope", [[1, 2, 3, 4]]))},
        {"json": body(tensor("X", [[1, 2, 3, 4]], "FP64"))},
        {"json": body(tensor("X", [[1, 2, 3]]))},
        {"json": body(GOOD, outputs=[{"name": "nope"}])},
    ]
    for number, request in enumerate(bad, 1):
        answer = httpx.post(f"{url}/v2/models/echo_fp32/infer", **request)  # type: ignore[arg-type]
        assert answer.status_code == 400, request
        found = outcomes(url, "echo_fp32")
        assert found["invalid"] == number
        assert sum(found.values()) == number
    assert infer(url, "gather_poison", tensor("IDX", [[99]], "INT64")).status_code == 400
    assert outcomes(url, "gather_poison") == {**dict.fromkeys(outcomes(url, "gather_poison"), 0.0), "backend": 1.0}
    before = len(httpx.get(f"{url}/metrics").text.splitlines())
    for number in range(20):
        assert infer(url, f"unknown-{number}", GOOD).status_code == 404
    assert "unknown-" not in httpx.get(f"{url}/metrics").text
    assert len(httpx.get(f"{url}/metrics").text.splitlines()) < before + 40


def test_queue_full_timeout_and_hang_up_have_outcomes_of_their_own(server: ServerProcess) -> None:
    url = server.url
    started = time.monotonic()
    infer(url, "slow", tensor("ITERS", [[1000]], "INT64"), GOOD)
    rounds = int(1000 / (time.monotonic() - started))
    running = body(tensor("ITERS", [[rounds]], "INT64"), GOOD)
    infer_many(url, "slow", [running, running, running], 0.05)
    found = outcomes(url, "slow")
    assert (found["success"], found["queue_full"], found["queue_timeout"]) == (2, 1, 1)
    split = urlsplit(url)
    content = httpx.Request("POST", url, json=running).content
    with socket.create_connection((split.hostname, split.port)) as gone:
        head = f"POST /v2/models/slow/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
        gone.sendall(head.encode() + content)
        time.sleep(0.2)
    deadline = time.monotonic() + 30
    while metric(url, "kernelport_in_flight_requests", model="slow") and time.monotonic() < deadline:
        time.sleep(0.05)
    found = outcomes(url, "slow")
    assert found["cancelled"] == 1
    assert sum(found.values()) == 5
    failures = {
        reason: metric(url, "nv_inference_request_failure", model="slow", reason=reason)
        for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    }
    assert failures == {"REJECTED": 2, "CANCELED": 1, "BACKEND": 0, "OTHER": 0}
    assert metric(url, "kernelport_pending_requests", model="slow") == 0
    assert metric(url, "kernelport_in_flight_requests", model="slow") == 0


def test_rows_executions_and_histograms_agree(server: ServerProcess) -> None:
    url = server.url
    infer_many(url, "two_out", [body(tensor("X", np.ones((3, 4))))] * 10)
    found = stats(url, "two_out")
    assert found["inference_stats"]["success"]["count"] == 10
    assert found["inference_count"] == 30
    assert sum(one["batch_size"] * one["compute_infer"]["count"] for one in found["batch_stats"]) == 30
    assert sum(one["compute_infer"]["count"] for one in found["batch_stats"]) == found["execution_count"]
    families = {one.name: one for one in text_string_to_metric_families(httpx.get(f"{url}/metrics").text)}
    for name, family in families.items():
        counts = [
            sample.value
            for sample in family.samples
            if sample.name == f"{name}_count" and sample.labels.get("model") == "two_out"
        ]
        if name.endswith("_seconds") and counts and "encode" not in name:
            assert set(counts) <= {10.0}, name
    assert metric(url, "nv_inference_count", model="two_out") == 30
    assert metric(url, "nv_inference_exec_count", model="two_out") == found["execution_count"]
