"""Path texts stay inside their folder."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.paths import is_plain_relative, resolve_inside
from kernelport.core.errors import ConfigError

OUTSIDE = ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a\\..\\b", "a\x00b", "a/.."]


@pytest.mark.parametrize("text", OUTSIDE)
def test_a_path_that_leaves_the_folder_is_refused_by_its_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"label_filename .* must be a relative path"):
        resolve_inside(tmp_path, text, "label_filename")


def test_a_file_inside_is_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert resolve_inside(tmp_path, "sub/labels.txt", "x") == tmp_path.resolve() / "sub" / "labels.txt"


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(tmp_path: Path) -> None:
    home = tmp_path / "model"
    home.mkdir()
    (home / "real.txt").write_text("x")
    (home / "stays").symlink_to("real.txt")
    (home / "leaves").symlink_to(tmp_path)
    (home / "loop").symlink_to("loop")
    assert resolve_inside(home, "stays", "x").name == "real.txt"
    for text in ("leaves", "leaves/other", "loop"):
        with pytest.raises(ConfigError):
            resolve_inside(home, text, "x")


def test_the_refusal_does_not_tell_whether_the_file_exists(tmp_path: Path) -> None:
    home = tmp_path / "model"
    home.mkdir()
    (tmp_path / "secret").write_text("x")
    messages = []
    for text in ("../secret", "../nothin"):
        with pytest.raises(ConfigError) as caught:
            resolve_inside(home, text, "file")
        messages.append(str(caught.value).replace(text, ""))
    assert messages[0] == messages[1]


@given(st.text(max_size=20))
def test_whatever_passes_by_its_text_lies_below_the_folder(text: str) -> None:
    if is_plain_relative(text):
        assert Path("/base", text).resolve(strict=False).is_relative_to("/base")
