"""`serve` as a person starts it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from kernelport.cli import serve as serve_module
from kernelport.cli.serve import with_default_models
from kernelport.config.server import ServerSettings
from kernelport.core.errors import ConfigError
from server_process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "app" / "builtin" / "tiny" / "1" / "model.onnx"


def test_the_start_shows_models_and_addresses(tiny_server: ServerProcess) -> None:
    said = tiny_server.output
    assert "1 model ready" in said
    assert "tiny" in said
    assert "onnxruntime" in said
    for page in ("docs", "metrics"):
        assert f"{tiny_server.url}/{page}" in said
        assert httpx.get(f"{tiny_server.url}/{page}").status_code == 200


def test_a_single_file_is_named_by_its_stem_and_a_second_server_is_told_that_the_port_is_taken(tmp_path: Path) -> None:
    model = tmp_path / "adder.onnx"
    model.write_bytes(TINY.read_bytes())
    with ServerProcess(model, "--device", "cpu", "--host", "127.0.0.1") as running:
        assert httpx.get(f"{running.url}/v2/models/adder").json()["name"] == "adder"
        port = running.url.rpartition(":")[2]
        command = [sys.executable, "-m", "kernelport", "serve", str(model), "--host", "127.0.0.1", "--port", port]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 2
        assert "cannot listen on" in second.stderr
        assert "Traceback" not in second.stderr
        assert running.stop(signal.SIGINT) == 0


def test_a_model_called_model_is_named_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "vision"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(TINY.read_bytes())
    with ServerProcess("--model-path", folder / "model.onnx", "--device", "cpu", "--host", "127.0.0.1") as running:
        assert httpx.get(f"{running.url}/v2/models/vision").status_code == 200


def test_sigterm_ends_with_exit_code_zero(tmp_path: Path) -> None:
    arguments = (TINY, "--model-path", TINY, "--model-name", "named", "--drain-delay-s", "0", "--host", "127.0.0.1")
    with ServerProcess(*arguments[1:]) as running:
        assert httpx.get(f"{running.url}/v2/models/named/ready").status_code == 200
        assert running.stop(signal.SIGTERM) == 0


def test_one_broken_model_is_shown_with_its_reason_and_hides_no_other(tmp_path: Path) -> None:
    for name, content in (("good", TINY.read_bytes()), ("bad", b"this is not a model")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").write_bytes(content)
    with ServerProcess(tmp_path, "--device", "cpu", "--host", "127.0.0.1") as running:
        assert httpx.get(f"{running.url}/v2/models/good/ready").status_code == 200
        assert "1 model ready, 1 not ready" in running.output
        assert "UNAVAILABLE" in running.output


def test_without_models_the_mounted_folder_comes_before_the_built_in_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve_module, "MOUNTED_MODELS", tmp_path)
    (built_in,) = with_default_models(ServerSettings()).models
    assert os.path.isdir(os.path.join(built_in, "tiny"))
    assert "built-in" in capsys.readouterr().err
    (tmp_path / "resnet").mkdir()
    assert with_default_models(ServerSettings()).models == (str(tmp_path),)


def test_given_models_are_served_and_missing_ones_refused(tmp_path: Path) -> None:
    settings = ServerSettings(models=(str(tmp_path),))
    assert with_default_models(settings) == settings
    with pytest.raises(ConfigError, match="no such file or folder"):
        with_default_models(ServerSettings(models=(str(tmp_path / "absent"),)))
    with pytest.raises(ConfigError, match="no such file or folder"):
        with_default_models(ServerSettings(model_path=str(tmp_path / "absent.onnx")))


@pytest.mark.parametrize(
    ("word", "said"), [("--access-log=maybe", "does not take a value"), ("--port=false", "--port")]
)
def test_only_switches_take_true_and_false(word: str, said: str) -> None:
    command = [sys.executable, "-m", "kernelport", "serve", word]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert said in result.stderr
