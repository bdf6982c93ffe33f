"""The ONNX models that the workloads use: built by code, except for one real network that the examples fetch.

Every model has one input and one FP32 output with a free first dimension. The built ones call them `x` (FP32) and `y`,
so one request body fits any server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLE_MODELS = Path(__file__).resolve().parent.parent / "examples" / "models"
OPSET = 17
DEFAULT_MAX_BATCH_SIZE = 32  # what KernelPort takes by itself
IR_VERSION = 8  # readable by every onnxruntime a peer may pin


@dataclass(frozen=True, slots=True)
class BenchModel:
    """One model of the benchmark: how to build it and what a row of its input and output looks like."""

    name: str
    row_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    build: Callable[[], onnx.ModelProto]
    max_batch_size: int = DEFAULT_MAX_BATCH_SIZE
    input_name: str = "x"
    datatype: str = "FP32"

    @property
    def is_built(self) -> bool:
        """Whether the peers' applications, which know only `x` and `y`, can serve it."""
        return self.input_name == "x"


def _wrap(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    row_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "benchmark",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *row_shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", *output_shape])],
        initializer=weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def dense_stack(*widths: int) -> onnx.ModelProto:
    """Fully connected layers with Relu between them: `dense_stack(4, 3)` is one matrix product with a bias."""
    random = np.random.default_rng(7)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    last = len(widths) - 2
    for layer, (fan_in, fan_out) in enumerate(pairwise(widths)):
        matrix = (random.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32)
        bias = (random.standard_normal(fan_out) * 0.1).astype(np.float32)
        weights += [numpy_helper.from_array(matrix, f"w{layer}"), numpy_helper.from_array(bias, f"b{layer}")]
        product = "y" if layer == last else f"h{layer}"
        nodes.append(helper.make_node("Gemm", [value, f"w{layer}", f"b{layer}"], [product]))
        if layer != last:
            nodes.append(helper.make_node("Relu", [product], [f"r{layer}"]))
            value = f"r{layer}"
    return _wrap(nodes, weights, (widths[0],), (widths[-1],))


def channel_mean(channels: int, side: int) -> onnx.ModelProto:
    """Mean of each image channel: almost no arithmetic, so that the row measures how a big body is carried."""
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    return _wrap([node], [], (channels, side, side), (channels,))


def conv_stack(side: int, channels: int, depth: int) -> onnx.ModelProto:
    """Convolutions of equal width: compute grows with every row, and the weights stay in the core's cache."""
    random = np.random.default_rng(11)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value, fan_in = "x", 1
    for layer in range(depth):
        scale = np.sqrt(2 / (fan_in * 9))
        kernel = (random.standard_normal((channels, fan_in, 3, 3)) * scale).astype(np.float32)
        weights.append(numpy_helper.from_array(kernel, f"w{layer}"))
        nodes.append(helper.make_node("Conv", [value, f"w{layer}"], [f"c{layer}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
        value, fan_in = f"r{layer}", channels
    nodes.append(helper.make_node("ReduceMean", [value], ["y"], axes=[2, 3], keepdims=0))
    return _wrap(nodes, weights, (1, side, side), (channels,))


class ModelMissing(Exception):
    """A real model has not been fetched yet."""


def fetched_model(name: str) -> onnx.ModelProto:
    """A real model that `examples/fetch_models.py` has put into the sample repository."""
    found = sorted((SAMPLE_MODELS / name).rglob("*.onnx"))
    if not found:
        raise ModelMissing(f"no {name} under {SAMPLE_MODELS}: run python examples/fetch_models.py")
    return onnx.load(found[0])


MODELS: dict[str, BenchModel] = {
    model.name: model
    for model in (
        BenchModel("tiny", (4,), (3,), lambda: dense_stack(4, 3)),
        BenchModel("mlp", (256,), (10,), lambda: dense_stack(256, 1024, 1024, 1024, 10)),
        BenchModel("image", (3, 224, 224), (3,), lambda: channel_mean(3, 224)),
        BenchModel("slow", (1, 32, 32), (64,), lambda: conv_stack(32, 64, 8), 8),
        BenchModel("magika", (2048,), (214,), lambda: fetched_model("magika"), 8, input_name="bytes", datatype="INT32"),
    )
}


def model_file(name: str, cache: Path) -> Path:
    """The path of a built model, building it on first use."""
    path = cache / f"{name}.onnx"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        onnx.save(MODELS[name].build(), partial)
        partial.rename(path)
    return path
