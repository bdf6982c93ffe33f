import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.tensor import BF16, BYTES, DATATYPES, FP16, FP32, INT64, DataType, TensorSpec
from kernelport.lifecycle.synthetic import (
    FREE_SIZES,
    WIDE,
    batch_axis,
    framework_shape,
    free_sizes,
    single_row_candidates,
    synthetic_array,
    synthetic_inputs,
)


def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (TensorSpec("x", FP32, (-1, 4)), (3, 4)),
        (TensorSpec("x", FP32, (-1, -1, 2)), (3, 8, 2)),
        (TensorSpec("x", FP32, (2, -1, 5), batch_axis=1), (2, 3, 5)),
        (TensorSpec("x", FP32, (2, -1), batch_axis=None), (2, 8)),
        (TensorSpec("x", FP32, ()), ()),
        (TensorSpec("x", FP32, (1, 4)), (1, 4)),
        (TensorSpec("x", FP32, (-1, 6), reshape=(2, 3)), (3, 2, 3)),
        (TensorSpec("x", FP32, (6,), reshape=(-1, 3), batch_axis=None), (8, 3)),
        (TensorSpec("x", FP32, None), None),
    ],
)
def test_the_framework_shape_has_rows_on_the_batch_axis(spec: TensorSpec, shape: tuple[int, ...] | None) -> None:
    assert framework_shape(spec, 3, 8) == shape


def test_the_batch_axis_must_be_free() -> None:
    assert batch_axis(TensorSpec("x", FP32, (-1, 4))) == 0
    assert batch_axis(TensorSpec("x", FP32, (1, 4))) is None
    assert batch_axis(TensorSpec("x", FP32, None)) is None
    assert batch_axis(TensorSpec("x", FP32, (-1,), batch_axis=None)) is None


@given(st.sampled_from(sorted(DATATYPES)), st.lists(st.integers(0, 4), max_size=3), st.sampled_from([1, WIDE]))
def test_arrays_have_the_carrier_type_and_shape(name: str, shape: list[int], highest: int) -> None:
    kind: DataType = DATATYPES[name]
    array = synthetic_array(kind, tuple(shape), random(), highest)
    assert (array.dtype, array.shape) == (kind.dtype, tuple(shape))


def test_values_are_ones_that_models_accept() -> None:
    assert set(synthetic_array(INT64, (100,), random()).tolist()) == {0, 1}
    assert set(synthetic_array(BYTES, (100,), random()).tolist()) == {b"0", b"1"}
    floats = synthetic_array(FP16, (100,), random())
    assert ((floats >= 0) & (floats <= 1)).all()
    bits = synthetic_array(BF16, (100,), random()).astype(np.uint32) << 16
    assert ((bits.view(np.float32) >= 0) & (bits.view(np.float32) <= 1)).all()
    assert synthetic_array(INT64, (1000,), random(), WIDE).max() > 50


def test_optional_inputs_are_left_out_and_unknown_ranks_give_nothing() -> None:
    specs = [TensorSpec("a", FP32, (-1, 2)), TensorSpec("b", FP32, (3,), optional=True)]
    assert list(synthetic_inputs(specs, 2, 8, random()) or {}) == ["a"]
    assert synthetic_inputs([TensorSpec("a", FP32, None)], 2, 8, random()) is None
    assert list(single_row_candidates([TensorSpec("a", FP32, None)], random())) == []


def test_sizes_are_tried_only_where_one_is_free() -> None:
    assert free_sizes([TensorSpec("a", FP32, (-1, 2))]) == (1,)
    assert free_sizes([TensorSpec("a", FP32, (-1, -1))]) == FREE_SIZES
    assert free_sizes([TensorSpec("a", FP32, (-1, -1), optional=True)]) == (1,)
    assert free_sizes([TensorSpec("a", FP32, (-1, -1), reshape=(2, 2))]) == (1,)


def test_a_state_with_its_batch_further_in_is_tried_with_one_row() -> None:
    specs = [TensorSpec("x", FP32, (-1, 4)), TensorSpec("state", FP32, (2, -1, 4))]
    shapes = [one["state"].shape for one in single_row_candidates(specs, random())]
    assert (2, 8, 4) in shapes
    assert shapes[-1] == (2, 1, 4)
