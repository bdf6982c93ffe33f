"""The models of the golden cases, rebuilt as ONNX models in a repository with Triton's own configuration files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Dims = Sequence[int | str]

OPSET = helper.make_opsetid("", 17)
IR_VERSION = 9
ELEMENTS = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16, "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE, "BYTES": TensorProto.STRING,
}  # fmt: skip

# These are in the repository and never load; the golden cases expect them there.
BROKEN = ("bad_config", "bad_init")


def write_repository(folder: Path) -> list[str]:
    """Write all twins below `folder`; returns the names of those that can be loaded."""
    _write_identities(folder)
    _write_versions(folder, "multi_version", (1, 3), "version_policy { all { } }")
    _write_versions(folder, "latest_only", (1, 2), "")
    _write(
        folder,
        "add_sub",
        _add_sub(),
        _config(8, [("INPUT0", "INT32", [16]), ("INPUT1", "INT32", [16])], "OUTPUT0 OUTPUT1"),
    )
    _write_classifiers(folder)
    reshape = "reshape: { shape: [ 2, 2 ] }"
    sides = [("INPUT0", "INT32", [4])]
    _write(folder, "reshape_io", _identity("INT32", ["batch", 2, 2]), _config(4, sides, "OUTPUT0", reshape, reshape))
    _write(folder, "auto_cfg", _identity("INT32", ["n"]), "")
    _write(folder, "optional_in", _optional_sum(), _optional_config())
    _write(folder, "params_echo", _constant("INT32", ["n"], "INPUT0", {"PARAMS": b"{}"}), "")
    _write(folder, "fail_model", _constant("BYTES", [1], "MODE", {"OUTPUT0": 0, "OUTPUT1": 1}), "")
    _write(folder, "bad_config", _identity("FP32", ["n"]), 'backend: "no_such_backend"')
    _write(folder, "bad_init", None, "")
    return sorted(path.name for path in folder.iterdir() if path.name not in BROKEN)


def _write_identities(folder: Path) -> None:
    for datatype in ELEMENTS:
        name = f"id_{datatype.lower()}"
        _write(folder, name, _identity(datatype, ["n"]), _config(0, [("INPUT0", datatype, [-1])], "OUTPUT0"))
    for name, datatype, dims in (
        ("identity_fp32", "FP32", [-1, 4]),
        ("identity_2d", "INT32", [-1, -1]),
        ("identity_bytes", "BYTES", [-1]),
    ):
        symbolic = [f"d{axis}" if dim < 0 else dim for axis, dim in enumerate(dims)]
        _write(folder, name, _identity(datatype, symbolic), _config(0, [("INPUT0", datatype, dims)], "OUTPUT0"))
    several = ["BOOL", "FP16", "FP32", "INT64", "UINT8"]
    inputs = [(f"INPUT{index}", datatype, [2]) for index, datatype in enumerate(several)]
    outputs = " ".join(f"OUTPUT{index}" for index in range(len(several)))
    _write(folder, "identity_multi", _identities(several, [2]), _config(0, inputs, outputs))


def _write_versions(folder: Path, name: str, versions: Sequence[int], policy: str) -> None:
    for version in versions:
        nodes = [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"]), _constant_node("VERSION", [version], "int64")]
        outputs = [_info("OUTPUT0", "FP32", ["n"]), _info("VERSION", "INT64", [1])]
        model = _model(nodes, [_info("INPUT0", "FP32", ["n"])], outputs)
        _write(folder, name, model, f"max_batch_size: 0\n{policy}", version)


def _write_classifiers(folder: Path) -> None:
    labels = 'label_filename: "labels.txt"'
    sides = [("INPUT0", "FP32", [5])]
    _write(folder, "classify", _identity("FP32", ["batch", 5]), _config(4, sides, "OUTPUT0", "", labels))
    (folder / "classify" / "labels.txt").write_text("apple\nbanana\ncherry\ndate\n")
    _write(folder, "classify_nobatch", _identity("FP32", [5]), _config(0, sides, "OUTPUT0"))


def _write(folder: Path, name: str, model: ModelProto | None, config: str, version: int = 1) -> None:
    target = folder / name / str(version)
    target.mkdir(parents=True)
    if model is None:
        (target / "model.onnx").write_bytes(b"this is no model")
    else:
        onnx.save(model, target / "model.onnx")
    if config:
        backend = "" if "backend:" in config else 'backend: "onnxruntime"\n'
        (folder / name / "config.pbtxt").write_text(f'name: "{name}"\n{backend}{config}\n')


def _config(
    max_batch_size: int,
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    outputs: str,
    of_input: str = "",
    of_output: str = "",
) -> str:
    """Text of a config.pbtxt; outputs have the datatypes and dims of the inputs, one after the other."""
    lines = [f"max_batch_size: {max_batch_size}"]
    sides = [("input", name, *rest, of_input) for name, *rest in inputs]
    padded = [inputs[min(index, len(inputs) - 1)] for index in range(len(outputs.split()))]
    sides += [("output", name, *like[1:], of_output) for name, like in zip(outputs.split(), padded, strict=True)]
    for side, name, datatype, dims, more in sides:
        kind = "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"
        ending = f", {more}" if more else ""
        lines.append(f'{side} [ {{ name: "{name}", data_type: {kind}, dims: {list(dims)}{ending} }} ]')
    return "\n".join(lines)


def _optional_config() -> str:
    text = _config(0, [("INPUT0", "INT32", [2]), ("INPUT1", "INT32", [2])], "OUTPUT0")
    return text.replace(
        '"INPUT1", data_type: TYPE_INT32, dims: [2]', '"INPUT1", data_type: TYPE_INT32, dims: [2], optional: true'
    )


def _info(name: str, datatype: str, dims: Dims) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ELEMENTS[datatype], dims)


def _model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    defaults: Sequence[TensorProto] = (),
) -> ModelProto:
    graph = helper.make_graph(nodes, "twin", inputs, outputs, list(defaults))
    return helper.make_model(graph, opset_imports=[OPSET], ir_version=IR_VERSION)


def _identity(datatype: str, dims: Dims) -> ModelProto:
    return _identities([datatype], dims)


def _identities(datatypes: Sequence[str], dims: Dims) -> ModelProto:
    numbered = list(enumerate(datatypes))
    return _model(
        [helper.make_node("Identity", [f"INPUT{index}"], [f"OUTPUT{index}"]) for index, _ in numbered],
        [_info(f"INPUT{index}", datatype, dims) for index, datatype in numbered],
        [_info(f"OUTPUT{index}", datatype, dims) for index, datatype in numbered],
    )


def _add_sub() -> ModelProto:
    dims: Dims = ["batch", 16]
    return _model(
        [
            helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
            helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
        ],
        [_info("INPUT0", "INT32", dims), _info("INPUT1", "INT32", dims)],
        [_info("OUTPUT0", "INT32", dims), _info("OUTPUT1", "INT32", dims)],
    )


def _optional_sum() -> ModelProto:
    """An input with an initialiser of its name may be left out."""
    return _model(
        [helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"])],
        [_info("INPUT0", "INT32", [2]), _info("INPUT1", "INT32", [2])],
        [_info("OUTPUT0", "INT32", [2])],
        [numpy_helper.from_array(np.zeros(2, np.int32), "INPUT1")],
    )


def _constant(datatype: str, dims: Dims, name: str, outputs: dict[str, int | bytes]) -> ModelProto:
    """A model that answers the same whatever comes in."""
    nodes = [
        _constant_node(output, [value], "object" if isinstance(value, bytes) else "int32")
        for output, value in outputs.items()
    ]
    infos = [_info(output, "BYTES" if isinstance(value, bytes) else "INT32", [1]) for output, value in outputs.items()]
    return _model(nodes, [_info(name, datatype, dims)], infos)


def _constant_node(name: str, values: Sequence[int | bytes], dtype: str) -> NodeProto:
    tensor = numpy_helper.from_array(np.array(values, dtype), name)
    return helper.make_node("Constant", [], [name], value=tensor)
