"""One tensor of a configuration over what the model declares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.tensor import InputConfig, OutputConfig
from kernelport.core.errors import LoadError
from kernelport.core.tensor import FP32, INT64, Shape, TensorSpec
from kernelport.lifecycle.tensor_merge import Pair, merge, pair_up, says_batched, why_not_batchable

WHERE = "model 'm'"


def pair(shape: Shape | None, role: str = "input", **written: object) -> Pair:
    spec = TensorSpec("X", FP32, shape)
    if not written:
        return Pair(role, spec, None)
    block = InputConfig if role == "input" else OutputConfig
    return Pair(role, spec, block.model_validate({"name": "X", **written}))


def test_configured_tensors_come_first_and_in_their_order() -> None:
    model = [TensorSpec(name, FP32, (-1, 4)) for name in "abc"]
    written = [InputConfig(name="c"), InputConfig(name="b")]
    assert [one.model.name for one in pair_up("input", model, written, WHERE)] == ["c", "b", "a"]


def test_a_name_that_the_model_lacks_is_told_with_those_it_has() -> None:
    model = [TensorSpec("images", FP32, (-1, 4)), TensorSpec("sizes", INT64, (-1,))]
    with pytest.raises(LoadError) as caught:
        pair_up("input", model, [InputConfig(name="image")], WHERE)
    assert str(caught.value) == (
        "model 'm': the configuration names input 'image'; the model's inputs are images (FP32 [-1,4]), "
        "sizes (INT64 [-1]); did you mean 'images'?"
    )


def test_a_data_type_that_contradicts_the_model_is_told_with_both() -> None:
    with pytest.raises(
        LoadError, match="the model has TYPE_FP32, the configuration says TYPE_INT64; write data_type: TYPE_FP32"
    ):
        pair_up("output", [TensorSpec("Y", FP32, (4,))], [OutputConfig(name="Y", data_type="TYPE_INT64")], WHERE)


def test_an_input_cannot_be_made_optional_when_the_model_needs_it() -> None:
    with pytest.raises(LoadError, match="remove optional: true"):
        pair_up("input", [TensorSpec("X", FP32, (4,))], [InputConfig(name="X", optional=True)], WHERE)


@pytest.mark.parametrize(
    ("shape", "dims", "rows", "served"),
    [
        ((-1, 4), None, 8, (-1, 4)),
        ((-1, 4), (4,), 8, (-1, 4)),
        ((-1, -1), (4,), 8, (-1, 4)),
        ((-1, -1), (-1,), 8, (-1, -1)),
        ((-1, 4), (-1, 4), 0, (-1, 4)),
        ((-1, -1), (2, 4), 0, (2, 4)),
        ((), (), 0, ()),
        (None, (3, -1), 0, (3, -1)),
        (None, (3,), 8, (-1, 3)),
        ((1, 4), (4,), 1, (-1, 4)),
        ((1, 4), None, 1, (-1, 4)),
        ((-1, 4), (4,), 1, (-1, 4)),
    ],
)
def test_compatible_dims_win_over_the_model(shape: Shape | None, dims: Shape | None, rows: int, served: Shape) -> None:
    merged = merge(pair(shape) if dims is None else pair(shape, dims=dims), rows, WHERE)
    assert merged.shape == served
    assert merged.batch_axis == (0 if rows else None)


@pytest.mark.parametrize(
    ("shape", "dims", "rows", "message"),
    [
        (
            (-1, 4), (-1, 4), 8,
            "dims [ -1, 4 ] has rank 2 and max_batch_size > 0 adds one: rank 3, but the model has [ -1, 4 ], rank 2; "
            "did you mean dims: [ 4 ]?",
        ),
        (
            (-1, 456, 456, 3), (-1, 456, 456, 3), 8,
            "dims [ -1, 456, 456, 3 ] has rank 4 and max_batch_size > 0 adds one: rank 5, but the model has "
            "[ -1, 456, 456, 3 ], rank 4; did you mean dims: [ 456, 456, 3 ]?",
        ),
        (
            (-1, 4), (4,), 0,
            "dims [ 4 ] has rank 1, but the model has [ -1, 4 ], rank 2; did you mean dims: [ -1, 4 ], "
            "or a max_batch_size above 0?",
        ),
        (
            (-1, 4), (5,), 8,
            "the model has [ -1, 4 ], the configuration says dims [ 5 ] (batch dimension excluded); write dims: [ 4 ]",
        ),
        (
            (2, -1, 4), (3, 7, 5), 0,
            "the model has [ 2, -1, 4 ], the configuration says dims [ 3, 7, 5 ]; write dims: [ 2, 7, 4 ]",
        ),
        ((4,), (-1,), 0, "the model has [ 4 ], the configuration says dims [ -1 ]; write dims: [ 4 ]"),
        (
            (1, 4), None, 8,
            "max_batch_size is 8, but model dim 0 is fixed at 1; set max_batch_size: 0 or 1 "
            "(or re-export the model with a dynamic batch)",
        ),
        (
            (3,), None, 1,
            "max_batch_size is 1, but model dim 0 is fixed at 3; set max_batch_size: 0 "
            "(or re-export the model with a dynamic batch)",
        ),
        (
            (), None, 8,
            "max_batch_size is 8, but the model has [ ], without a dimension 0 to batch along; set max_batch_size: 0, "
            "or the right batch_axis for this input (null if it has none)",
        ),
    ],
)  # fmt: skip
def test_contradictions_say_what_the_model_has_what_was_asked_and_what_to_write(
    shape: Shape, dims: Shape | None, rows: int, message: str
) -> None:
    with pytest.raises(LoadError) as caught:
        merge(pair(shape) if dims is None else pair(shape, dims=dims), rows, WHERE)
    assert str(caught.value) == f"model 'm': input 'X': {message}"


def test_an_output_may_be_declared_freer_than_it_is() -> None:
    assert merge(pair((-1, 4), "output", dims=(-1,)), 8, WHERE).shape == (-1, -1)


def test_a_reshape_is_held_against_the_model_and_dims_are_what_clients_see() -> None:
    merged = merge(pair((-1, 2, 2), dims=(4,), reshape={"shape": (2, 2)}), 8, WHERE)
    assert (merged.shape, merged.reshape) == ((-1, 4), (2, 2))
    scalar = merge(pair((-1,), dims=(1,), reshape={"shape": ()}), 8, WHERE)
    assert (scalar.shape, scalar.reshape) == ((-1, 1), ())
    with pytest.raises(
        LoadError, match=r"says reshape.shape \[ 4, 1 \] \(batch dimension excluded\); write reshape.shape: \[ 2, 2 \]"
    ):
        merge(pair((-1, 2, 2), dims=(4,), reshape={"shape": (4, 1)}), 8, WHERE)
    with pytest.raises(LoadError, match="reshape needs dims"):
        merge(pair((-1, 2, 2), reshape={"shape": (2, 2)}), 8, WHERE)


def test_a_batch_axis_moves_the_batch_dimension_and_null_removes_it() -> None:
    state = merge(pair((2, -1, 128), batch_axis=1), 8, WHERE)
    assert (state.shape, state.batch_axis) == ((2, -1, 128), 1)
    assert merge(pair((2, -1, 128), batch_axis=1, dims=(2, 128)), 8, WHERE).shape == (2, -1, 128)
    scalar = merge(pair((), batch_axis=None), 8, WHERE)
    assert (scalar.shape, scalar.batch_axis) == ((), None)
    with pytest.raises(LoadError, match="batch_axis 3 is beyond dims"):
        merge(pair(None, batch_axis=3, dims=(2, 128)), 8, WHERE)


def test_names_of_dimensions_stay_with_those_that_are_still_free() -> None:
    spec = TensorSpec("X", FP32, (-1, -1, 4), symbols=("batch", "length", ""))
    assert merge(Pair("input", spec, None), 8, WHERE).symbols == ("batch", "length", "")
    fixed = Pair("input", spec, InputConfig(name="X", dims=(7, 4)))
    assert merge(fixed, 8, WHERE).symbols == ("batch", "", "")


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (pair((-1, 4)), None),
        (pair((-1, 4), dims=(4,)), True),
        (pair((-1, 4), dims=(-1, 4)), False),
        (pair(None, dims=(4,)), None),
        (pair((), dims=(), batch_axis=None), None),
    ],
)
def test_the_rank_of_dims_tells_whether_a_batch_dimension_is_left_out(one: Pair, verdict: bool | None) -> None:
    assert says_batched(one, WHERE) is verdict


def test_dims_of_no_fitting_rank_are_told_with_both_ways_to_write_them() -> None:
    with pytest.raises(
        LoadError, match=r"write dims: \[ -1, 3, 4 \], or dims: \[ 3, 4 \] to batch along the first one"
    ):
        says_batched(pair((-1, 3, 4), dims=(4,)), WHERE)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (pair((-1, 4)), ""),
        (pair((), batch_axis=None), ""),
        (pair(None), "the rank of input 'X' is not known"),
        (pair(()), "input 'X' is a scalar"),
        (pair((3,), "output"), "dimension 0 of output 'X' is fixed at 3"),
        (pair((2, 3), batch_axis=1), "dimension 1 of input 'X' is fixed at 3"),
        (pair((2,), batch_axis=1), "input 'X' has shape [ 2 ], so there is no dimension 1"),
    ],
)
def test_the_reason_against_batching_names_the_tensor(one: Pair, reason: str) -> None:
    assert why_not_batchable(one) == reason


SHAPES = st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=0, max_size=4).map(tuple)


@given(SHAPES, SHAPES, st.sampled_from([0, 1, 8]))
def test_what_is_accepted_is_never_wider_than_an_input_of_the_model(model: Shape, dims: Shape, rows: int) -> None:
    try:
        merged = merge(pair(model, dims=dims), rows, WHERE)
    except LoadError:
        return
    assert merged.shape is not None
    assert len(merged.shape) == len(model)
    for position, (served, declared) in enumerate(zip(merged.shape, model, strict=True)):
        if not (rows and position == 0):
            assert declared in (-1, served)
