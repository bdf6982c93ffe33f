"""ONNX's operator cases through the whole server, as JSON and as binary tensors: equal to the runtime.

Each case's model is brought by a load request. Cases that the installed onnxruntime cannot load or run, and those with
values that the protocol cannot carry, are judged at the backend (tests/backends/test_onnxruntime_operators.py).
"""

from __future__ import annotations

import base64
import http.client
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from fixture_models import write_repository
from server_process import ServerProcess

SAMPLE_STEP = 31
DATATYPES = {
    "tensor(bool)": "BOOL", "tensor(uint8)": "UINT8", "tensor(uint16)": "UINT16", "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64", "tensor(int8)": "INT8", "tensor(int16)": "INT16", "tensor(int32)": "INT32",
    "tensor(int64)": "INT64", "tensor(float16)": "FP16", "tensor(bfloat16)": "BF16", "tensor(float)": "FP32",
    "tensor(double)": "FP64", "tensor(string)": "BYTES",
}  # fmt: skip
NUMPY = {
    "BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8,
    "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32, "FP64": np.float64, "BYTES": object,
}  # fmt: skip
Arrays = dict[str, np.ndarray[Any, Any]]


@cache
def cases() -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases compute NaN and overflow on purpose
        from onnx.backend.test.case.node import collect_testcases

        return tuple(sorted((one for one in collect_testcases(None) if one.model), key=lambda one: str(one.name)))


class Client:
    """One keep-alive connection to a server in explicit mode that takes models with load requests."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        assert split.hostname
        self._connection = http.client.HTTPConnection(split.hostname, split.port, timeout=60)

    def post(self, path: str, content: bytes, headers: dict[str, str] | None = None) -> tuple[int, Any, bytes]:
        self._connection.request("POST", path, content, headers or {})
        answer = self._connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def close(self) -> None:
        self._connection.close()

    def load(self, model: bytes) -> None:
        parameters = {
            "config": json.dumps({"max_batch_size": 0, "json_nonfinite": "literal"}),
            "file:1/model.onnx": base64.b64encode(model).decode(),
        }
        content = json.dumps({"parameters": parameters}).encode()
        status, _, text = self.post("/v2/repository/models/case/load", content)
        assert status == 200, text

    def infer_json(self, inputs: Arrays, types: dict[str, str]) -> Arrays:
        entries = [
            {"name": name, "shape": list(array.shape), "datatype": types[name], "data": as_json(array, types[name])}
            for name, array in inputs.items()
        ]
        status, _, text = self.post("/v2/models/case/infer", json.dumps({"inputs": entries}).encode())
        assert status == 200, text
        return {
            one["name"]: from_json(one["data"], one["datatype"], one["shape"]) for one in json.loads(text)["outputs"]
        }

    def infer_binary(self, inputs: Arrays, types: dict[str, str]) -> Arrays:
        raw = {name: to_bytes(array, types[name]) for name, array in inputs.items()}
        entries = [
            {
                "name": name,
                "shape": list(array.shape),
                "datatype": types[name],
                "parameters": {"binary_data_size": len(raw[name])},
            }
            for name, array in inputs.items()
        ]
        head = json.dumps({"inputs": entries, "parameters": {"binary_data_output": True}}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))}
        status, fields, content = self.post("/v2/models/case/infer", head + b"".join(raw.values()), headers)
        assert status == 200, content
        length = int(fields.get("Inference-Header-Content-Length", len(content)))
        found: Arrays = {}
        for one in json.loads(content[:length])["outputs"]:
            size = one["parameters"]["binary_data_size"]
            found[one["name"]] = from_bytes(content[length : length + size], one["datatype"], one["shape"])
            length += size
        assert length == len(content)
        return found


def as_json(array: np.ndarray[Any, Any], datatype: str) -> list[Any]:
    if datatype == "BYTES":
        return [text(one).decode() for one in array.ravel().tolist()]
    return list(array.ravel().astype(np.float64 if datatype == "BF16" else array.dtype).tolist())


def text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def from_json(data: list[Any], datatype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    values = [one.encode() for one in data] if datatype == "BYTES" else data
    return np.array(values, NUMPY[datatype]).reshape(shape)


def to_bytes(array: np.ndarray[Any, Any], datatype: str) -> bytes:
    if datatype != "BYTES":
        return array.astype(NUMPY[datatype]).tobytes()
    elements = [text(one) for one in array.ravel().tolist()]
    return b"".join(len(one).to_bytes(4, "little") + one for one in elements)


def from_bytes(raw: bytes, datatype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    if datatype != "BYTES":
        return np.frombuffer(raw, NUMPY[datatype]).reshape(shape)
    elements, at = [], 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        elements.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return np.array(elements, object).reshape(shape)


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """Some cases hold their values as files would."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], datatype: str) -> bool:
    if one.shape != other.shape:
        return False
    if datatype == "BYTES":
        return [text(a) for a in one.ravel().tolist()] == [text(a) for a in other.ravel().tolist()]
    if NUMPY[datatype] in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        # A kernel adds up in an order that depends on where in memory its input lies: the last bits may differ.
        rtol = 1e-2 if datatype in ("FP16", "BF16") else 1e-6
        return bool(np.allclose(one.astype(np.float64), other.astype(np.float64), rtol, 1e-9, equal_nan=True))
    return bool(np.array_equal(one, other))


