"""Private copies of model files."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kernelport.config.model import ModelConfig
from kernelport.core.errors import LoadError
from kernelport.repository.model import RepositoryModel
from kernelport.repository.repository import ModelRepository
from kernelport.repository.snapshot import Snapshot, prepare
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.arange(4, dtype=np.float32).tobytes()


def onnx_bytes(location: str = "") -> bytes:
    weights = numpy_helper.from_array(np.arange(4, dtype=np.float32), "W")
    if location:
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "0"), ("length", "16")):
            weights.external_data.add(key=key, value=value)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "XY"]
    graph = helper.make_graph([helper.make_node("Add", ["X", "W"], ["Y"])], "g", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repo" / "m" / "1").mkdir(parents=True)
    return tmp_path / "repo"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def copy(root: Path, scratch: Path, filename: str = "model.onnx") -> Snapshot:
    return prepare(ModelRepository([root]).scan()["m"], "1", filename, scratch)


def refusal(root: Path, scratch: Path, filename: str = "model.onnx") -> str:
    with pytest.raises(LoadError) as caught:
        copy(root, scratch, filename)
    assert list(scratch.iterdir()) == [], "nothing is left behind"
    return str(caught.value)


def test_what_happens_to_the_original_does_not_reach_the_copy(root: Path, scratch: Path) -> None:
    original = root / "m" / "1" / "model.onnx"
    original.write_bytes(onnx_bytes("weights/w.bin"))
    weights = root / "m" / "1" / "weights" / "w.bin"
    weights.parent.mkdir()
    weights.write_bytes(WEIGHTS)
    with copy(root, scratch) as snapshot:
        os.truncate(original, 10)
        os.truncate(weights, 0)
        assert snapshot.artifact.path.read_bytes() == onnx_bytes("weights/w.bin")
        assert (snapshot.artifact.path.parent / "weights" / "w.bin").read_bytes() == WEIGHTS
        assert snapshot.artifact.model_dir == root / "m"
        assert len(snapshot.artifact.files) == 2
        assert snapshot.artifact.path.stat().st_mode & 0o222 == 0
        assert snapshot.folder.stat().st_mode & 0o077 == 0
    assert list(scratch.iterdir()) == []
    snapshot.close()


def test_an_onnx_model_takes_only_the_files_it_refers_to(root: Path, scratch: Path) -> None:
    (root / "m" / "1" / "model.onnx").write_bytes(onnx_bytes())
    (root / "m" / "1" / "notes.bin").write_bytes(b"x")
    with copy(root, scratch) as snapshot:
        assert [path.name for path in snapshot.artifact.files] == ["model.onnx"]


def test_a_model_of_another_kind_takes_its_whole_folder(root: Path, scratch: Path) -> None:
    home = root / "m" / "1"
    (home / "model.savedmodel" / "variables").mkdir(parents=True)
    (home / "model.savedmodel" / "saved_model.pb").write_bytes(b"a")
    (home / "model.savedmodel" / "variables" / "v.data").write_bytes(b"b")
    with copy(root, scratch, "model.savedmodel") as snapshot:
        assert (snapshot.artifact.path / "variables" / "v.data").read_bytes() == b"b"
    (home / "model.py").write_text("x")
    (home / ".hidden").write_text("x")
    (home / "helper").mkdir()
    (home / "helper" / "tool.py").write_text("y")
    with copy(root, scratch, "model.py") as snapshot:
        names = {path.relative_to(snapshot.folder).as_posix() for path in snapshot.artifact.files}
    assert names == {
        "model.py",
        "helper/tool.py",
        "model.savedmodel/saved_model.pb",
        "model.savedmodel/variables/v.data",
    }


def test_bare_files_and_bare_folders_are_copied_under_their_names(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(onnx_bytes())
    (tmp_path / "tf.savedmodel").mkdir()
    (tmp_path / "tf.savedmodel" / "saved_model.pb").write_bytes(b"a")
    for name, file in (("net", "net.onnx"), ("tf", "tf.savedmodel")):
        model = ModelRepository([], tmp_path / file).scan()[name]
        with prepare(model, "1", "unused", scratch) as snapshot:
            assert snapshot.artifact.path == snapshot.folder / file


def test_links_inside_the_repository_are_followed(root: Path, scratch: Path) -> None:
    (root / "store").mkdir()
    (root / "store" / "blob").write_bytes(onnx_bytes())
    (root / "m" / "1" / "model.onnx").symlink_to("../../store/blob")
    with copy(root, scratch) as snapshot:
        assert not snapshot.artifact.path.is_symlink()
        assert snapshot.artifact.path.read_bytes() == onnx_bytes()


def test_a_link_out_of_the_repository_is_refused(root: Path, scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.onnx").write_bytes(onnx_bytes())
    (root / "m" / "1" / "model.onnx").symlink_to(tmp_path / "secret.onnx")
    assert "is a link that leads outside the repository" in refusal(root, scratch)


@pytest.mark.parametrize("location", ["../../outside.bin", "/etc/hostname", "a/../../b", "..\\x", "w\x00.bin"])
def test_external_data_outside_the_folder_is_refused_by_its_text(root: Path, scratch: Path, location: str) -> None:
    (root / "m" / "1" / "model.onnx").write_bytes(onnx_bytes(location))
    assert "must be a relative path that stays inside" in refusal(root, scratch)


def test_external_data_that_is_a_link_out_a_device_or_a_fifo_is_refused(root: Path, scratch: Path) -> None:
    home = root / "m" / "1"
    (home / "model.onnx").write_bytes(onnx_bytes("w.bin"))
    assert "external data 'w.bin' of model.onnx is missing" in refusal(root, scratch)
    weights = home / "w.bin"
    for target in ("/etc/hostname", "/dev/zero"):
        weights.symlink_to(target)
        assert "leads outside the model's folder" in refusal(root, scratch)
        weights.unlink()
    os.mkfifo(weights)
    assert "is not a plain file" in refusal(root, scratch)


def test_a_model_that_is_a_fifo_or_missing_is_refused(root: Path, scratch: Path) -> None:
    assert "model.onnx is missing" in refusal(root, scratch)
    os.mkfifo(root / "m" / "1" / "model.onnx")
    assert "is not a plain file" in refusal(root, scratch)


@pytest.mark.parametrize("filename", ["../../secret", "/etc/passwd"])
def test_a_file_name_that_climbs_out_is_refused_alike_whether_it_exists(
    root: Path, scratch: Path, filename: str
) -> None:
    assert f"the file name {filename!r} must be a relative path" in refusal(root, scratch, filename)


def test_a_file_that_grows_while_it_is_copied_is_refused(
    root: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = root / "m" / "1" / "model.onnx"
    original.write_bytes(onnx_bytes())
    whole = os.copy_file_range

    def copy_while_it_grows(reader: int, writer: int, count: int) -> int:
        moved = whole(reader, writer, count)
        with original.open("ab") as file:
            file.write(b"more")
        return moved

    monkeypatch.setattr(os, "copy_file_range", copy_while_it_grows)
    assert "is still being written" in refusal(root, scratch)


@pytest.mark.parametrize("number", [errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_shared_copies_gets_plain_ones(
    root: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (root / "m" / "1" / "model.onnx").write_bytes(onnx_bytes())
    with copy(root, scratch) as snapshot:
        assert snapshot.artifact.path.read_bytes() == onnx_bytes()


def test_a_copy_that_does_not_fit_is_refused_before_it_is_made(
    root: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    (root / "m" / "1" / "model.onnx").write_bytes(onnx_bytes())
    assert "has 1000 free; set TMPDIR to a larger place" in refusal(root, scratch)


def test_version_folders_are_no_part_of_a_flat_model(root: Path, scratch: Path) -> None:
    flat = root / "flat"
    (flat / "7").mkdir(parents=True)
    (flat / "7" / "big").write_bytes(b"x")
    (flat / "model.py").write_text("x")
    model = RepositoryModel("flat", flat, {"1": flat}, ModelConfig.model_validate({}), bounds=(root.resolve(),))
    with prepare(model, "1", "model.py", scratch) as snapshot:
        assert [path.name for path in snapshot.artifact.files] == ["model.py"]
