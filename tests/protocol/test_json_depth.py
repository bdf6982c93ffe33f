"""Nesting and brackets of JSON texts, counted without parsing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.protocol.json_depth import count_is, count_is_at_most, depth_of

JSON = st.recursive(
    st.none() | st.text() | st.integers() | st.sampled_from(["[", "]", "{}", '"', "\\", '\\"[']),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just('"[{'), one, max_size=3),
)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@given(JSON)
def test_the_depth_is_that_of_the_document(value: Any) -> None:
    assert depth_of(json.dumps(value).encode()) == _depth(value)


@pytest.mark.parametrize(
    ("text", "depth"),
    [(b"", 0), (b"1", 0), (b"[[", 2), (b"]]", 0), (b'"[[[', 0), (b'["\\', 1), (b'["\\"[[[]', 1), (b'"a" [', 1)],
)
def test_texts_that_are_no_json_have_a_depth_too(text: bytes, depth: int) -> None:
    assert depth_of(text) == depth


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 1_000_000, b'"\\' * 1_000_000, b'"' * 2_000_001, b"[" * 5_000_000])
def test_no_text_takes_more_than_linear_time(text: bytes) -> None:
    assert depth_of(text) in (0, len(text))  # a quadratic way would run into the test's time limit


@given(st.text("[]{}a", max_size=30), st.integers(0, 40), st.sampled_from([0, 5000]))
def test_counting_short_and_long_texts_gives_the_same(text: str, number: int, padding: int) -> None:
    raw = text.encode() + b" " * padding
    assert count_is(raw, b"[", number) == (text.count("[") == number)
    assert count_is_at_most(raw, b"[", number) == (text.count("[") <= number)


def test_many_occurrences_are_counted_exactly() -> None:
    raw = b"[" * 5000
    assert count_is(raw, b"[", 5000)
    assert not count_is(raw, b"[", 4999)
    assert not count_is(raw, b"[", 5001)