def direct(case: Any, given: Any) -> tuple[Arrays, dict[str, str], Arrays] | None:
    """Inputs, datatypes and the runtime's own outputs; None where the runtime or the protocol cannot."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
        tensors = [*session.get_inputs(), *session.get_outputs()]
        types = {one.name: DATATYPES[one.type] for one in tensors}
        inputs = {one.name: as_array(value) for one, value in zip(session.get_inputs(), given, strict=True)}
        names = [one.name for one in session.get_outputs()]
        if "BF16" in types.values():
            return inputs, types, {}  # the runtime's Python interface cannot carry it: JSON and binary must agree
        return inputs, types, dict(zip(names, session.run(names, inputs), strict=True))
    except Exception:  # any refusal of the runtime; KeyError: sequences, optionals, 4- and 8-bit floats
        return None


def judge(client: Client, case: Any) -> str:
    if any(node.op_type in ("Bernoulli", "RandomUniformLike", "Dropout") for node in case.model.graph.node):
        return "random"
    prepared = [direct(case, given) for given, _ in case.data_sets]
    if None in prepared:
        return "not for the server"
    client.load(case.model.SerializeToString())
    for inputs, types, wanted in filter(None, prepared):
        by_json, by_binary = client.infer_json(inputs, types), client.infer_binary(inputs, types)
        assert set(by_json) == set(by_binary)
        for name, array in (wanted or by_binary).items():
            assert same(by_json[name], array, types[name]), f"JSON output {name}"
            assert same(by_binary[name], array, types[name]), f"binary output {name}"
    return "equal"


def judge_all(client: Client, chosen: tuple[Any, ...]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    problems = []
    for case in chosen:
        try:
            outcomes[judge(client, case)] += 1
        except AssertionError as error:
            problems.append(f"{case.name}: {error}".splitlines()[0])
    assert not problems, "\n".join(problems)
    return outcomes


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    repository: Path = write_repository(tmp_path_factory.mktemp("models"), ["echo_fp32"])
    options = ("--model-control-mode", "explicit", "--allow-file-override", "--host", "127.0.0.1")
    with ServerProcess(repository, *options) as server:
        client = Client(server.url)
        yield client
        client.close()


def test_a_sample_of_the_operator_cases_through_json_and_binary(client: Client) -> None:
    chosen = cases()[::SAMPLE_STEP]
    assert judge_all(client, chosen)["equal"] > len(chosen) * 0.7


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_operator_cases_through_json_and_binary(client: Client) -> None:
    outcomes = judge_all(client, cases())
    assert outcomes["equal"] > 1500, outcomes
