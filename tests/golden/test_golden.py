"""Every golden case against a server process: the recorded answer, or the documented deviation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden.deviations import DEVIATIONS, as_expected_here
from golden.replay import differences, is_same, load_cases, send
from golden.twins import write_repository
from server_process import ServerProcess

CASES = load_cases()


@pytest.fixture(scope="module", params=["infer-lane", "no-infer-lane"])
def golden_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that has the ONNX twins of the recorded models loaded, for each of its two HTTP paths."""
    folder = tmp_path_factory.mktemp("twins")
    wanted = [part for name in write_repository(folder) for part in ("--load-model", name)]
    arguments = ("--device", "cpu", "--host", "127.0.0.1", "--model-control-mode", "explicit", f"--{request.param}")
    with ServerProcess(folder, *arguments, *wanted) as running:
        yield running.url


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_answer_is_the_recorded_one_or_a_documented_deviation(case: dict[str, Any], golden_url: str) -> None:
    expected = as_expected_here(case)
    answer = send(expected, golden_url)
    found = differences(expected, answer)
    reason = DEVIATIONS.get(case["id"], ("", {}))[0]
    assert not found, f"{case['what']}{f' ({reason})' if reason else ''}: {'; '.join(found)}"
    assert answer.status is None or answer.status < 500 or answer.status in (case["status"], 501, 503)


def test_every_deviation_belongs_to_a_case_and_is_one() -> None:
    cases = {case["id"]: case for case in CASES}
    assert not DEVIATIONS.keys() - cases.keys()
    for name, (reason, change) in DEVIATIONS.items():
        assert reason
        assert any(cases[name].get(member) != value for member, value in change.items()), name


def test_the_comparison_tells_values_apart() -> None:
    assert is_same({"datatype": "FP32", "data": [0.1]}, {"datatype": "FP32", "data": [0.10000000149011612]})
    assert not is_same({"datatype": "FP64", "data": [0.1]}, {"datatype": "FP64", "data": [0.10000000149011612]})
    assert not is_same({"datatype": "FP32", "data": [0.0]}, {"datatype": "FP32", "data": [-0.0]})
    assert not is_same([True], [1])
    assert not is_same({"a": 1}, {"a": 1, "b": 2})
    assert is_same([float("nan")], [float("nan")])


def test_the_data_says_where_it_comes_from(repository_root: Path) -> None:
    text = (repository_root / "tests/data/golden/README.md").read_text(encoding="utf-8")
    assert "real Triton Inference Server 2.51" in text
