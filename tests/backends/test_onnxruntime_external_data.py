import os
from pathlib import Path

import numpy as np
import pytest
from fixture_models import write_external
from kernelport.backends.onnxruntime.external_data import check_external_data
from kernelport.core.errors import LoadError
from kernelport.protocol.onnx_file import ExternalTensor
from onnx_backend import load_file

ROWS = np.ones((2, 4), np.float32)


@pytest.fixture
def version(tmp_path: Path) -> Path:
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    (tmp_path / "outside.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return folder


def test_weights_beside_the_model_are_used(version: Path) -> None:
    path = write_external(version)
    np.testing.assert_array_equal(load_file(path).execute({"X": ROWS}, None)["Y"], ROWS + np.arange(4))


def test_weights_in_a_folder_below_the_model_are_used(version: Path) -> None:
    path = write_external(version, "data/weights.bin")
    (version / "data").mkdir()
    (version / "data" / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    np.testing.assert_array_equal(load_file(path).execute({"X": ROWS}, None)["Y"], ROWS + np.arange(4))


@pytest.mark.parametrize(
    "location",
    ["../../outside.bin", "/etc/hostname", "data/../../../outside.bin", "", "..", "C:\\x.bin", "..\\x", "a\0b",
     "*/_ORT_MEM_ADDR_/*"],
)  # fmt: skip
def test_a_location_outside_the_version_folder_is_refused(version: Path, location: str) -> None:
    path = write_external(version, location if "/" in location else f"./{location}")
    tensor = ExternalTensor("W", location, 0, 16)
    with pytest.raises(LoadError, match=r"external data of tensor 'W' points at .*inside the model's version folder"):
        check_external_data(path.parent, [tensor])


def test_the_escape_is_refused_before_the_runtime_sees_the_file(version: Path) -> None:
    path = write_external(version, "../../outside.bin")
    with pytest.raises(LoadError, match=r"'m': external data of tensor 'W'") as caught:
        load_file(path)
    assert "outside.bin" in str(caught.value)


def test_a_link_is_refused_even_to_a_file_inside(version: Path) -> None:
    path = write_external(version)
    (version / "weights.bin").rename(version / "real.bin")
    (version / "weights.bin").symlink_to("real.bin")
    with pytest.raises(LoadError, match=r"'weights.bin' is a symbolic link"):
        load_file(path)


def test_a_linked_folder_is_refused(version: Path, tmp_path: Path) -> None:
    path = write_external(version, "data/outside.bin")
    (version / "data").symlink_to(tmp_path)
    with pytest.raises(LoadError, match="'data' is a symbolic link"):
        load_file(path)


def test_a_pipe_does_not_hang_the_load(version: Path) -> None:
    path = write_external(version)
    (version / "weights.bin").unlink()
    os.mkfifo(version / "weights.bin")
    with pytest.raises(LoadError, match="not a regular file"):
        load_file(path)


def test_a_folder_in_place_of_weights_is_refused(version: Path) -> None:
    path = write_external(version)
    (version / "weights.bin").unlink()
    (version / "weights.bin").mkdir()
    with pytest.raises(LoadError, match="not a regular file"):
        load_file(path)


def test_missing_weights_are_named(version: Path) -> None:
    path = write_external(version)
    (version / "weights.bin").unlink()
    with pytest.raises(LoadError, match=r"'weights.bin', which cannot be read .No such file"):
        load_file(path)


@pytest.mark.parametrize(("offset", "length"), [(0, 10**12), (16, 16), (2**62, 2**62)])
def test_a_range_past_the_end_is_refused(version: Path, offset: int, length: int) -> None:
    path = write_external(version, offset=offset, length=length)
    with pytest.raises(LoadError, match=r"weights.bin has 16 bytes: the file is cut short"):
        load_file(path)
