"""The model configuration and its blocks."""

from typing import Any

import pytest
from kernelport.config.docs import check_described
from kernelport.config.model import ModelConfig
from kernelport.config.part import Part
from pydantic import ValidationError


def config(**fields: Any) -> ModelConfig:
    return ModelConfig.model_validate(fields)


def finding(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        config(**fields)
    [error] = caught.value.errors()
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


@pytest.mark.parametrize("word", ["off", "OFF", False])
def test_the_word_off_turns_merging_off(word: Any) -> None:
    model = config(dynamic_batching=word)
    assert model.is_batching_off
    assert model.batching is None


@pytest.mark.parametrize("word", ["on", True, {}])
def test_an_empty_block_turns_merging_on(word: Any) -> None:
    model = config(dynamic_batching=word)
    assert model.batching is not None
    assert not model.is_batching_off


def test_without_the_block_merging_is_neither_on_nor_off() -> None:
    assert config().batching is None
    assert not config().is_batching_off


@pytest.mark.parametrize(
    "written",
    [
        {"a": "1", "b": "true", "c": "0.5"},
        {"a": 1, "b": True, "c": 0.5},
        {"a": {"string_value": "1"}, "b": {"string_value": "true"}, "c": {"string_value": "0.5"}},
        [{"key": "a", "value": {"string_value": "1"}}, {"key": "b", "value": True}, {"key": "c", "value": "0.5"}],
    ],
)
def test_parameters_are_texts_however_they_are_written(written: Any) -> None:
    assert config(parameters=written).parameters == {"a": "1", "b": "true", "c": "0.5"}


@pytest.mark.parametrize(
    ("written", "name"), [("TYPE_FP32", "TYPE_FP32"), ("FP32", "TYPE_FP32"), ("BYTES", "TYPE_STRING")]
)
def test_data_types_are_known_by_both_their_names(written: str, name: str) -> None:
    assert config(input=[{"name": "x", "data_type": written}]).input[0].data_type == name


def test_what_was_written_is_remembered_even_if_it_is_the_default() -> None:
    assert config(max_batch_size=0).written_max_batch_size == 0
    assert config().written_max_batch_size is None
    assert config(allowed_batch_sizes=[2, 8]).written_max_batch_size == 8


def test_a_platform_is_a_backend_by_another_name() -> None:
    assert config(platform="onnxruntime_onnx").backend_name == "onnxruntime"
    assert config(backend="python").backend_name == "python"
    assert config().backend_name == ""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_batch_siz": 1}, ": unknown key 'max_batch_siz'; did you mean 'max_batch_size'?"),
        ({"input": [{"name": "x", "data_typ": "FP32"}]}, "input.0: unknown key 'data_typ'; did you mean 'data_type'?"),
        ({"name": None}, ": 'name' is empty; give it a value or remove the line"),
        ({"max_batch_size": True}, "max_batch_size: a number is expected, not yes or no"),
        ({"max_batch_size": -1}, "max_batch_size: Input should be greater than or equal to 0"),
        ({"input": [{"name": "x"}, {"name": "x"}]}, ": input 'x' is listed twice"),
        ({"input": [{"name": ""}]}, "input.0.name: String should have at least 1 character"),
        ({"input": [{"name": "x", "data_type": "FLOAT32"}]}, "input.0.data_type: 'FLOAT32' is no data type"),
        ({"input": [{"name": "x", "dims": [-2]}]}, "input.0.dims.0: Input should be greater than or equal to -1"),
        ({"input": [{"name": "x", "format": "FORMAT_NCHW", "dims": [4]}]}, "input.0: FORMAT_NCHW needs three dims"),
        (
            {"input": [{"name": "x", "dims": [4], "reshape": {"shape": [3]}}]},
            "input.0: dims [4] and reshape.shape [3] do not hold the same number of elements",
        ),
        (
            {"input": [{"name": "x", "dims": [4], "reshape": {"shape": [4]}, "batch_axis": 1}]},
            "input.0: reshape works only with batch_axis 0",
        ),
        (
            {"platform": "tensorrt_plan", "backend": "onnxruntime"},
            ": platform 'tensorrt_plan' means backend 'tensorrt', but backend is 'onnxruntime'; remove one of them",
        ),
        ({"allowed_batch_sizes": [4, 2]}, ": allowed_batch_sizes must ascend"),
        ({"shape_buckets": {"x": {1: [8, 8]}}}, ": shape_buckets.x.1 must ascend"),
        (
            {"allowed_batch_sizes": [4, 8], "max_batch_size": 16},
            ": the last of allowed_batch_sizes is 8, but max_batch_size is 16; make them equal",
        ),
        ({"version_policy": {}}, "version_policy: give exactly one of latest, all and specific"),
        (
            {"version_policy": {"all": {}, "latest": {}}},
            "version_policy: give exactly one of latest, all and specific",
        ),
        (
            {"model_warmup": [{"name": "w", "inputs": {"x": {"dims": [1]}}}]},
            "model_warmup.0.inputs.x: give exactly one of zero_data, random_data and input_data_file",
        ),
        (
            {"dynamic_batching": {}, "sequence_batching": {}},
            ": dynamic_batching and sequence_batching exclude each other",
        ),
        (
            {"default_model_filename": "../../etc/passwd"},
            "default_model_filename: '../../etc/passwd' must be a relative path that stays inside the model's folder",
        ),
        (
            {"output": [{"name": "y", "label_filename": "/etc/passwd"}]},
            "output.0.label_filename: '/etc/passwd' must be a relative path that stays inside the model's folder",
        ),
        (
            {"parameters": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]},
            "parameters: 'a' is given twice",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    assert finding(**fields).startswith(message)


@pytest.mark.parametrize(
    ("dims", "shape", "is_same"),
    [
        ([1], [], True),
        ([4], [2, 2], True),
        ([-1, 4], [-1, 2, 2], True),
        ([4, -1], [-1, 4], False),
        ([-1, -1], [-1], False),
        ([0], [0, 4], True),
    ],
)
def test_a_reshape_keeps_the_number_of_elements_around_free_dimensions(
    dims: list[int], shape: list[int], is_same: bool
) -> None:
    fields = {"input": [{"name": "x", "dims": dims, "reshape": {"shape": shape}}]}
    if is_same:
        config(**fields)
    else:
        assert "same number of elements" in finding(**fields)


def test_a_batch_axis_can_be_null() -> None:
    model = config(input=[{"name": "sr", "batch_axis": None}, {"name": "state", "batch_axis": 1}, {"name": "x"}])
    assert [one.batch_axis for one in model.input] == [None, 1, 0]


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        config().name = "x"


def blocks() -> set[type[Part]]:
    found: set[type[Part]] = set()
    todo: list[type[Part]] = [Part]
    while todo:
        for one in todo.pop().__subclasses__():
            found.add(one)
            todo.append(one)
    return found


@pytest.mark.parametrize("block", sorted(blocks(), key=str))
def test_every_field_has_a_one_line_description(block: type[Part]) -> None:
    assert check_described(block) == []
    assert block.__doc__
