"""The body of the model configuration endpoint."""

import json
from pathlib import Path
from typing import Any

import pytest
from kernelport.config.config_json import to_config_json
from kernelport.config.load import parse_model_config
from kernelport.config.model import ModelConfig
from kernelport.config.pbtxt import parse_pbtxt
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import FP32, INT64, TensorSpec, datatype

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "config" / "triton_configs.json").read_text("utf-8"))[
    "models"
]


def spec(max_batch_size: int = 8) -> ModelSpec:
    axis = 0 if max_batch_size else None
    return ModelSpec(
        "m",
        "1",
        "onnxruntime_onnx",
        "onnxruntime",
        max_batch_size,
        (TensorSpec("x", FP32, (-1, 4), batch_axis=axis),),
        (TensorSpec("y", INT64, (-1, 2), batch_axis=axis),),
    )


def body(max_batch_size: int = 8, **fields: Any) -> dict[str, Any]:
    return to_config_json(ModelConfig.model_validate(fields), spec(max_batch_size), "model.onnx")


@pytest.mark.parametrize("model", RECORDED, ids=lambda one: one["name"])
def test_the_body_equals_what_triton_says_about_the_same_file(model: dict[str, Any]) -> None:
    config = parse_model_config(parse_pbtxt(model["pbtxt"], "config.pbtxt"), "config.pbtxt")
    wanted, metadata = model["config"], model["metadata"]
    tensors = {
        role: tuple(
            TensorSpec(
                one["name"],
                datatype(one["datatype"]),
                tuple(one["shape"]),
                optional=entry.get("optional", False),
                batch_axis=0 if wanted["max_batch_size"] else None,
            )
            for one, entry in zip(metadata[f"{role}s"], wanted[role], strict=True)
        )
        for role in ("input", "output")
    }
    served = ModelSpec(model["name"], "1", "", "python", wanted["max_batch_size"], tensors["input"], tensors["output"])
    written = to_config_json(config, served, "model.py")
    assert written == wanted
    assert list(written) == list(wanted)


def test_dims_leave_the_batch_dimension_out() -> None:
    assert body()["input"][0]["dims"] == [4]
    assert body(max_batch_size=0)["input"][0]["dims"] == [-1, 4]


@pytest.mark.parametrize(("word", "is_there"), [({}, True), ("off", False), (None, False)])
def test_a_scheduler_that_does_not_apply_is_left_out(word: Any, is_there: bool) -> None:
    fields: dict[str, Any] = {} if word is None else {"dynamic_batching": word}
    assert ("dynamic_batching" in body(**fields)) is is_there


def test_own_fields_appear_only_when_written() -> None:
    assert not {"max_queue_size", "shape_buckets", "json_nonfinite"} & set(body())
    written = body(max_queue_size=5, shape_buckets={"x": {1: [4]}}, json_nonfinite="literal")
    assert written["max_queue_size"] == 5
    assert written["shape_buckets"] == {"x": {"1": [4]}}
    assert written["json_nonfinite"] == "literal"


def test_the_body_is_json_and_reads_back_as_the_same_configuration() -> None:
    fields: dict[str, Any] = {
        "max_batch_size": 8,
        "input": [{"name": "x", "dims": [4], "reshape": {"shape": [2, 2]}, "batch_axis": 0}],
        "dynamic_batching": {
            "preferred_batch_size": [8],
            "default_queue_policy": {"max_queue_size": 3},
            "priority_queue_policy": {1: {}},
        },
        "optimization": {
            "graph": {"level": 1},
            "cuda": {"graphs": True},
            "execution_accelerators": {"cpu_execution_accelerator": [{"name": "openvino", "parameters": {"a": "b"}}]},
        },
        "instance_group": [{"kind": "KIND_GPU", "gpus": [1], "rate_limiter": {"priority": 2}}],
        "parameters": {"k": "v"},
        "model_warmup": [{"name": "w", "batch_size": 2, "inputs": {"x": {"dims": [4], "random_data": True}}}],
        "response_cache": {"enable": True},
        "allowed_batch_sizes": [4, 8],
        "shape_buckets": {"x": {1: [4]}},
    }
    once = body(**fields)
    again = parse_model_config(json.loads(json.dumps(once)), "override")
    assert to_config_json(again, spec(), "model.onnx") == once
