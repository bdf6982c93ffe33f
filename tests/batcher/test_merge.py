"""Joining and cutting: what each request gets back is what it would have got alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.batching import Bench, request, spec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernelport.batcher.merge import match_key, merge, pad_to_bucket, padded_size, split, wanted_outputs
from kernelport.batcher.policy import BatchPolicy
from kernelport.batcher.queue import Entry
from kernelport.core.errors import BackendError
from kernelport.core.model import ModelSpec
from kernelport.core.request import InferenceRequest, RequestedOutput
from kernelport.core.tensor import BYTES, FP32, INT64, Array, Tensor, TensorSpec

PLAIN = BatchPolicy(max_rows=64, merges=True)
TARGET = Bench().target


def entry(wanted: InferenceRequest, rows: int) -> Entry:
    return Entry(wanted, rows, 0, TARGET)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6).flatmap(
        lambda sizes: st.tuples(
            *(hnp.arrays(np.float32, (size, 3), elements=st.floats(-9, 9, width=32)) for size in sizes)
        )
    ),
    st.sampled_from([(), (4, 16, 64)]),
)
def test_cutting_what_was_joined_gives_every_request_its_own_rows(
    arrays: tuple[Array, ...], allowed: tuple[int, ...]
) -> None:
    entries = [entry(InferenceRequest({"X": Tensor("X", FP32, array)}), len(array)) for array in arrays]
    rows = sum(map(len, arrays))
    inputs, total = merge(entries, spec(64), replace(PLAIN, allowed_rows=allowed), rows)
    assert len(inputs["X"]) == total
    assert total == (padded_size(rows, allowed) if allowed else rows)
    parts = split(entries, {"Y": inputs["X"] * 2, "Z": -inputs["X"]}, spec(64), rows, total)
    for array, part in zip(arrays, parts, strict=True):
        assert [tensor.name for tensor in part] == ["Y", "Z"]
        assert np.array_equal(part[0].array, array * 2)
        assert np.array_equal(part[1].array, -array)


def state_spec() -> ModelSpec:
    """The signature of a voice detector: state on axis 1, a sampling rate that is one number for the whole batch."""
    return replace(
        spec(8),
        inputs=(
            TensorSpec("input", FP32, (-1, -1)),
            TensorSpec("state", FP32, (2, -1, 3), batch_axis=1),
            TensorSpec("sr", INT64, (), batch_axis=None),
        ),
        outputs=(TensorSpec("output", FP32, (-1, 1)), TensorSpec("stateN", FP32, (2, -1, 3), batch_axis=1)),
    )


def state_request(value: float, rate: int = 16000, rows: int = 1) -> InferenceRequest:
    return InferenceRequest(
        {
            "input": Tensor("input", FP32, np.full((rows, 4), value, np.float32)),
            "state": Tensor("state", FP32, np.full((2, rows, 3), value, np.float32)),
            "sr": Tensor("sr", INT64, np.array(rate, np.int64)),
        }
    )


def test_every_tensor_is_joined_along_its_own_axis_and_an_unbatched_one_is_passed_once() -> None:
    entries = [entry(state_request(1.0), 1), entry(state_request(2.0, rows=2), 2)]
    inputs, total = merge(entries, state_spec(), PLAIN, 3)
    assert total == 3
    assert inputs["input"].shape == (3, 4)
    assert inputs["state"].shape == (2, 3, 3)
    assert inputs["sr"].shape == ()
    parts = split(entries, {"output": inputs["input"][:, :1], "stateN": inputs["state"]}, state_spec(), 3, 3)
    assert parts[0][1].array.tolist() == np.full((2, 1, 3), 1.0).tolist()
    assert parts[1][1].array.tolist() == np.full((2, 2, 3), 2.0).tolist()


def test_requests_with_another_unbatched_value_may_not_share_a_batch() -> None:
    one, same, other = (match_key(state_request(1.0, rate), state_spec()) for rate in (16000, 16000, 8000))
    assert one == same
    assert one != other


def test_the_batch_size_and_what_is_asked_for_are_outside_the_key() -> None:
    assert match_key(request(1.0, rows=1), spec()) == match_key(request(2.0, rows=5, outputs=["Z"], id="x"), spec())
    assert match_key(request(1.0, width=2), spec()) != match_key(request(1.0, width=3), spec())


def test_an_absent_optional_input_makes_another_key() -> None:
    two = replace(spec(), inputs=(TensorSpec("X", FP32, (-1, -1)), TensorSpec("M", FP32, (-1, -1), optional=True)))
    with_mask = request(1.0)
    with_mask.inputs["M"] = Tensor("M", FP32, np.ones((1, 2), np.float32))
    assert match_key(request(1.0), two) != match_key(with_mask, two)


@pytest.mark.parametrize("shape", [(2, 4), (1, 4), (7, 4), ()])
def test_rows_out_must_equal_rows_in(shape: tuple[int, ...]) -> None:
    entries = [entry(request(1.0), 1) for _ in range(3)]
    with pytest.raises(BackendError, match=r"output 'Y' has shape .* for 3 rows in"):
        split(entries, {"Y": np.zeros(shape, np.float32)}, spec(), 3, 3)


def test_a_single_request_with_the_wrong_number_of_rows_out_is_an_error_too() -> None:
    with pytest.raises(BackendError, match="max_batch_size: 0"):
        split([entry(request(1.0, rows=3), 3)], {"Y": np.zeros((1, 4), np.float32)}, spec(), 3, 3)


def test_outputs_that_are_not_batched_go_to_everybody() -> None:
    shared = replace(spec(), outputs=(TensorSpec("META", FP32, (3,), batch_axis=None),))
    entries = [entry(request(1.0), 1) for _ in range(2)]
    parts = split(entries, {"META": np.arange(3, dtype=np.float32)}, shared, 2, 2)
    assert [part[0].array.tolist() for part in parts] == [[0, 1, 2]] * 2


def test_padding_to_a_shape_bucket_is_undone_in_the_outputs() -> None:
    policy = replace(PLAIN, shape_buckets=(("X", 1, (4, 8)),))
    bench = Bench(policy)
    wanted = request(3.0, width=3)
    sizes = pad_to_bucket(wanted, policy)
    assert wanted.inputs["X"].array.tolist() == [[3.0, 3.0, 3.0, 0.0]]
    assert sizes == {("X", 1): 3}
    waiting = bench.submit(wanted)
    waiting.sizes = sizes
    bench.work()
    assert waiting.response is not None
    assert waiting.response.outputs[0].array.tolist() == [[6.0, 6.0, 6.0]]


def test_a_dimension_above_the_largest_bucket_stays_as_it_is() -> None:
    wanted = request(3.0, width=9)
    assert pad_to_bucket(wanted, replace(PLAIN, shape_buckets=(("X", 1, (4, 8)),))) == {}
    assert wanted.inputs["X"].array.shape == (1, 9)


def test_text_is_padded_with_empty_text() -> None:
    wanted = InferenceRequest({"X": Tensor("X", BYTES, np.array([[b"a"]], object))})
    pad_to_bucket(wanted, replace(PLAIN, shape_buckets=(("X", 1, (3,)),)))
    assert wanted.inputs["X"].array.tolist() == [[b"a", b"", b""]]


def test_the_framework_sees_reshaped_tensors_and_the_client_its_own() -> None:
    model = replace(
        spec(8),
        inputs=(TensorSpec("X", FP32, (-1, 4), reshape=(2, 2)),),
        outputs=(TensorSpec("Y", FP32, (-1, 4), reshape=(4, 1)),),
    )
    entries = [entry(InferenceRequest({"X": Tensor("X", FP32, np.full((1, 4), n, np.float32))}), 1) for n in (1.0, 2.0)]
    inputs, _ = merge(entries, model, PLAIN, 2)
    assert inputs["X"].shape == (2, 2, 2)
    parts = split(entries, {"Y": inputs["X"].reshape(2, 4, 1)}, model, 2, 2)
    assert parts[1][0].array.tolist() == [[2.0] * 4]


@pytest.mark.parametrize("rows", [0, 8])
def test_several_free_dimensions_of_a_reshape_are_the_tensors_own_in_order(rows: int) -> None:
    batch = (-1,) if rows else ()
    model = replace(
        spec(rows),
        inputs=(TensorSpec("X", FP32, (*batch, -1, 4, -1), reshape=(-1, 2, 2, -1)),),
        outputs=(TensorSpec("Y", FP32, (*batch, -1, 4, -1), reshape=(-1, 2, 2, -1)),),
    )
    array = np.arange(3 * 4 * 7, dtype=np.float32).reshape(*(1,) * bool(rows), 3, 4, 7)
    one = entry(InferenceRequest({"X": Tensor("X", FP32, array)}), 1)
    inputs, total = merge([one], model, PLAIN, 1)
    assert inputs["X"].shape == (*(1,) * bool(rows), 3, 2, 2, 7)
    ((output,),) = split([one], {"Y": inputs["X"]}, model, 1, total)
    assert np.array_equal(output.array, array)


def test_a_reshape_keeps_a_tensor_without_elements_as_it_is() -> None:
    model = replace(spec(8), inputs=(TensorSpec("X", FP32, (-1, -1, 2), reshape=(2, -1)),))
    one = entry(InferenceRequest({"X": Tensor("X", FP32, np.zeros((1, 0, 2), np.float32))}), 1)
    inputs, _ = merge([one], model, PLAIN, 1)
    assert inputs["X"].shape == (1, 2, 0)


def test_a_reshape_of_an_output_of_unknown_rank_is_left_to_the_framework() -> None:
    model = replace(spec(8), outputs=(TensorSpec("Y", FP32, None, reshape=(4,)),))
    ((output,),) = split([entry(request(1.0), 1)], {"Y": np.zeros((1, 2, 2), np.float32)}, model, 1, 1)
    assert output.shape == (1, 2, 2)


def test_padding_leaves_alone_what_all_rows_share() -> None:
    entries = [entry(state_request(1.0), 1), entry(state_request(2.0, rows=2), 2)]
    inputs, total = merge(entries, state_spec(), replace(PLAIN, allowed_rows=(4, 8)), 3)
    assert total == 4
    assert {name: array.shape for name, array in inputs.items()} == {"input": (4, 4), "state": (2, 4, 3), "sr": ()}
    assert inputs["state"][:, 3].tolist() == inputs["state"][:, 2].tolist()


def test_texts_that_all_rows_share_are_compared_by_their_values() -> None:
    model = replace(spec(), inputs=(TensorSpec("X", FP32, (-1, -1)), TensorSpec("lang", BYTES, (1,), batch_axis=None)))
    keys = []
    for text in (b"de", b"de", b"en"):
        wanted = request(1.0)
        # Equal texts are different objects; their addresses must not matter.
        wanted.inputs["lang"] = Tensor("lang", BYTES, np.array([bytes(bytearray(text))], object))
        keys.append(match_key(wanted, model))
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_a_shape_bucket_of_an_absent_or_flatter_input_changes_nothing() -> None:
    wanted = request(3.0, width=3)
    assert pad_to_bucket(wanted, replace(PLAIN, shape_buckets=(("M", 1, (4,)), ("X", 2, (4,))))) == {}
    assert wanted.inputs["X"].shape == (1, 3)


def test_only_outputs_that_follow_the_padded_dimension_are_cropped() -> None:
    lengths = [("", "L"), ("", "W")]
    model = replace(
        spec(8),
        inputs=tuple(TensorSpec(name, FP32, (-1, -1), symbols=own) for name, own in zip("XW", lengths, strict=True)),
        outputs=(
            TensorSpec("likeX", FP32, (-1, -1), symbols=("", "L")),
            TensorSpec("likeW", FP32, (-1, -1), symbols=("", "W")),
            TensorSpec("fixed", FP32, (-1, 4)),
            TensorSpec("unknown", FP32, None),
            TensorSpec("nameless", FP32, (-1, -1)),
        ),
    )
    wanted = request(1.0, width=3)
    wanted.inputs["W"] = Tensor("W", FP32, np.zeros((1, 2), np.float32))
    one = entry(wanted, 1)
    one.sizes = pad_to_bucket(wanted, replace(PLAIN, shape_buckets=(("X", 1, (4,)), ("W", 1, (4,)))))
    outputs = {spec.name: np.zeros((1, 4), np.float32) for spec in model.outputs}
    (part,) = split([one], outputs, model, 1, 1)
    assert {tensor.name: tensor.shape[1] for tensor in part} == {
        "likeX": 3, "likeW": 2, "fixed": 4, "unknown": 4, "nameless": 4,
    }  # fmt: skip


@pytest.mark.parametrize("computed", [["Z"], ["Y", "Z"]])
def test_a_request_gets_only_what_it_asked_for_whatever_was_computed(computed: list[str]) -> None:
    outputs = {name: np.zeros((1, 2), np.float32) for name in computed}
    (part,) = split([entry(request(1.0, outputs=["Z"]), 1)], outputs, spec(), 1, 1)
    assert [tensor.name for tensor in part] == ["Z"]


def test_the_union_of_requested_outputs_is_none_when_it_is_everything() -> None:
    asked = [("Y",), ("Z",)]
    entries = [entry(InferenceRequest({}, tuple(RequestedOutput(name) for name in names)), 1) for names in asked]
    assert wanted_outputs(entries[:1], spec()) == ("Y",)
    assert wanted_outputs(entries, spec()) is None
