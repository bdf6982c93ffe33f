"""Dimensions as they come from outside."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.errors import InvalidRequest, MalformedBody, TensorMismatch
from kernelport.protocol.limits import DECODE_DEFAULTS, DecodeLimits
from kernelport.protocol.shape import element_count, shape_text


@pytest.mark.parametrize(("dims", "count"), [([], 1), ([4], 4), ([2, 3], 6), ([0], 0), ([3, 0, 5], 0), ([1] * 16, 1)])
def test_elements_are_counted(dims: list[int], count: int) -> None:
    assert element_count("x", dims, DECODE_DEFAULTS) == count


@pytest.mark.parametrize("dim", [-1, 1.0, "4", None, True, [1], {}])
def test_a_dimension_is_a_non_negative_integer(dim: Any) -> None:
    with pytest.raises(MalformedBody, match="input 'x': shape must be"):
        element_count("x", [1, dim], DECODE_DEFAULTS)


def test_the_rank_is_limited() -> None:
    with pytest.raises(TensorMismatch, match="17 dimensions, this server takes at most 16"):
        element_count("x", [1] * 17, DECODE_DEFAULTS)


def test_empty_tensors_do_not_smuggle_in_huge_dimensions() -> None:
    limits = DecodeLimits(max_elements=1000)
    assert element_count("x", [0, 1000], limits) == 0
    with pytest.raises(TensorMismatch, match="1000"):
        element_count("x", [0, 1001], limits)
    with pytest.raises(TensorMismatch, match="1000"):
        element_count("x", [1001], limits)


@given(st.lists(st.integers(0, 2**70), max_size=18))
def test_products_never_overflow(dims: list[int]) -> None:
    try:
        count = element_count("x", dims, DECODE_DEFAULTS)
    except InvalidRequest:
        return
    assert 0 <= count <= DECODE_DEFAULTS.max_elements


def test_shapes_are_shown_short_and_without_what_the_client_wrote() -> None:
    assert shape_text([1, 4]) == "[1,4]"
    assert shape_text([]) == "[]"
    assert shape_text([None, True, "a\nb", [1], {}, 1.5, 10**40]) == (
        "[null,true,a string,an array or object,an array or object,1.5,a huge number]"
    )
    assert shape_text([1] * 300).endswith("... 300 dimensions]")
    assert len(shape_text([1] * 300)) < 80
