"""What every backend promises, checked on every backend that is installed here."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fixture_models import Graph
from kernelport.backends.base import BackendModel, BackendOptions
from kernelport.backends.registry import BACKENDS, backend_class
from kernelport.core.errors import BackendError, LoadError
from kernelport.core.model import ModelArtifact
from kernelport.core.tensor import FP32
from kernelport.devices.device import CPU

TWO_OUT = {
    "inputs": [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}],
    "outputs": [
        {"name": "Y0", "datatype": "FP32", "shape": [-1, 4]},
        {"name": "Y1", "datatype": "FP32", "shape": [-1, 4]},
    ],
}


def onnx_bytes() -> bytes:
    graph = Graph().takes("X", ["batch", 4]).gives("Y0", ["batch", 4]).gives("Y1", ["batch", 4])
    return graph.op("Identity", "X", "Y0").op("Identity", "X", "Y1").model().SerializeToString()


# Per backend: a model with X -> Y0 = Y1 = X.
ARTIFACTS: dict[str, Callable[[], bytes]] = {
    "onnxruntime": onnx_bytes,
    "fake": lambda: json.dumps(TWO_OUT).encode(),
}
Loads = Callable[[], BackendModel]


def test_every_backend_has_an_artifact_here() -> None:
    assert set(ARTIFACTS) == set(BACKENDS)


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> str:
    framework = BACKENDS[request.param].framework
    if framework and importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    return str(request.param)


@pytest.fixture
def artifact(backend: str, tmp_path: Path) -> ModelArtifact:
    path = tmp_path / "m" / "1" / BACKENDS[backend].default_filename
    path.parent.mkdir(parents=True)
    path.write_bytes(ARTIFACTS[backend]())
    return ModelArtifact("m", "1", path.parent.parent, path)


@pytest.fixture
def load(backend: str, artifact: ModelArtifact) -> Iterator[Loads]:
    loaded: list[BackendModel] = []

    def one() -> BackendModel:
        loaded.append(backend_class(backend).load(artifact, CPU, BackendOptions()))
        return loaded[-1]

    yield one
    for model in loaded:
        model.close()


ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_the_signature_is_the_artifacts(load: Loads, backend: str) -> None:
    signature = load().signature
    assert [(one.name, one.datatype, one.shape) for one in signature.inputs] == [("X", FP32, (-1, 4))]
    assert [one.name for one in signature.outputs] == ["Y0", "Y1"]
    assert signature.platform == BACKENDS[backend].platform


def test_rows_keep_their_order_and_type(load: Loads) -> None:
    results = load().execute({"X": ROWS}, None)
    assert list(results) == ["Y0", "Y1"]
    for array in results.values():
        np.testing.assert_array_equal(array, ROWS)
        assert array.dtype == np.float32


def test_only_the_wanted_outputs_come_in_the_wanted_order(load: Loads) -> None:
    model = load()
    assert list(model.execute({"X": ROWS}, ("Y1",))) == ["Y1"]
    assert list(model.execute({"X": ROWS}, ("Y1", "Y0"))) == ["Y1", "Y0"]


def test_results_do_not_change_when_the_model_runs_again(load: Loads) -> None:
    model = load()
    first = model.execute({"X": ROWS}, None)["Y0"]
    model.execute({"X": ROWS + 100}, None)
    np.testing.assert_array_equal(first, ROWS)


def test_zero_rows_are_legal(load: Loads) -> None:
    assert load().execute({"X": ROWS[:0]}, None)["Y0"].shape == (0, 4)


def test_a_second_copy_lives_on_when_the_first_is_closed(load: Loads) -> None:
    first, second = load(), load()
    first.close()
    np.testing.assert_array_equal(second.execute({"X": ROWS}, None)["Y0"], ROWS)


def test_a_closed_model_refuses_with_our_error(load: Loads) -> None:
    model = load()
    model.close()
    with pytest.raises(BackendError, match="closed"):
        model.execute({"X": ROWS}, None)


@pytest.mark.parametrize("content", [b"", b"\0", b"not a model at all", b"{}"])
def test_a_file_that_is_no_model_is_a_load_error_naming_the_model(
    backend: str, artifact: ModelArtifact, content: bytes
) -> None:
    artifact.path.write_bytes(content)
    with pytest.raises(LoadError, match="'m'"):
        backend_class(backend).load(artifact, CPU, BackendOptions())


def test_a_missing_file_is_a_load_error(backend: str, artifact: ModelArtifact) -> None:
    artifact.path.unlink()
    with pytest.raises(LoadError):
        backend_class(backend).load(artifact, CPU, BackendOptions())
