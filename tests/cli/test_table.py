"""Tables say what is served, in few words."""

import io

from kernelport.cli.table import duration_text, models_table, summary_text, urls_text
from kernelport.serving.overview import ModelRow
from rich.console import Console, RenderableType

ROWS = [
    ModelRow("resnet", "3", "onnxruntime", "cpu", 0.0421, "READY"),
    ModelRow("[bert]", "1", "onnxruntime", "cuda:0", 75.0, "UNAVAILABLE", "file [x] is not a model"),
]


def printed(renderable: RenderableType, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_each_model_is_a_line_with_all_that_is_known() -> None:
    header, _, first, second = [line.split() for line in printed(models_table(ROWS)).splitlines() if line.strip()]
    assert header == ["Model", "Version", "Backend", "Device", "Load", "State", "Reason"]
    assert first == ["resnet", "3", "onnxruntime", "cpu", "42", "ms", "READY"]
    assert second[:2] == ["[bert]", "1"]
    assert " ".join(second[-7:]) == "UNAVAILABLE file [x] is not a model"


def test_reasons_take_no_room_when_there_are_none() -> None:
    assert "Reason" not in printed(models_table(ROWS[:1]))


def test_long_reasons_are_folded_not_cut() -> None:
    row = ModelRow("m", "1", state="UNAVAILABLE", reason="because " * 30 + "THE-END")
    assert "THE-END" in printed(models_table([row]), width=80)


def test_durations_have_the_unit_that_reads_best() -> None:
    assert [duration_text(value) for value in (None, 0.0042, 1.25, 61.0)] == ["-", "4 ms", "1.2 s", "1 min 1 s"]


def test_the_summary_counts_ready_and_other_models() -> None:
    assert summary_text([]) == "0 models ready"
    assert summary_text(ROWS[:1]) == "1 model ready"
    assert summary_text(ROWS) == "1 model ready, 1 not ready"


def test_addresses_stand_under_each_other() -> None:
    assert urls_text([("infer", "http://a"), ("metrics", "http://b")]) == "infer    http://a\nmetrics  http://b"
    assert urls_text([]) == ""
