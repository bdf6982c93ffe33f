"""Limits of the queue, hang-ups and timeouts, asked of a real server with a slow model."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from fixture_models import write_repository
from server_process import ServerProcess
from v2_http import body, infer, infer_many, metric, outputs, stats, statuses, tensor

CONFIG = """
max_batch_size: 1
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { default_queue_policy { timeout_action: REJECT default_timeout_microseconds: %d max_queue_size: %d } }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    repository: Path = tmp_path_factory.mktemp("models")
    for name, timeout_us, size in (("short", 200_000, 50), ("narrow", 0, 2), ("wide", 0, 50)):
        write_repository(repository, ["slow"])
        (repository / "slow").rename(repository / name)
        (repository / name / "config.pbtxt").write_text(CONFIG % (timeout_us, size))
    write_repository(repository, ["echo_fp32"])
    with ServerProcess(repository, "--host", "127.0.0.1", "--intra-op-threads", "1") as running:
        yield running


@pytest.fixture(scope="module")
def iterations(server: ServerProcess) -> int:
    """How many rounds of the slow model take about 0.6 s here and now."""
    infer(server.url, "wide", *inputs(200))
    started = time.monotonic()
    infer(server.url, "wide", *inputs(2000))
    return int(2000 * 0.6 / (time.monotonic() - started))


def inputs(count: int) -> tuple[dict[str, object], ...]:
    return tensor("ITERS", [[count]], "INT64"), tensor("X", np.ones((1, 4)))


def hang_up(url: str, model: str, count: int, after_s: float, number: int) -> None:
    """Open that many requests and close their sockets before any answer."""
    split = urlsplit(url)
    content = httpx.Request("POST", url, json=body(*inputs(count))).content
    sockets = []
    for _ in range(number):
        one = socket.create_connection((split.hostname, split.port))
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
        one.sendall(head.encode() + content)
        sockets.append(one)
    time.sleep(after_s)
    for one in sockets:
        one.close()


def test_exactly_the_running_one_and_the_queue_limit_are_accepted(server: ServerProcess, iterations: int) -> None:
    for gap_s in (0.0, 0.005, 0.01):
        answers = infer_many(server.url, "narrow", [body(*inputs(iterations))] * 6, gap_s)
        assert sorted(statuses(answers)) == [200, 200, 200, 503, 503, 503]
        refused = next(answer for answer in answers if answer.status_code == 503)
        assert refused.headers["retry-after"]
        assert "Exceeds maximum queue size" in refused.json()["error"]
        assert refused.elapsed.total_seconds() < 0.5


def test_other_models_are_not_affected_by_a_full_queue(server: ServerProcess, iterations: int) -> None:
    answers = infer_many(server.url, "narrow", [body(*inputs(iterations))] * 4)
    assert 503 in statuses(answers)
    assert infer(server.url, "echo_fp32", tensor("X", np.ones((1, 4)))).status_code == 200


def test_a_queue_timeout_is_answered_when_it_is_due_not_when_the_running_request_ends(
    server: ServerProcess, iterations: int
) -> None:
    before = metric(server.url, "kernelport_requests_total", model="short", outcome="queue_timeout")
    running, waiting = infer_many(server.url, "short", [body(*inputs(4 * iterations)), body(*inputs(1))], 0.05)
    assert running.status_code == 200
    assert waiting.status_code == 503
    assert "Request timeout expired" in waiting.json()["error"]
    assert 0.19 < waiting.elapsed.total_seconds() < running.elapsed.total_seconds()
    assert metric(server.url, "kernelport_requests_total", model="short", outcome="queue_timeout") == before + 1


def test_hang_ups_free_the_queue_and_cost_nobody_else_anything(server: ServerProcess, iterations: int) -> None:
    before = stats(server.url, "wide")["execution_count"]
    cancelled = metric(server.url, "kernelport_requests_total", model="wide", outcome="cancelled")
    hang_up(server.url, "wide", iterations, 0.2, 15)
    found = infer(server.url, "wide", *inputs(1))
    assert outputs(found)["Y"].tolist() == [[1.0] * 4]
    assert stats(server.url, "wide")["execution_count"] <= before + 3
    assert metric(server.url, "kernelport_requests_total", model="wide", outcome="cancelled") == cancelled + 15
    assert metric(server.url, "kernelport_pending_requests", model="wide") == 0


def test_random_hang_ups_leave_the_batcher_working(server: ServerProcess) -> None:
    for _ in range(20):
        hang_up(server.url, "wide", 1, 0.002, 30)
    answers = infer_many(server.url, "echo_fp32", [body(tensor("X", np.full((1, 4), n))) for n in range(100)])
    assert [outputs(answer)["Y"][0, 0] for answer in answers] == list(range(100))
    assert infer(server.url, "wide", *inputs(1)).status_code == 200
