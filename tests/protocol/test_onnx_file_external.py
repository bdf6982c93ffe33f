"""External data locations, found without the onnx package."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelport.core.errors import LoadError
from kernelport.protocol.onnx_file import read_graph_facts
from onnx import TensorProto, helper, numpy_helper


def external(name: str, location: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def external_locations(path: Path) -> tuple[str, ...]:
    return tuple(sorted({tensor.location for tensor in read_graph_facts(path).external}))


def model(*tensors: TensorProto) -> onnx.ModelProto:
    """A model with one tensor in each place that can hold one."""
    subgraph = helper.make_graph([], "inner", [], [], [tensors[1]])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensors[2]),
        helper.make_node("If", ["cond"], ["y"], then_branch=subgraph, else_branch=subgraph),
    ]
    graph = helper.make_graph(nodes, "g", [], [], [tensors[0]])
    function = helper.make_function(
        "d", "f", [], ["o"], [helper.make_node("Constant", [], ["o"], value=tensors[3])], []
    )
    built = helper.make_model(graph, functions=[function])
    sparse = built.graph.sparse_initializer.add()
    sparse.values.CopyFrom(tensors[4])
    sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64)))
    return built


def test_a_tensor_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    names = ["init.bin", "sub/inner.bin", "const.bin", "function.bin", "sparse.bin"]
    onnx.save(model(*(external(name, name) for name in names)), path)
    assert external_locations(path) == tuple(sorted(names))


def test_a_model_without_external_data_has_none(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    inside = numpy_helper.from_array(np.arange(4, dtype=np.float32))
    onnx.save(model(*[inside] * 5), path)
    assert external_locations(path) == ()


def test_empty_and_truncated_files_are_load_errors(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.touch()
    with pytest.raises(LoadError, match=r"m\.onnx is empty"):
        external_locations(path)
    whole = model(*[numpy_helper.from_array(np.arange(4, dtype=np.float32))] * 5).SerializeToString()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LoadError, match="not a complete ONNX file"):
        external_locations(path)


@settings(max_examples=200)
@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_answered_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.onnx"
    path.write_bytes(data)
    with contextlib.suppress(LoadError):
        external_locations(path)


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_model_is_answered_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(model(*(external(name, name) for name in "abcde")).SerializeToString())
    for _ in range(3):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    path.write_bytes(whole)
    with contextlib.suppress(LoadError):
        external_locations(path)
