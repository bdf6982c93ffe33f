"""`check` finds what is wrong with a repository before a server does."""

import json
from pathlib import Path

import pytest
from kernelport.cli.main import main

TINY = Path(__file__).resolve().parent.parent.parent / "app" / "builtin" / "tiny" / "1" / "model.onnx"
Capture = pytest.CaptureFixture[str]


def put(root: Path, name: str, config: str = "", content: bytes | None = None) -> None:
    folder = root / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(TINY.read_bytes() if content is None else content)
    if config:
        (root / name / "model.yaml").write_text(config)


def findings(capsys: Capture) -> dict[str, dict[str, list[str]]]:
    """What was found, by model and level."""
    result: dict[str, dict[str, list[str]]] = {}
    for one in json.loads(capsys.readouterr().out):
        result.setdefault(one["model"], {}).setdefault(one["level"], []).append(one["text"])
    return result


def test_a_sound_repository_has_exit_code_zero_and_tells_how_it_will_be_served(tmp_path: Path, capsys: Capture) -> None:
    put(tmp_path, "good")
    assert main(["check", str(tmp_path), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "good 1: onnxruntime on cpu, max_batch_size 32, requests are merged" in said
    assert "input x (FP32 [-1,4])" in said
    assert said.splitlines()[-1] == "1 model, 0 errors, 0 warnings"


def test_every_broken_model_is_told_with_its_cure(tmp_path: Path, capsys: Capture) -> None:
    put(tmp_path, "good")
    put(tmp_path, "garbage", content=b"this is not a model")
    put(tmp_path, "misspelt", "max_bach_size: 4\n")
    put(tmp_path, "wrong_name", "input:\n  - name: z\n    data_type: TYPE_FP32\n    dims: [4]\n")
    put(tmp_path, "unknown_backend", "backend: onnxruntim\n")
    (tmp_path / "empty" / "1").mkdir(parents=True)
    assert main(["check", str(tmp_path), "--json", "--device", "cpu"]) == 1
    found = findings(capsys)
    assert "ok" in found["good"]
    assert "did you mean 'max_batch_size'?" in found["misspelt"]["error"][0]
    assert "did you mean 'onnxruntime'?" in found["unknown_backend"]["error"][0]
    assert "'z'" in found["wrong_name"]["error"][0]
    assert "no model file" in found["empty"]["error"][0]
    assert found["garbage"]["error"]


def test_what_is_ignored_is_a_warning_and_no_error(tmp_path: Path, capsys: Capture) -> None:
    put(tmp_path, "good", "optimization:\n  eager_batching: true\n")
    (tmp_path / "good" / "01").mkdir()
    assert main(["check", str(tmp_path), "--json", "--device", "cpu"]) == 0
    warnings = " ".join(findings(capsys)["good"]["warning"])
    assert "eager_batching is ignored" in warnings
    assert "'01' is ignored" in warnings


def test_without_loading_only_files_and_configurations_are_read(tmp_path: Path, capsys: Capture) -> None:
    put(tmp_path, "garbage", content=b"this is not a model")
    put(tmp_path, "misspelt", "max_bach_size: 4\n")
    assert main(["check", str(tmp_path), "--json", "--no-load"]) == 1
    found = findings(capsys)
    assert list(found["garbage"]) == ["ok"]
    assert list(found["misspelt"]) == ["error"]


def test_a_version_that_the_policy_asks_for_in_vain_is_told(tmp_path: Path, capsys: Capture) -> None:
    put(tmp_path, "good", "version_policy:\n  specific:\n    versions: [1, 7]\n")
    assert main(["check", str(tmp_path), "--json", "--device", "cpu"]) == 0
    assert "not there" in findings(capsys)["good"]["warning"][0]


def test_a_single_file_can_be_checked(capsys: Capture) -> None:
    assert main(["check", str(TINY), "--device", "cpu"]) == 0
    assert "tiny 1: onnxruntime" in capsys.readouterr().out


def test_an_empty_repository_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert "there is no model here" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["/no/such/folder"]])
def test_nothing_to_check_is_a_mistake(words: list[str], capsys: Capture) -> None:
    assert main(["check", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
