"""Reading configuration files that are no ordinary ones."""

import os
from pathlib import Path

import pytest
from kernelport.config.text_file import read_text_file
from kernelport.core.errors import ConfigError


def test_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfname: x\n")
    assert read_text_file(tmp_path / "a") == "name: x\n"


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_text_file(tmp_path / "a")


def test_a_missing_file_a_huge_one_and_no_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "huge").write_bytes(b"x" * 11)
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_text_file(tmp_path / "none")
    with pytest.raises(ConfigError, match="larger than 10 bytes"):
        read_text_file(tmp_path / "huge", 10)
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        read_text_file(tmp_path / "latin")
