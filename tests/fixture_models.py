"""Small odd ONNX models, each built to break one careless assumption of a server.

`build(name)` gives a model, `write_repository(folder, names)` a model repository of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 9
BATCH = "batch"
Dims = Sequence[int | str] | None

ECHO_TYPES = {
    "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64, "int8": TensorProto.INT8,
    "int16": TensorProto.INT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
    "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "fp32": TensorProto.FLOAT,
    "fp64": TensorProto.DOUBLE, "bytes": TensorProto.STRING,
}  # fmt: skip


class Graph:
    """Collects nodes, inputs, outputs and constants, and makes a model of them."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.outputs: list[ValueInfoProto] = []
        self.constants: list[TensorProto] = []

    def takes(self, name: str, dims: Dims, element: int = TensorProto.FLOAT) -> Graph:
        self.inputs.append(helper.make_tensor_value_info(name, element, dims))
        return self

    def gives(self, name: str, dims: Dims, element: int = TensorProto.FLOAT) -> Graph:
        self.outputs.append(helper.make_tensor_value_info(name, element, dims))
        return self

    def constant(self, name: str, value: object, dtype: str = "float32") -> Graph:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return self

    def op(self, kind: str, inputs: str, outputs: str, **attributes: Any) -> Graph:
        """One node; names separated by commas."""
        self.nodes.append(helper.make_node(kind, inputs.split(","), outputs.split(","), **attributes))
        return self

    def model(self) -> ModelProto:
        graph = helper.make_graph(self.nodes, "fixture", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def echo(element: int, dims: Dims) -> ModelProto:
    """Y = X."""
    return Graph().takes("X", dims, element).gives("Y", dims, element).op("Identity", "X", "Y").model()


def scalar_io() -> ModelProto:
    return echo(TensorProto.FLOAT, [])


def fixed_batch1() -> ModelProto:
    return echo(TensorProto.FLOAT, [1, 4])


def weird_names() -> ModelProto:
    name, out = "größe/入力:0", "out put.1"
    return Graph().takes(name, [BATCH, 4]).gives(out, [BATCH, 4]).op("Identity", name, out).model()


def nanmaker() -> ModelProto:
    """Y = A / B: zeros in B make infinities and NaN."""
    return Graph().takes("A", [BATCH, 4]).takes("B", [BATCH, 4]).gives("Y", [BATCH, 4]).op("Div", "A,B", "Y").model()


def gather_poison() -> ModelProto:
    """One row with an index outside 0..4 fails the whole run."""
    graph = Graph().takes("IDX", [BATCH, 1], TensorProto.INT64).gives("Y", [BATCH, 1])
    return graph.constant("table", [0, 10, 20, 30, 40]).op("Gather", "table,IDX", "Y", axis=0).model()


def batch_collapse() -> ModelProto:
    """One row out, however many go in."""
    graph = Graph().takes("X", [BATCH, 4]).gives("Y", ["rows", 4])
    return graph.op("ReduceMean", "X", "Y", axes=[0], keepdims=1).model()


def batch_mean() -> ModelProto:
    """As many rows out as in, but each depends on all the others."""
    graph = Graph().takes("X", [BATCH, 4]).gives("Y", [BATCH, 4])
    return graph.op("ReduceMean", "X", "mean", axes=[0], keepdims=1).op("Sub", "X,mean", "Y").model()


def batch_double() -> ModelProto:
    """Twice as many rows out as in."""
    return Graph().takes("X", [BATCH, 4]).gives("Y", ["rows", 4]).op("Concat", "X,X", "Y", axis=0).model()


def mixed_out() -> ModelProto:
    """One output with a batch dimension, one without."""
    graph = Graph().takes("X", [BATCH, 4]).gives("Y", [BATCH, 4]).gives("META", [3])
    return graph.constant("c", [1, 2, 3]).op("Identity", "X", "Y").op("Identity", "c", "META").model()


def two_out() -> ModelProto:
    graph = Graph().takes("X", [BATCH, 4]).gives("Y0", [BATCH, 4]).gives("Y1", [BATCH, 4])
    return graph.op("Identity", "X", "Y0").op("Neg", "X", "Y1").model()


def two_in() -> ModelProto:
    """Two inputs whose first dimensions have different names: Y = [sum of A's row, sum of B's row]."""
    graph = Graph().takes("A", [BATCH, 4]).takes("B", ["batch_b", 2]).gives("Y", [BATCH, 2])
    graph.constant("axis", [1], "int64")
    graph.op("ReduceSum", "A,axis", "a", keepdims=1).op("ReduceSum", "B,axis", "b", keepdims=1)
    return graph.op("Concat", "a,b", "Y", axis=1).model()


def sub_ab() -> ModelProto:
    """Y = A - B: swapped or foreign rows show at once."""
    return Graph().takes("A", [BATCH, 4]).takes("B", [BATCH, 4]).gives("Y", [BATCH, 4]).op("Sub", "A,B", "Y").model()


def varlen_sum() -> ModelProto:
    graph = Graph().takes("X", [BATCH, "length"]).gives("Y", [BATCH, 1])
    return graph.constant("axis", [1], "int64").op("ReduceSum", "X,axis", "Y", keepdims=1).model()


def nonzero() -> ModelProto:
    """The output's size depends on the values."""
    graph = Graph().takes("X", ["length"]).gives("Y", [1, "found"], TensorProto.INT64)
    return graph.op("NonZero", "X", "Y").model()


def bigout() -> ModelProto:
    """Eight bytes in, 4 * SIZE bytes out."""
    graph = Graph().takes("SIZE", [1], TensorProto.INT64).gives("Y", ["size"])
    return graph.op(
        "ConstantOfShape", "SIZE", "Y", value=helper.make_tensor("v", TensorProto.FLOAT, [1], [1.5])
    ).model()


def unknown_rank_out() -> ModelProto:
    """Reshape to a shape that the request brings."""
    graph = Graph().takes("X", ["length"]).takes("SHAPE", ["rank"], TensorProto.INT64).gives("Y", None)
    return graph.op("Reshape", "X,SHAPE", "Y").model()


def optional_input() -> ModelProto:
    """Y = X * SCALE, where SCALE may be left out (its default is 2)."""
    graph = Graph().takes("X", [BATCH, 4]).takes("SCALE", [1]).gives("Y", [BATCH, 4])
    return graph.constant("SCALE", [2]).op("Mul", "X,SCALE", "Y").model()


def state_axis1() -> ModelProto:
    """Requests of `state` join along axis 1; `rate` is a scalar that all rows share."""
    graph = Graph().takes("x", [BATCH, 4]).takes("state", [2, BATCH, 4]).takes("rate", [])
    graph.gives("y", [BATCH, 4]).gives("state_out", [2, BATCH, 4])
    graph.constant("axis", [0], "int64")
    graph.op("ReduceSum", "state,axis", "s", keepdims=0).op("Mul", "x,rate", "xr").op("Add", "xr,s", "y")
    return graph.op("Mul", "state,rate", "state_out").model()


def sequence_out() -> ModelProto:
    """An output that is no tensor."""
    graph = Graph().takes("X", [4])
    graph.outputs.append(helper.make_tensor_sequence_value_info("Y", TensorProto.FLOAT, None))
    return graph.op("SequenceConstruct", "X,X", "Y").model()


def slow() -> ModelProto:
    """Y = X after max(ITERS) small matrix products: as long as the request asks for."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("MatMul", ["sum_in", "W"], ["product"]),
            helper.make_node("Tanh", ["product"], ["sum_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_in", TensorProto.FLOAT, [192, 192]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_out", TensorProto.FLOAT, [192, 192]),
        ],
    )
    weights = np.random.default_rng(0).standard_normal((192, 192)).astype(np.float32) / 14
    graph = Graph().takes("ITERS", [BATCH, 1], TensorProto.INT64).takes("X", [BATCH, 4]).gives("Y", [BATCH, 4])
    graph.constant("W", weights).constant("true", True, "bool").constant("zero", 0)
    graph.op("ReduceMax", "ITERS", "turns", keepdims=0).op("Loop", "turns,true,W", "end", body=body)
    return graph.op("ReduceSum", "end", "total", keepdims=0).op("Mul", "total,zero", "z").op("Add", "X,z", "Y").model()


def heavy(megabytes: float = 1.0) -> ModelProto:
    """Y = X + W[0], with a W of that many megabytes of zeros; the index comes from the batch, so nothing is folded."""
    graph = Graph().takes("X", [BATCH, 4]).gives("Y", [BATCH, 4])
    graph.constant("W", np.zeros((int(megabytes * 2**20 / 16), 4)))
    graph.op("Shape", "X", "rows", start=0, end=1).op("Sub", "rows,rows", "index")
    return graph.op("Gather", "W,index", "row", axis=0).op("Add", "X,row", "Y").model()


def external(location: str, length: int | None = None, offset: int = 0) -> ModelProto:
    """Y = X + W, where W's four floats lie in the file `location`."""
    model = Graph().takes("X", [BATCH, 4]).gives("Y", [BATCH, 4]).op("Add", "X,W", "Y").model()
    weight = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset), "length": str(16 if length is None else length)}
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    model.graph.initializer.append(weight)
    return model


