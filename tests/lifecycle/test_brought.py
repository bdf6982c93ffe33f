"""Model files that come with a load request: where they may go, and when they go away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.models import fake_file
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.model import ModelConfig
from kernelport.core.errors import InvalidRequest, LoadError, PayloadTooLarge
from kernelport.lifecycle.brought import BroughtFiles, check_path

FILE = fake_file().encode()


@pytest.fixture
def brought() -> Iterator[BroughtFiles]:
    with ThreadPoolExecutor(1) as executor:
        files = BroughtFiles(executor, max_bytes=10_000)
        yield files
        files.close()


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await work()

    return asyncio.run(main())


def folders(brought: BroughtFiles) -> list[Path]:
    return sorted(brought._root.iterdir())


def write(brought: BroughtFiles, name: str = "m") -> Any:
    return run(lambda: brought.write(name, ModelConfig(), {"1/model.fake": FILE}))


def test_the_files_become_a_model_with_the_configuration_that_came_with_them(brought: BroughtFiles) -> None:
    model = run(
        lambda: brought.write("m", ModelConfig(max_batch_size=4), {"7/model.fake": FILE, "7/sub/vocab.txt": b"a b"})
    )
    assert (model.name, list(model.versions), model.problem) == ("m", ["7"], "")
    assert model.config.max_batch_size == 4
    assert (model.versions["7"] / "model.fake").read_bytes() == FILE
    assert (model.versions["7"] / "sub" / "vocab.txt").read_bytes() == b"a b"


@pytest.mark.parametrize(
    "path",
    ["", "1", "1/", "model.onnx", "/1/model.onnx", "1//model.onnx", "1/../x", "../1/x", "1/.hidden", "1/a/../../b",
     "01/x", "0/x", "-1/x", "1/a\0b", "1/ä", "1/a\\b", "1/a:b", "1/a\n", "1/" + "x" * 201, "config.pbtxt"],
)  # fmt: skip
def test_a_file_name_that_is_not_version_and_plain_parts_is_refused_before_anything_is_written(
    brought: BroughtFiles, path: str
) -> None:
    with pytest.raises(InvalidRequest, match=r"load of model 'm': file name .* is not of the form <version>/<file>"):
        run(lambda: brought.write("m", ModelConfig(), {"1/model.fake": FILE, path: b"x"}))
    assert folders(brought) == []


@given(st.text(max_size=40))
def test_no_accepted_file_name_leads_out_of_its_folder(path: str) -> None:
    try:
        check_path("m", path)
    except InvalidRequest:
        return
    root = Path("/models/m")
    assert (root / path).resolve().is_relative_to(root)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b", "x" * 300])
def test_a_name_that_cannot_be_a_folder_is_refused(brought: BroughtFiles, name: str) -> None:
    with pytest.raises(InvalidRequest, match="model name"):
        write(brought, name)
    assert folders(brought) == []


def test_the_number_and_the_size_of_files_are_bounded(brought: BroughtFiles) -> None:
    with pytest.raises(PayloadTooLarge, match="257 files, at most 256 are taken"):
        run(lambda: brought.write("m", ModelConfig(), {f"1/{number}": b"" for number in range(257)}))
    with pytest.raises(PayloadTooLarge, match="10001 bytes of files, at most 10000 are taken"):
        run(lambda: brought.write("m", ModelConfig(), {"1/model.fake": b"x" * 10_001}))
    assert folders(brought) == []


def test_a_name_that_is_a_file_and_a_folder_at_once_is_refused_and_leaves_nothing(brought: BroughtFiles) -> None:
    for files in ({"1/a": b"x", "1/a/b": b"y"}, {"1/a/b": b"y", "1/a": b"x"}):
        with pytest.raises(InvalidRequest, match="is a file and a folder at once"):
            run(partial(brought.write, "m", ModelConfig(), files))
    assert folders(brought) == []


def test_a_file_that_cannot_be_written_is_told_by_the_systems_reason(brought: BroughtFiles) -> None:
    deep = "1/" + "/".join(["x" * 200] * 30)
    with pytest.raises(LoadError, match="cannot be written: File name too long"):
        run(lambda: brought.write("m", ModelConfig(), {deep: b""}))
    assert folders(brought) == []


def test_files_that_a_repository_would_not_see_as_a_model_are_refused(brought: BroughtFiles) -> None:
    with pytest.raises(InvalidRequest, match="the files hold no version folder with a model"):
        write(brought, ".hidden")
    assert folders(brought) == []


def test_only_the_files_that_are_still_meant_are_kept(brought: BroughtFiles) -> None:
    older, other, newer = write(brought), write(brought, "other"), write(brought)
    run(lambda: brought.keep("m", newer))
    assert folders(brought) == sorted([other.model_dir.parent, newer.model_dir.parent])
    run(lambda: brought.keep("m", newer))
    assert newer.model_dir.exists()
    run(lambda: brought.keep("m", None))
    assert folders(brought) == [other.model_dir.parent]
    run(lambda: brought.keep("never_heard_of", None))
    assert not older.model_dir.exists()


def test_at_the_end_nothing_is_left(brought: BroughtFiles) -> None:
    write(brought)
    brought.close()
    assert not brought._root.exists()
