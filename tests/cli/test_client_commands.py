"""`models`, `load`, `unload`, `infer`, `stats` against a real server."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kernelport.cli.main import main
from server_process import ServerProcess

BUILT_IN = Path(__file__).resolve().parent.parent.parent / "app" / "builtin"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _address(tiny_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, _clean_settings_environment: None) -> None:
    monkeypatch.setenv("KERNELPORT_URL", tiny_server.url)


@pytest.fixture(scope="module")
def explicit_server() -> Iterator[ServerProcess]:
    with ServerProcess(BUILT_IN, "--model-control-mode", "explicit", "--host", "127.0.0.1") as running:
        yield running


def test_models_lists_state_version_and_platform(capsys: Capture) -> None:
    assert main(["models"]) == 0
    name, version, platform, state = capsys.readouterr().out.splitlines()[2].split()
    assert (name, version, state) == ("tiny", "1", "READY")
    assert platform.startswith("onnx")


def test_models_prints_the_index_as_json(capsys: Capture) -> None:
    assert main(["models", "--json", "--ready"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["name"], entry["version"], entry["state"]) == ("tiny", "1", "READY")


@pytest.mark.parametrize("form", [[], ["--binary"]], ids=["json", "binary"])
def test_inputs_by_name_are_answered_in_both_forms(form: list[str], capsys: Capture) -> None:
    assert main(["infer", "tiny", '{"x": [[1, 2, 3, 4]]}', *form]) == 0
    assert capsys.readouterr().out == "y FP32 [1, 3]\n[[10.   2.5  3. ]]\n"


@pytest.mark.parametrize("form", [[], ["--binary"]], ids=["json", "binary"])
def test_a_whole_request_is_answered_as_json(form: list[str], capsys: Capture) -> None:
    request = {"id": "7", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
    assert main(["infer", "tiny", json.dumps(request), "--version", "1", "--output", "y", "--json", *form]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["id"] == "7"
    assert answer["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [1, 3], "data": [10.0, 2.5, 3.0]}]


def test_arrays_go_in_and_out_as_files(tmp_path: Path, capsys: Capture) -> None:
    inputs, outputs = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(inputs, x=np.arange(8, dtype=np.float32).reshape(2, 4))
    assert main(["infer", "tiny", str(inputs), "--binary", "--save", str(outputs)]) == 0
    with np.load(outputs) as saved:
        assert saved["y"].tolist() == [[6, 1.5, 3], [22, 5.5, 3]]


def test_lines_are_requests_of_their_own_and_a_bad_one_fails_alone(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = '{"x": [[1, 2, 3, 4]]}\n{"x": [[1, 2, 3]]}\n{"x": [[4, 3, 2, 1]]}\n'
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["infer", "tiny", "-", "--json"]) == 1
    captured = capsys.readouterr()
    assert [json.loads(line)["outputs"][0]["data"][2] for line in captured.out.splitlines()] == [3.0, -3.0]
    assert "standard input:2" in captured.err
    assert "1 of 3 requests failed" in captured.err


def test_the_servers_reason_reaches_the_person(capsys: Capture) -> None:
    assert main(["infer", "tiny", '{"x": [1]}']) == 1
    said = capsys.readouterr().err
    assert "answered 400" in said
    assert "x" in said
    assert main(["infer", "absent", "{}"]) == 1
    assert "answered 404" in capsys.readouterr().err


def test_stats_count_what_was_served(capsys: Capture) -> None:
    assert main(["infer", "tiny", '{"x": [[1, 2, 3, 4], [1, 2, 3, 4]]}']) == 0
    assert main(["stats", "tiny", "--version", "1"]) == 0
    cells = capsys.readouterr().out.splitlines()[-1].split()
    assert cells[:2] == ["tiny", "1"]
    assert main(["stats", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["model_stats"]
    assert entry["inference_stats"]["success"]["count"] == int(cells[2])


def test_models_are_loaded_and_unloaded_by_name(explicit_server: ServerProcess, capsys: Capture) -> None:
    url = ["--url", explicit_server.url]
    assert main(["load", "tiny", *url]) == 0
    assert "loaded tiny" in capsys.readouterr().err
    assert main(["infer", "tiny", '{"x": [[1, 2, 3, 4]]}', *url]) == 0
    assert main(["unload", "tiny", *url]) == 0
    assert main(["infer", "tiny", '{"x": [[1, 2, 3, 4]]}', *url]) == 1
    assert main(["models", *url]) == 0
    assert "UNAVAILABLE" in capsys.readouterr().out


def test_load_takes_a_configuration_inline_or_from_a_file(
    explicit_server: ServerProcess, tmp_path: Path, capsys: Capture
) -> None:
    url = ["--url", explicit_server.url]
    file = tmp_path / "config.json"
    file.write_text('{"max_batch_size": 2}')
    for given in ('{"max_batch_size": 2}', str(file)):
        assert main(["load", "tiny", "--config", given, *url]) == 0
        assert main(["infer", "tiny", '{"x": [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]}', *url]) == 1
        assert "2" in capsys.readouterr().err
    assert main(["load", "absent", *url]) == 1
    assert "absent" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "said"), [("[1]", "must be a JSON object"), ("{", "not JSON")])
def test_a_configuration_that_is_none_is_refused(given: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "config.json"
    file.write_text(given)
    assert main(["load", "tiny", "--config", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_something_that_is_no_inference_server_is_recognised(tiny_server: ServerProcess, capsys: Capture) -> None:
    assert main(["models", "--url", f"{tiny_server.url}/docs#"]) == 1
    assert "Traceback" not in capsys.readouterr().err