BUILDERS: dict[str, Callable[[], ModelProto]] = {
    **{f"echo_{name}": partial(echo, element, [BATCH, 4]) for name, element in ECHO_TYPES.items()},
    "echo_flex": lambda: echo(TensorProto.FLOAT, [BATCH, "length"]),
    "echo_nobatch": lambda: echo(TensorProto.FLOAT, ["length"]),
    **{
        builder.__name__: builder
        for builder in (
            scalar_io, fixed_batch1, weird_names, nanmaker, gather_poison, batch_collapse, batch_mean, batch_double,
            mixed_out, two_out, two_in, sub_ab, varlen_sum, nonzero, bigout, unknown_rank_out, optional_input,
            state_axis1, sequence_out, slow, heavy,
        )
    },
}  # fmt: skip


def build(name: str) -> ModelProto:
    """The model of that name."""
    return BUILDERS[name]()


def write_model(folder: Path, name: str, version: int = 1) -> Path:
    """Write `folder`/`name`/`version`/model.onnx and return its path."""
    path = folder / name / str(version) / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build(name).SerializeToString())
    return path


def write_repository(folder: Path, names: Iterable[str] = tuple(BUILDERS)) -> Path:
    """A model repository with these models, without configurations."""
    for name in names:
        write_model(folder, name)
    return folder


def write_external(folder: Path, location: str = "weights.bin", **options: int) -> Path:
    """A model with external data [0, 1, 2, 3]; the data is written only for a plain file name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(external(location, **options).SerializeToString())
    if "/" not in location:
        (folder / location).write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return path
