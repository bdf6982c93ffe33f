import contextlib
import mmap
from pathlib import Path

import onnx
import pytest
from fixture_models import BATCH, BUILDERS, build, external, write_model
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelport.core.errors import LoadError
from kernelport.protocol.onnx_file import ExternalTensor, GraphFacts, read_graph_facts
from onnx import TensorProto, helper


def facts_of(tmp_path: Path, model: onnx.ModelProto) -> GraphFacts:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return read_graph_facts(path)


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_shapes_are_those_that_onnx_itself_reads(tmp_path: Path, name: str) -> None:
    model = build(name)
    facts = facts_of(tmp_path, model)
    for values, found in ((model.graph.input, facts.inputs), (model.graph.output, facts.outputs)):
        expected = {}
        for value in values:
            tensor = value.type.tensor_type
            dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim]
            expected[value.name] = tuple(dims) if tensor.HasField("shape") else None
        assert found == expected
    assert facts.external == []


def test_a_negative_dimension_is_no_size(tmp_path: Path) -> None:
    model = build("echo_fp32")
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    assert facts_of(tmp_path, model).inputs["X"] == (BATCH, "")


def test_external_tensors_are_found_wherever_they_hide(tmp_path: Path) -> None:
    model = external("weights.bin", length=16, offset=4096)
    hidden = TensorProto()
    hidden.CopyFrom(model.graph.initializer[0])
    hidden.name = "hidden"
    hidden.external_data[0].value = "constant.bin"
    inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=hidden)], "inner", [], [])
    model.graph.node.append(helper.make_node("If", ["X"], ["Z"], then_branch=inner, else_branch=inner))
    function = helper.make_function(
        "local", "f", [], ["c"], [helper.make_node("Constant", [], ["c"], value=hidden)], []
    )
    model.functions.append(function)
    found = facts_of(tmp_path, model).external
    assert found.count(ExternalTensor("W", "weights.bin", 4096, 16)) == 1
    assert [one.location for one in found].count("constant.bin") == 3


def test_big_weights_are_not_read(tmp_path: Path) -> None:
    """A gigabyte of zeros in a sparse file: only the few pages around it are touched."""
    head = build("echo_fp32").SerializeToString()
    size = 1 << 30
    tensor = b"\x4a" + varint(size)  # TensorProto.raw_data
    graph = b"\x2a" + varint(len(tensor) + size)  # GraphProto.initializer
    model = b"\x3a" + varint(len(graph) + len(tensor) + size)  # ModelProto.graph, merged with the first one
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.write(head + model + graph + tensor)
        file.truncate(file.tell() + size)
    before = resident()
    assert read_graph_facts(path).inputs == {"X": (BATCH, 4)}
    assert resident() - before < 64 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"\0", "runs past the end|not a complete"),
        (b"hello world, this is not a model", "not a complete ONNX file"),
        (b"\x08\x08", "it has no graph"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "not a complete ONNX file"),
    ],
)
def test_what_is_no_onnx_file_is_a_load_error(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=text):
        read_graph_facts(path)


def test_a_missing_file_and_a_folder_are_load_errors(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="does not exist"):
        read_graph_facts(tmp_path / "model.onnx")
    with pytest.raises(LoadError, match="not a regular file"):
        read_graph_facts(tmp_path)


def test_graphs_nested_without_end_are_refused(tmp_path: Path) -> None:
    nested = b""
    for _ in range(40):
        for field in (b"\x32", b"\x2a", b"\x0a"):  # the graph of an attribute of a node of a graph
            nested = field + varint(len(nested)) + nested
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x3a" + varint(len(nested)) + nested)
    with pytest.raises(LoadError, match="nested deeper"):
        read_graph_facts(path)


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(build("two_in").SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    path.write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    with contextlib.suppress(LoadError):
        read_graph_facts(path)


def test_the_first_half_of_every_fixture_is_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path, "slow")
    content = path.read_bytes()
    for size in range(1, len(content), 997):
        path.write_bytes(content[:size])
        with pytest.raises(LoadError):
            read_graph_facts(path)
