"""Right answers under batching, asked of a real server from outside."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from fixture_models import write_repository
from server_process import ServerProcess
from v2_http import body, infer, infer_many, metric, outputs, stats, statuses, tensor

BATCHED = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 100000 }\n"
NAMES = ("gather_poison", "batch_collapse", "batch_double", "two_out", "two_in", "varlen_sum", "sub_ab", "echo_flex")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    repository: Path = write_repository(tmp_path_factory.mktemp("models"), NAMES)
    for name in NAMES[:-1]:
        (repository / name / "config.pbtxt").write_text(BATCHED)
    (repository / "echo_flex" / "model.yaml").write_text("max_batch_size: 8\nsplit_oversized: true\n")
    with ServerProcess(repository, "--host", "127.0.0.1") as running:
        yield running


def test_every_caller_gets_its_own_rows_whatever_it_was_batched_with(server: ServerProcess) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((1 + number % 3, 4)).astype(np.float32) for number in range(200)]
    before = stats(server.url, "two_out")
    answers = infer_many(server.url, "two_out", [body(tensor("X", array)) for array in arrays])
    for array, answer in zip(arrays, answers, strict=True):
        found = outputs(answer)
        assert np.array_equal(found["Y0"], array)
        assert np.array_equal(found["Y1"], -array)
    after = stats(server.url, "two_out")
    assert after["inference_count"] - before["inference_count"] == sum(map(len, arrays))
    assert after["execution_count"] - before["execution_count"] < len(arrays)
    assert max(one["batch_size"] for one in after["batch_stats"]) <= 8
    assert (
        sum(one["batch_size"] * one["compute_infer"]["count"] for one in after["batch_stats"])
        == after["inference_count"]
    )


def test_one_poisoned_request_fails_alone_and_is_counted_once(server: ServerProcess) -> None:
    for round_number in range(10):
        where = random.Random(round_number).randrange(8)
        before = metric(server.url, "nv_inference_request_failure", model="gather_poison")
        bodies = [body(tensor("IDX", [[99 if place == where else 1]], "INT64")) for place in range(8)]
        answers = infer_many(server.url, "gather_poison", bodies)
        assert statuses(answers) == [400 if place == where else 200 for place in range(8)], answers[where].text
        assert all(outputs(answer)["Y"].tolist() == [[10.0]] for place, answer in enumerate(answers) if place != where)
        assert metric(server.url, "nv_inference_request_failure", model="gather_poison") == before + 1


def test_requested_outputs_ids_and_encodings_are_each_callers_own(server: ServerProcess) -> None:
    x = tensor("X", [[1, 2, 3, 4]])
    asked = [
        body(x, id="a", outputs=[{"name": "Y0"}]),
        body(x, id="b", outputs=[{"name": "Y1"}]),
        body(x, id="c"),
        body(x, id="d", outputs=[{"name": "Y1", "parameters": {"binary_data": True}}]),
    ]
    first, second, third, fourth = infer_many(server.url, "two_out", asked)
    assert [one.json()["id"] for one in (first, second, third)] == ["a", "b", "c"]
    assert [list(outputs(one)) for one in (first, second, third)] == [["Y0"], ["Y1"], ["Y0", "Y1"]]
    assert fourth.content.endswith(np.array([-1, -2, -3, -4], np.float32).tobytes())
    assert b'"id":"d"' in fourth.content


def test_different_lengths_wait_side_by_side(server: ServerProcess) -> None:
    bodies = [body(tensor("X", np.ones((1, 3 + 2 * (number % 2))))) for number in range(60)]
    answers = infer_many(server.url, "varlen_sum", bodies)
    assert [outputs(answer)["Y"].tolist() for answer in answers] == [[[3.0 + 2 * (number % 2)]] for number in range(60)]


def test_a_model_that_doubles_the_rows_never_gives_foreign_rows(server: ServerProcess) -> None:
    arrays = [np.full((1, 4), number, np.float32) for number in range(4)]
    for answer in infer_many(server.url, "batch_double", [body(tensor("X", one)) for one in arrays]):
        assert answer.status_code == 500
        assert "output 'Y' has shape [2, 4] for 1 rows in" in answer.json()["error"]


def test_a_model_whose_output_cannot_have_a_batch_is_not_loaded_with_one(server: ServerProcess) -> None:
    (line,) = [one for one in httpx.post(f"{server.url}/v2/repository/index").json() if one["name"] == "batch_collapse"]
    assert line["state"] == "UNAVAILABLE"
    assert "output 'Y': max_batch_size is 8, but model dim 0 is fixed at 1" in line["reason"]


def test_a_request_over_the_maximum_is_refused_with_both_numbers(server: ServerProcess) -> None:
    assert infer(server.url, "two_out", tensor("X", np.ones((8, 4)))).status_code == 200
    refused = infer(server.url, "two_out", tensor("X", np.ones((9, 4))))
    assert refused.status_code == 400
    assert "9" in refused.json()["error"]
    assert "8" in refused.json()["error"]
    assert "two_out" in refused.json()["error"]


def test_a_request_over_the_maximum_is_split_where_the_model_says_so(server: ServerProcess) -> None:
    array = np.arange(21 * 5, dtype=np.float32).reshape(21, 5)
    before = metric(server.url, "kernelport_requests_total", model="echo_flex", outcome="success")
    assert np.array_equal(outputs(infer(server.url, "echo_flex", tensor("X", array)))["Y"], array)
    assert metric(server.url, "kernelport_requests_total", model="echo_flex", outcome="success") == before + 1


def test_inputs_with_different_numbers_of_rows_are_refused(server: ServerProcess) -> None:
    answer = infer(server.url, "sub_ab", tensor("A", np.ones((3, 4))), tensor("B", np.ones((1, 4))))
    assert answer.status_code == 400


def test_batches_of_changing_size_keep_every_row_right(server: ServerProcess) -> None:
    for rows in (8, 2, 8, 1, 7):
        array = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        found = outputs(infer(server.url, "sub_ab", tensor("A", array), tensor("B", np.ones((rows, 4)))))
        assert np.allclose(found["Y"], array - 1)
