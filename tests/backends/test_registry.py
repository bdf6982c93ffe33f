import importlib.metadata
import importlib.util

import pytest
from kernelport.backends import registry
from kernelport.backends.base import BackendModel
from kernelport.backends.fake import FakeModel
from kernelport.core.errors import BackendMissing, LoadError


@pytest.mark.parametrize("name", ["onnxruntime", "onnx", "onnxruntime_onnx"])
def test_triton_names_lead_to_onnx_runtime(name: str) -> None:
    assert registry.canonical_name(name) == "onnxruntime"
    assert registry.backend_info(name).platform == "onnxruntime_onnx"
    assert issubclass(registry.backend_class(name), BackendModel)


@pytest.mark.parametrize(
    "name", ["pytorch", "torch", "pytorch_libtorch", "tensorflow", "tensorrt", "tensorrt_plan", "python", "helion"]
)
def test_a_backend_of_a_later_release_is_told_from_an_unknown_one(name: str) -> None:
    with pytest.raises(LoadError, match="not part of this release; it serves onnxruntime"):
        registry.backend_class(name)


def test_an_unknown_backend_lists_the_known_ones_and_suggests() -> None:
    with pytest.raises(LoadError, match=r"'onnxruntme' is not known.*onnxruntime; did you mean 'onnxruntime'"):
        registry.backend_class("onnxruntme")


@pytest.mark.parametrize("name", ["../fake", ".fake", "kernelport.backends.fake", "", "os"])
def test_a_name_never_reaches_the_import_system(name: str) -> None:
    with pytest.raises(LoadError, match="is not known"):
        registry.backend_class(name)


def test_a_missing_framework_gives_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else real(name))
    with pytest.raises(BackendMissing) as caught:
        registry.backend_class("onnxruntime")
    assert "pip install 'kernelport[cpu]'" in str(caught.value)
    assert "pip install 'kernelport[gpu]'" in str(caught.value)


@pytest.mark.parametrize(
    ("files", "backend"),
    [
        (["model.onnx"], "onnxruntime"),
        (["model.onnx", "weights.bin", "tokenizer.onnx"], "onnxruntime"),
        (["resnet.onnx"], "onnxruntime"),
        (["model.onnx", "model.py"], "onnxruntime"),
        (["model.fake"], "fake"),
        (["labels.txt"], None),
        ([], None),
    ],
)
def test_the_files_tell_the_backend(files: list[str], backend: str | None) -> None:
    assert registry.detect(files) == backend


@pytest.mark.parametrize("name", ["model.pt", "model.pt2", "model.plan", "model.savedmodel", "model.py"])
def test_a_model_file_of_a_later_release_is_named(name: str) -> None:
    with pytest.raises(LoadError, match=f"{name} belongs to the .* backend, which is not part of this release"):
        registry.detect([name])


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    point = importlib.metadata.EntryPoint("outside", request.param, registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])


@pytest.mark.parametrize("outside", ["kernelport.backends.fake:FakeModel"], indirect=True)
@pytest.mark.usefixtures("outside")
def test_an_outside_backend_comes_from_its_entry_point() -> None:
    assert registry.backend_class("outside") is FakeModel
    assert "outside" in registry.backend_names()
    assert registry.backend_info("outside").platform == "outside"


@pytest.mark.parametrize("outside", ["no_such_package_here:Model"], indirect=True)
@pytest.mark.usefixtures("outside")
def test_a_broken_outside_backend_is_a_load_error() -> None:
    with pytest.raises(BackendMissing, match="no_such_package_here"):
        registry.backend_class("outside")


@pytest.mark.parametrize("outside", ["pathlib:Path"], indirect=True)
@pytest.mark.usefixtures("outside")
def test_an_outside_backend_must_be_a_backend_model() -> None:
    with pytest.raises(LoadError, match="does not export a BackendModel"):
        registry.backend_class("outside")
