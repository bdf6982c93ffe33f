"""Configuration and signature together."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.config.model import ModelConfig
from kernelport.core.errors import LoadError
from kernelport.core.model import Signature
from kernelport.core.tensor import BF16, BOOL, FP32, INT32, INT64, UINT8, DataType, Shape, TensorSpec
from kernelport.lifecycle.complete import CompletedModel, RowCheckUse, complete

ECHO = Signature((TensorSpec("X", FP32, (-1, 4)),), (TensorSpec("Y", FP32, (-1, 4)),), "onnxruntime_onnx")
MIXED = Signature(ECHO.inputs, (TensorSpec("Y", FP32, (-1, 4)), TensorSpec("META", FP32, (3,))), "onnxruntime_onnx")
FIXED = Signature((TensorSpec("X", FP32, (1, 4)),), (TensorSpec("Y", FP32, (1, 4)),), "onnxruntime_onnx")
SCALAR = Signature((TensorSpec("X", FP32, ()),), (TensorSpec("Y", FP32, ()),), "onnxruntime_onnx")
VAD = Signature(
    (TensorSpec("input", FP32, (-1, -1)), TensorSpec("state", FP32, (2, -1, 128)), TensorSpec("sr", INT64, ())),
    (TensorSpec("output", FP32, (-1, 1)), TensorSpec("stateN", FP32, (2, -1, 128))),
    "onnxruntime_onnx",
)


def done(signature: Signature, /, **fields: Any) -> CompletedModel:
    return complete("m", "1", ModelConfig.model_validate(fields), signature, "onnxruntime", filename="model.onnx")


def refusal(signature: Signature, /, **fields: Any) -> str:
    with pytest.raises(LoadError) as caught:
        done(signature, **fields)
    return str(caught.value)


def shapes(model: CompletedModel) -> list[Shape | None]:
    return [one.shape for one in (*model.spec.inputs, *model.spec.outputs)]


def test_without_configuration_a_free_first_dimension_batches_if_the_row_check_passes() -> None:
    model = complete("m", "1", None, ECHO, "onnxruntime")
    assert model.spec.max_batch_size == 32
    assert model.batch == BatchPolicy(max_rows=32, merges=True)
    assert model.row_check is RowCheckUse.DECIDES
    assert "dynamic_batching" in model.config_json
    assert model.without_batching is not None
    assert model.without_batching.spec.max_batch_size == 0
    assert model.without_batching.spec.inputs[0].shape == (-1, 4)
    assert model.without_batching.batch == BatchPolicy()
    assert model.without_batching.config_json["input"][0]["dims"] == [-1, 4]
    assert "dynamic_batching" not in model.without_batching.config_json
    assert model.notes == (
        "max_batch_size is not written: 32, the server's default, since every batch dimension is free",
    )


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (MIXED, "dimension 0 of output 'META' is fixed at 3"),
        (FIXED, "dimension 0 of input 'X' is fixed at 1"),
        (SCALAR, "input 'X' is a scalar"),
        (VAD, "dimension 0 of input 'state' is fixed at 2"),
        (Signature(ECHO.inputs, (TensorSpec("Y", FP32, None),), ""), "the rank of output 'Y' is not known"),
        (Signature((), ECHO.outputs, ""), "no input has a batch dimension"),
    ],
)
def test_a_model_that_cannot_batch_loads_unbatched_and_says_why(signature: Signature, reason: str) -> None:
    model = done(signature)
    assert model.spec.max_batch_size == 0
    assert model.batch == BatchPolicy()
    assert model.row_check is RowCheckUse.NONE
    assert model.without_batching is None
    assert model.notes == (f"batching is off, max_batch_size is 0: {reason}",)
    assert [one.batch_axis for one in model.spec.inputs] == [None] * len(signature.inputs)
    assert shapes(model) == [one.shape for one in (*signature.inputs, *signature.outputs)]


def test_a_model_with_state_on_another_axis_batches_when_told_the_axes() -> None:
    model = done(
        VAD,
        input=[{"name": "state", "batch_axis": 1}, {"name": "sr", "batch_axis": None}],
        output=[{"name": "output"}, {"name": "stateN", "batch_axis": 1}],
    )
    assert model.spec.max_batch_size == 32
    assert {one.name: one.batch_axis for one in model.spec.inputs} == {"state": 1, "sr": None, "input": 0}
    assert model.spec.inputs_by_name["state"].shape == (2, -1, 128)
    assert {one["name"]: one["dims"] for one in model.config_json["input"]} == {
        "state": [2, 128],
        "sr": [],
        "input": [-1],
    }
    assert model.without_batching is not None
    assert [one.batch_axis for one in model.without_batching.spec.inputs] == [None, None, None]


def test_a_written_maximum_without_a_block_merges_if_rows_are_independent() -> None:
    model = done(ECHO, max_batch_size=8)
    assert model.row_check is RowCheckUse.DECIDES
    assert model.batch == BatchPolicy(max_rows=8, merges=True)
    assert model.without_batching is not None
    assert model.without_batching.spec == model.spec
    assert model.without_batching.batch == BatchPolicy(max_rows=8, merges=False)
    assert "dynamic_batching" not in model.config_json


def test_a_written_maximum_with_a_block_merges_whatever_the_check_says() -> None:
    model = done(
        ECHO,
        max_batch_size=8,
        dynamic_batching={
            "preferred_batch_size": [8, 4],
            "max_queue_delay_microseconds": 100,
            "preserve_ordering": True,
        },
    )
    assert model.row_check is RowCheckUse.WARNS
    assert model.without_batching is None
    assert model.batch == BatchPolicy(8, True, (4, 8), 100_000, True)


@pytest.mark.parametrize(
    ("fields", "maximum"),
    [
        ({"max_batch_size": 0}, 0),
        ({"max_batch_size": 0, "dynamic_batching": {}}, 0),
        ({"max_batch_size": 1}, 1),
        ({"max_batch_size": 8, "dynamic_batching": "off"}, 8),
        ({"dynamic_batching": "off"}, 0),
        ({"input": [{"name": "X", "dims": [-1, 4]}]}, 0),
    ],
)
def test_what_the_user_wrote_can_turn_merging_off(fields: dict[str, Any], maximum: int) -> None:
    model = done(ECHO, **fields)
    assert model.spec.max_batch_size == maximum
    assert not model.batch.merges
    assert model.row_check is RowCheckUse.NONE
    assert len(model.notes) == 1
    assert shapes(model) == [(-1, 4), (-1, 4)]


def test_dims_without_the_batch_dimension_keep_it_even_if_rows_depend_on_each_other() -> None:
    flexible = Signature((TensorSpec("X", FP32, (-1, -1)),), (TensorSpec("Y", FP32, (-1, -1)),), "")
    model = done(flexible, input=[{"name": "X", "dims": [4]}])
    assert shapes(model) == [(-1, 4), (-1, -1)]
    assert model.without_batching is not None
    assert model.without_batching.spec == model.spec
    assert model.without_batching.batch == BatchPolicy(max_rows=32)


def test_a_fixed_batch_of_one_serves_one_row() -> None:
    assert shapes(done(FIXED, max_batch_size=1)) == [(-1, 4), (-1, 4)]
    assert "set max_batch_size: 0 or 1" in refusal(FIXED, max_batch_size=8)
    assert "output 'META': max_batch_size is 8, but model dim 0 is fixed at 3" in refusal(MIXED, max_batch_size=8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"input": [{"name": "X", "dims": [4]}], "output": [{"name": "Y", "dims": [-1, 4]}]},
            "dims of output 'Y' include every dimension, dims of input 'X' leave the batch dimension out",
        ),
        ({"max_batch_size": 8, "input": [{"name": "X", "batch_axis": None}]}, "no input has a batch dimension"),
        (
            {"max_batch_size": 4, "dynamic_batching": {"preferred_batch_size": [8]}},
            "preferred_batch_size 8 is above max_batch_size 4",
        ),
        ({"shape_buckets": {"Z": {1: [4]}}}, "shape_buckets names input 'Z'; inputs are X"),
        ({"shape_buckets": {"X": {1: [4]}}}, "axis 1 of input X (FP32 [-1,4]) is not free"),
        ({"shape_buckets": {"X": {0: [4]}}}, "axis 0 of input X (FP32 [-1,4]) is not free"),
        (
            {"max_queue_size": 5, "dynamic_batching": {"default_queue_policy": {"max_queue_size": 6}}},
            "max_queue_size is 5 at the top and 6 in default_queue_policy; write it once",
        ),
        (
            {"output": [{"name": "Y", "data_type": "TYPE_UINT8"}]},
            "the model has TYPE_FP32, the configuration says TYPE_UINT8",
        ),
        ({"output": [{"name": "Y", "dims": [5]}]}, "write dims: [ 4 ]"),
        (
            {"output": [{"name": "Y", "label_filename": "labels.txt"}]},
            "label_filename 'labels.txt' needs the model's folder",
        ),
    ],
)
def test_contradictions_fail_the_load(fields: dict[str, Any], message: str) -> None:
    text = refusal(ECHO, **fields)
    assert text.startswith("model 'm': ")
    assert message in text


def test_dims_that_ask_for_a_batch_dimension_fail_where_there_cannot_be_one() -> None:
    text = refusal(MIXED, input=[{"name": "X", "dims": [4]}])
    assert text == (
        "model 'm': dims of input 'X' leave a batch dimension out, but dimension 0 of output 'META' is fixed at 3; "
        "write max_batch_size: 0"
    )


def test_preferred_sizes_on_a_model_that_cannot_batch_are_told_with_the_reason() -> None:
    text = refusal(SCALAR, dynamic_batching={"preferred_batch_size": [4]})
    assert "is above max_batch_size 0 (batching is off, max_batch_size is 0: input 'X' is a scalar)" in text


def test_inputs_that_are_not_listed_are_added_and_outputs_are_not() -> None:
    two = Signature(
        (TensorSpec("A", FP32, (-1, 4)), TensorSpec("B", INT32, (-1, 2))),
        (TensorSpec("P", FP32, (-1, 1)), TensorSpec("Q", FP32, (-1, 1))),
        "",
    )
    model = done(two, max_batch_size=8, input=[{"name": "B"}], output=[{"name": "Q"}])
    assert [one.name for one in model.spec.inputs] == ["B", "A"]
    assert [one.name for one in model.spec.outputs] == ["Q"]
    assert "outputs not listed in the configuration are not served: P" in model.notes


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, QueuePolicy(1024)),
        ({"max_queue_size": 7}, QueuePolicy(7)),
        ({"max_queue_size": 7, "dynamic_batching": {}}, QueuePolicy(7)),
        ({"dynamic_batching": {"default_queue_policy": {"max_queue_size": 3}}}, QueuePolicy(3)),
        (
            {
                "dynamic_batching": {
                    "default_queue_policy": {
                        "timeout_action": "DELAY",
                        "default_timeout_microseconds": 200,
                        "allow_timeout_override": True,
                    }
                }
            },
            QueuePolicy(1024, 200_000, True, False),
        ),
    ],
)
def test_the_queue_is_bounded_by_the_nearest_word_on_it(fields: dict[str, Any], policy: QueuePolicy) -> None:
    assert done(ECHO, **fields).queue == policy


def test_padding_and_splitting_reach_the_policy() -> None:
    free = Signature((TensorSpec("X", FP32, (-1, -1)),), (TensorSpec("Y", FP32, (-1, 1)),), "")
    model = done(
        free, allowed_batch_sizes=[2, 8], shape_buckets={"X": {1: [16, 32]}}, pad_value=1.5, split_oversized=True
    )
    assert model.spec.max_batch_size == 8
    assert model.batch == BatchPolicy(8, True, (), 0, False, (2, 8), (("X", 1, (16, 32)),), 1.5, True)


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [(INT32, -1, True), (INT32, 0.5, False), (UINT8, -1, False), (FP32, 0.5, True), (BF16, 1, False), (BOOL, 1, True)],
)
def test_a_pad_value_is_a_value_of_the_inputs_type(kind: DataType, value: float, fits: bool) -> None:
    free = Signature((TensorSpec("X", kind, (-1, -1)),), (TensorSpec("Y", FP32, (-1, 1)),), "")
    fields = {"shape_buckets": {"X": {1: [16]}}, "pad_value": value}
    if fits:
        assert done(free, **fields).batch.pad_value == value
    else:
        assert f"pad_value {value:g} is no value for padding input X" in refusal(free, **fields)


def test_labels_are_read_from_the_models_folder(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    config = ModelConfig.model_validate({"output": [{"name": "Y", "label_filename": "labels.txt"}]})
    model = complete("m", "1", config, ECHO, "onnxruntime", model_dir=tmp_path)
    assert model.spec.outputs[0].labels == ("cat", "dog")


def test_a_label_file_outside_the_folder_or_missing_fails_the_load(tmp_path: Path) -> None:
    home = tmp_path / "m"
    home.mkdir()
    (tmp_path / "secret").write_text("x")
    (home / "link").symlink_to(tmp_path / "secret")
    for name, message in (("link", "must be a relative path"), ("none", "cannot be read")):
        config = ModelConfig.model_validate({"output": [{"name": "Y", "label_filename": name}]})
        with pytest.raises(LoadError, match=message):
            complete("m", "1", config, ECHO, "onnxruntime", model_dir=home)


def test_what_is_ignored_is_warned_about_and_the_rest_is_handed_on() -> None:
    model = done(
        ECHO,
        response_cache={"enable": True},
        json_nonfinite="literal",
        model_warmup=[{"name": "w", "batch_size": 1, "inputs": {"X": {"zero_data": True}}}],
    )
    assert model.warnings == ("response_cache.enable is ignored: answers are not cached in this release",)
    assert model.json_nonfinite == "literal"
    assert model.warmups[0]["inputs"]["X"]["zero_data"] is True


DIMS = st.lists(st.sampled_from([-1, 1, 4]), max_size=3).map(tuple)


@given(st.lists(DIMS, min_size=1, max_size=3), st.lists(DIMS, min_size=1, max_size=3))
def test_a_model_without_configuration_always_completes(inputs: list[Shape], outputs: list[Shape]) -> None:
    signature = Signature(
        tuple(TensorSpec(f"I{at}", FP32, shape) for at, shape in enumerate(inputs)),
        tuple(TensorSpec(f"O{at}", FP32, shape) for at, shape in enumerate(outputs)),
        "",
    )
    model = done(signature)
    has_matrix = any(len(shape) > 1 for shape in inputs)  # one free dimension alone may be a length
    is_batchable = has_matrix and all(shape[:1] == (-1,) for shape in [*inputs, *outputs])
    assert model.spec.max_batch_size == (32 if is_batchable else 0)
    assert shapes(model) == [*inputs, *outputs]
    assert model.batch.merges is is_batchable
