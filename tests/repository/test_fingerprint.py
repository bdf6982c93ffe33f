"""Changes on disk, however they were made."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelport.repository.fingerprint import fingerprint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "repo" / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(b"one")
    (folder / "config.pbtxt").write_text("name: 'm'")
    return folder


def look(model: Path) -> str:
    return fingerprint([model], (model.parent,))


def _keep_time(path: Path, change: Callable[[], object]) -> None:
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def edit_keeping_the_time(model: Path) -> None:
    path = model / "config.pbtxt"
    _keep_time(path, lambda: path.write_text("name: 'm' "))


def rename_over(model: Path) -> None:
    fresh = model / ".fresh"
    fresh.write_bytes(b"one")
    os.utime(fresh, ns=(0, (model / "1" / "model.onnx").stat().st_mtime_ns))
    fresh.rename(model / "1" / "model.onnx")


def touch(model: Path) -> None:
    os.utime(model / "1" / "model.onnx", ns=(1, 1))


def add_version(model: Path) -> None:
    (model / "2").mkdir()


def remove_file(model: Path) -> None:
    (model / "config.pbtxt").unlink()


@pytest.mark.parametrize("change", [edit_keeping_the_time, rename_over, touch, add_version, remove_file])
def test_a_change_is_seen(model: Path, change: Callable[[Path], None]) -> None:
    before = look(model)
    assert look(model) == before
    change(model)
    assert look(model) != before


@pytest.mark.parametrize("name", [".ipynb_checkpoints", ".model.swp", "__pycache__", "lost+found", "model.onnx~"])
def test_left_over_entries_change_nothing(model: Path, name: str) -> None:
    before = look(model)
    (model / "1" / name).write_text("x")
    assert look(model) == before


def test_the_swap_of_a_link_behind_links_is_seen(model: Path) -> None:
    for revision in ("..2024_1", "..2024_2"):
        (model / revision).mkdir()
        (model / revision / "model.yaml").write_text("max_batch_size: 4")
    (model / "..data").symlink_to("..2024_1")
    (model / "model.yaml").symlink_to("..data/model.yaml")
    before = look(model)
    (model / "..next").symlink_to("..2024_2")
    (model / "..next").rename(model / "..data")
    assert look(model) != before


def test_linked_folders_are_followed_inside_the_repository_only_and_loops_end(model: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (model / "3").symlink_to(outside)
    (model / "loop").symlink_to(model)
    inside = model.parent / "shared"
    inside.mkdir()
    (model / "4").symlink_to(inside)
    before = look(model)
    (outside / "file").write_text("x")
    assert look(model) == before
    (inside / "file").write_text("x")
    assert look(model) != before


def test_what_is_gone_or_dangling_has_a_fingerprint_too(model: Path) -> None:
    (model / "dangling").symlink_to("nowhere")
    look(model)
    assert fingerprint([model / "none"], ()) != fingerprint([], ())
