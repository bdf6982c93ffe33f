"""Every datatype through the runtime and back, with the values that careless code loses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixture_models import ECHO_TYPES, IR_VERSION, OPSET, Graph
from kernelport.core.errors import BackendInputError, LoadError
from kernelport.core.tensor import BF16, BYTES, DATATYPES, FP32, Array
from onnx import TensorProto, helper
from onnx_backend import load_file, load_fixture

BF16_BITS = [0x3F80, 0x4000, 0xC000, 0x7FC0, 0xFF80, 0x0001, 0x8000, 0xFFFF]
TEXTS = [b"a", b"", b"x\0y", b"a\0", "größe".encode(), "\U0001f600".encode(), b"b'a'", b" "]


def extreme(name: str) -> Array:
    """Two rows of four values of that type: limits, zeros, non-finite ones."""
    kind = DATATYPES[name]
    if kind is BYTES:
        return np.array(TEXTS, object).reshape(2, 4)
    if kind is BF16:
        return np.array(BF16_BITS, np.uint16).reshape(2, 4)
    if kind.kind == "bool":
        return np.array([[True, False, False, True]] * 2)
    values: list[Any] = [0, 1, kind.minimum, kind.maximum, 2, 3, 4, 5]
    if kind.kind == "float":
        limits = np.finfo(kind.dtype)
        values = [0.0, -0.0, limits.max, limits.tiny, np.nan, np.inf, -np.inf, limits.smallest_subnormal]
    return np.array(values, kind.dtype).reshape(2, 4)


@pytest.mark.parametrize("fixture", sorted(ECHO_TYPES))
def test_every_datatype_comes_back_bit_for_bit(tmp_path: Path, fixture: str) -> None:
    model = load_fixture(tmp_path, f"echo_{fixture}")
    kind = model.signature.inputs[0].datatype
    assert kind.name == {"bytes": "BYTES"}.get(fixture, fixture.upper())
    sent = extreme(kind.name)
    back = model.execute({"X": sent}, None)["Y"]
    assert (back.dtype, back.shape) == (kind.dtype, (2, 4))
    assert back.tolist() == sent.tolist() if kind is BYTES else back.tobytes() == sent.tobytes()


@pytest.mark.parametrize("fixture", sorted(ECHO_TYPES))
def test_zero_rows_come_back_as_zero_rows(tmp_path: Path, fixture: str) -> None:
    model = load_fixture(tmp_path, f"echo_{fixture}")
    kind = model.signature.inputs[0].datatype
    back = model.execute({"X": np.zeros((0, 4), kind.dtype)}, None)["Y"]
    assert (back.dtype, back.shape) == (kind.dtype, (0, 4))


def test_the_datatypes_of_the_protocol_are_all_covered() -> None:
    assert {name.upper() for name in ECHO_TYPES} == set(DATATYPES)


def test_text_that_is_no_utf8_blames_the_element(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "echo_bytes")
    sent = np.array([[b"ok", b"\xff\xfe", b"ok", b"ok"]], object)
    with pytest.raises(BackendInputError, match="input 'X': element 1 is not valid UTF-8"):
        model.execute({"X": sent}, None)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.astype(">f4"),
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a[::-1][::-1],
        lambda a: np.frombuffer(b"\0" + a.tobytes(), np.float32, a.size, 1).reshape(a.shape),
        lambda a: np.broadcast_to(a[0], a.shape) if (a == a[0]).all() else a,
        lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(a.shape),
    ],
    ids=["big-endian", "fortran", "strided", "reversed-twice", "misaligned", "broadcast", "read-only"],
)
def test_memory_layout_never_changes_the_values(tmp_path: Path, view: Any) -> None:
    model = load_fixture(tmp_path, "echo_fp32")
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(model.execute({"X": view(rows)}, None)["Y"], rows)


def test_a_scalar_stays_a_scalar(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "scalar_io")
    back = model.execute({"X": np.array(2.5, np.float32)}, None)["Y"]
    assert (back.shape, float(back)) == ((), 2.5)


def cast_model(tmp_path: Path, source: int, targets: dict[str, int], extra: list[Any] | None = None) -> Path:
    """X cast to each target type."""
    nodes = [helper.make_node("Cast", ["X"], [name], to=to) for name, to in targets.items()]
    graph = helper.make_graph(
        nodes,
        "casts",
        [helper.make_tensor_value_info("X", source, ["n"]), *(extra or [])],
        [helper.make_tensor_value_info(name, to, ["n"]) for name, to in targets.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    path = tmp_path / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(model.SerializeToString())
    return path


def test_bf16_and_other_outputs_come_from_one_run(tmp_path: Path) -> None:
    types: dict[str, int] = {"B": TensorProto.BFLOAT16, "T": TensorProto.STRING, "D": TensorProto.DOUBLE}
    model = load_file(cast_model(tmp_path, TensorProto.FLOAT, types))
    results = model.execute({"X": np.array([1, -2], np.float32)}, None)
    assert results["B"].tolist() == [0x3F80, 0xC000]
    assert results["T"].tolist() == [b"1", b"-2"]
    assert results["D"].tolist() == [1.0, -2.0]
    assert list(model.execute({"X": np.array([1], np.float32)}, ("D",))) == ["D"]


def test_bf16_in_needs_no_bf16_out(tmp_path: Path) -> None:
    model = load_file(cast_model(tmp_path, TensorProto.BFLOAT16, {"F": TensorProto.FLOAT}))
    assert model.execute({"X": np.array([0x3F80, 0x4049], np.uint16)}, None)["F"].tolist() == [1.0, 3.140625]


def test_bytes_in_with_bf16_out_is_refused_at_load(tmp_path: Path) -> None:
    path = cast_model(tmp_path, TensorProto.STRING, {"B": TensorProto.BFLOAT16})
    with pytest.raises(LoadError, match="input 'X' is BYTES and output 'B' is BF16"):
        load_file(path)


@pytest.mark.parametrize("element", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_a_type_the_protocol_lacks_names_the_tensor(tmp_path: Path, element: int) -> None:
    path = cast_model(tmp_path, TensorProto.FLOAT, {"F8": element})
    with pytest.raises(LoadError, match="output 'F8' has type tensor"):
        load_file(path)


def test_a_sequence_output_names_the_tensor(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"'sequence_out': output 'Y' has type seq"):
        load_fixture(tmp_path, "sequence_out")


def test_unicode_names_reach_the_runtime(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "weird_names")
    name = model.signature.inputs[0].name
    rows = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(model.execute({name: rows}, None)["out put.1"], rows)
    assert model.signature.inputs[0].datatype is FP32


def test_a_bad_value_blames_the_input_of_a_bf16_model_too(tmp_path: Path) -> None:
    graph = Graph().takes("IDX", ["n"], TensorProto.INT64).gives("Y", ["n"], TensorProto.BFLOAT16)
    graph.constant("table", [1, 2, 3]).op("Gather", "table,IDX", "row").op("Cast", "row", "Y", to=TensorProto.BFLOAT16)
    path = tmp_path / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(graph.model().SerializeToString())
    model = load_file(path)
    assert model.execute({"IDX": np.array([0, 1])}, None)["Y"].tolist() == [0x3F80, 0x4000]
    with pytest.raises(BackendInputError, match="idx=9"):
        model.execute({"IDX": np.array([9])}, None)
