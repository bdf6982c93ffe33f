"""How names on disk are read."""

import re
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.repository.layout import (
    bad_name,
    find_versions,
    flat_model_name,
    is_ignored,
    is_version,
    name_for_path,
    pick_model_file,
)

ODD = ["01", "-1", "1.5", "1_0", " 3", "２", "+1", "0", "1e3", "²", "1 ", "model", "v1", ""]


@pytest.mark.parametrize("name", [*ODD, "9223372036854775808", "1" * 5000])
def test_only_plain_positive_numbers_are_versions(name: str) -> None:
    assert not is_version(name)


def test_versions_are_found_in_order_and_lookalikes_are_named() -> None:
    found = find_versions(["10", "1", "2", ".ipynb_checkpoints", "lost+found", *ODD])
    assert found.names == ("1", "2", "10")
    warned = {re.findall(r"'(.*)'", one)[0] for one in found.warnings}
    assert warned == {"01", "-1", "1.5", "1_0", " 3", "２", "+1", "0", "1 "}


@given(st.text(max_size=6))
def test_a_version_reads_back_as_the_number_it_is_named_by(name: str) -> None:
    if is_version(name):
        assert str(int(name)) == name
        assert int(name) > 0


@pytest.mark.parametrize("name", ["resnet", "模型", "a b", "a.b-c_d", "ＡＢ", "e\u0301", "1"])
def test_ordinary_names_are_fine(name: str) -> None:
    assert bad_name(name) == ""


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\nb", "a\x00b", "a\x7f", "a\u2028b", "\udcff", "a/b", "a\\b", "é" * 128]
)
def test_names_that_break_logs_or_addresses_are_refused(name: str) -> None:
    assert bad_name(name) != ""


@pytest.mark.parametrize("name", [".git", "..data", "lost+found", "__pycache__", "model.onnx~"])
def test_hidden_and_left_over_entries_are_ignored(name: str) -> None:
    assert is_ignored(name)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("resnet.onnx", "resnet"),
        ("a.b.onnx", "a.b"),
        ("x.savedmodel", "x"),
        ("x.txt", None),
        (".onnx", None),
        ("x", None),
    ],
)
def test_a_bare_file_is_a_model_by_its_suffix(file: str, name: str | None) -> None:
    assert flat_model_name(file) == name


@pytest.mark.parametrize(
    ("entries", "file"),
    [
        (["model.onnx", "other.onnx"], "model.onnx"),
        (["net.onnx", "labels.txt", ".x.onnx"], "net.onnx"),
        (["a.onnx", "b.onnx"], None),
        (["a.txt"], None),
    ],
)
def test_the_model_file_is_the_default_name_or_the_only_one_of_its_kind(entries: list[str], file: str | None) -> None:
    assert pick_model_file(entries, "model.onnx") == file


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/m/resnet.onnx", "resnet"),
        ("/m/resnet/model.onnx", "resnet"),
        ("/m/resnet/3/model.onnx", "resnet"),
        ("/m/resnet", "resnet"),
        ("/m/net.v2", "net.v2"),
        ("/model.onnx", "model"),
    ],
)
def test_a_path_by_itself_names_its_model(path: str, name: str) -> None:
    assert name_for_path(PurePath(path)) == name
