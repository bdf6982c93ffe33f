"""Byte sizes in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.sizes import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64MiB", 64 * 1024**2),
        ("64 mib", 64 * 1024**2),
        ("1GB", 10**9),
        ("1.5GiB", 1610612736),
        ("2k", 2048),
        (" 10B ", 10),
    ],
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "64 miles", "1e9", "64MiBs", "٤", "1.00001k", "0.3B", "1..5k"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        parse_bytes(text)


@given(st.integers(0, 2**60))
def test_a_formatted_size_reads_back_as_itself(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size
