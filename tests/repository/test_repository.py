"""What exists on disk."""

import os
from pathlib import Path

import pytest
from kernelport.config.model import ModelConfig
from kernelport.core.errors import ConfigError
from kernelport.repository.model import RepositoryModel
from kernelport.repository.repository import ModelRepository, with_config


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def put(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def scan(*roots: Path) -> dict[str, RepositoryModel]:
    return ModelRepository(roots).scan()


def test_versioned_flat_and_bare_models_are_found(root: Path) -> None:
    put(root / "versioned" / "1" / "model.onnx")
    put(root / "versioned" / "10" / "model.onnx")
    put(root / "flat" / "model.onnx")
    put(root / "bare.onnx")
    (root / "saved.savedmodel").mkdir()
    models = scan(root)
    assert list(models) == ["bare", "flat", "saved", "versioned"]
    assert dict(models["versioned"].versions) == {
        "1": root / "versioned" / "1",
        "10": root / "versioned" / "10",
    }
    assert models["versioned"].chosen.versions == ("10",)
    assert dict(models["flat"].versions) == {"1": root / "flat"}
    assert dict(models["bare"].versions) == {"1": root / "bare.onnx"}
    assert dict(models["saved"].versions) == {"1": root / "saved.savedmodel"}
    assert {model.problem for model in models.values()} == {""}


def test_odd_folders_beside_versions_are_ignored_and_named_once(root: Path) -> None:
    for name in ("1", "10", "01", "-1", "1.5", "1_0", " 3", "２", "model", ".ipynb_checkpoints", "lost+found"):
        put(root / "zoo" / name / "model.onnx")
    repository = ModelRepository([root])
    model = repository.scan()["zoo"]
    assert set(model.versions) == {"1", "10"}
    assert len(model.warnings) == 6
    assert len(repository.warnings) == 6
    assert repository.scan()["zoo"] is model
    assert not repository.warnings


def test_entries_that_are_no_models_are_left_out(root: Path) -> None:
    put(root / "README.md")
    put(root / "datasets" / "train.csv")
    put(root / ".git" / "config.pbtxt")
    put(root / "bad\nname" / "1" / "model.onnx")
    put(root / "模型" / "1" / "model.onnx")
    repository = ModelRepository([root])
    assert list(repository.scan()) == ["模型"]
    assert len(repository.warnings) == 2
    assert "'bad\\nname'" in repository.warnings[0] or "bad\\nname" in repository.warnings[0]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.pbtxt", "input [ {", "config.pbtxt:1:"),
        ("model.yaml", "max_batch_siz: 1", "model.yaml:1: unknown key 'max_batch_siz'"),
        ("model.yaml", "name: other", "says name 'other', but the folder is 'broken'"),
        ("model.yaml", "sequence_batching: {}", "sequence_batching: not supported"),
        ("model.yml", "name: broken", "rename it to model.yaml"),
    ],
)
def test_a_broken_configuration_breaks_its_model_only(root: Path, file: str, content: str, reason: str) -> None:
    put(root / "broken" / "1" / "model.onnx")
    put(root / "broken" / file, content)
    put(root / "good" / "1" / "model.onnx")
    models = scan(root)
    assert models["broken"].config is None
    assert reason in models["broken"].problem
    assert models["good"].problem == ""


@pytest.mark.parametrize(
    ("config", "version", "problem"),
    [
        ("name: m", None, "no versions: "),
        ("version_policy: {specific: {versions: [3]}}", "1", "version_policy asks for 3, there is 1"),
    ],
)
def test_a_model_without_versions_says_so(root: Path, config: str, version: str | None, problem: str) -> None:
    put(root / "m" / "model.yaml", config)
    if version:
        put(root / "m" / version / "model.onnx")
    assert problem in scan(root)["m"].problem


def test_the_same_name_twice_is_an_error_of_that_model(root: Path, tmp_path: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    put(root / "n" / "1" / "model.onnx")
    put(root / "n.onnx")
    put(tmp_path / "more" / "m" / "1" / "model.onnx")
    models = scan(root, tmp_path / "more")
    assert "exists more than once" in models["m"].problem
    assert str(tmp_path / "more" / "m") in models["m"].problem
    assert "exists more than once" in models["n"].problem


def test_a_model_file_beside_version_folders_is_warned_about(root: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    put(root / "m" / "model.onnx")
    model = scan(root)["m"]
    assert dict(model.versions) == {"1": root / "m" / "1"}
    assert model.warnings == ("the model file beside the version folders is ignored",)


def test_ignored_fields_of_a_configuration_are_warnings_of_the_model(root: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    put(root / "m" / "model.yaml", "response_cache: {enable: true}")
    assert scan(root)["m"].warnings[0].startswith("response_cache.enable is ignored")


def test_fingerprints_tell_a_new_version_from_a_new_configuration(root: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    repository = ModelRepository([root])
    first = repository.scan()["m"]
    put(root / "m" / "2" / "model.onnx")
    second = repository.scan()["m"]
    put(root / "m" / "model.yaml", "max_batch_size: 4")
    third = repository.scan()["m"]
    assert len({first.fingerprint, second.fingerprint, third.fingerprint}) == 3
    assert first.config_fingerprint == second.config_fingerprint != third.config_fingerprint
    assert first.version_fingerprints["1"] == third.version_fingerprints["1"]


def test_weights_that_arrive_beside_a_bare_file_change_its_fingerprint(root: Path) -> None:
    put(root / "big.onnx")
    before = scan(root)["big"].fingerprint
    put(root / "big.onnx.data")
    assert scan(root)["big"].fingerprint != before


def test_a_single_model_is_named_by_its_path_or_by_the_user(tmp_path: Path) -> None:
    file = put(tmp_path / "resnet" / "model.onnx")
    assert list(ModelRepository([], file).scan()) == ["resnet"]
    assert list(ModelRepository([], file, "r50").scan()) == ["r50"]
    assert list(ModelRepository([file]).scan()) == ["resnet"]
    assert dict(ModelRepository([], tmp_path / "resnet").scan()["resnet"].versions) == {"1": tmp_path / "resnet"}
    put(tmp_path / "resnet" / "model.yaml", "name: other")
    assert ModelRepository([], tmp_path / "resnet", "mine").scan()["mine"].problem == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [("none", "no such model repository"), ("notes.txt", "not a model file by its suffix"), ("model", "--model-path")],
)
def test_a_path_that_is_no_repository_is_refused_with_advice(tmp_path: Path, name: str, message: str) -> None:
    put(tmp_path / "notes.txt")
    put(tmp_path / "model" / "1" / "model.onnx")
    with pytest.raises(ConfigError, match=message):
        ModelRepository([tmp_path / name])


def test_a_missing_single_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such model file or folder"):
        ModelRepository([], tmp_path / "none.onnx")
    put(tmp_path / "x.onnx")
    with pytest.raises(ConfigError, match="give another one with --model-name"):
        ModelRepository([], tmp_path / "x.onnx", "a/b")


def test_a_repository_that_vanishes_is_an_error_and_not_an_empty_one(root: Path) -> None:
    put(root / "m.onnx")
    repository = ModelRepository([root])
    assert list(repository.scan()) == ["m"]
    root.rename(root.with_name("gone"))
    with pytest.raises(ConfigError, match="cannot be read"):
        repository.scan()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_model_folder_breaks_its_model_only(root: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    put(root / "n" / "1" / "model.onnx")
    (root / "m").chmod(0)
    try:
        models = scan(root)
        assert "cannot be read" in models["m"].problem
        assert models["n"].problem == ""
    finally:
        (root / "m").chmod(0o755)


def test_another_configuration_can_be_laid_over_the_files(root: Path) -> None:
    put(root / "m" / "1" / "model.onnx")
    put(root / "m" / "model.yaml", "nonsense: 1")
    model = with_config(scan(root)["m"], ModelConfig.model_validate({"max_batch_size": 4}))
    assert model.problem == ""
    assert model.chosen.versions == ("1",)
