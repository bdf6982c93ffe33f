"""What people hand to `infer` becomes the request they meant."""

import json
from pathlib import Path

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.cli.payload import read_payloads
from kernelport.core.tensor import BF16, BOOL, BYTES, FP32, INT64, DataType

INPUTS: dict[str, DataType] = {"X": FP32, "ids": INT64, "text": BYTES, "half": BF16, "flag": BOOL}


def only(data: str, stdin: str = "") -> dict[str, object]:
    (payload,) = read_payloads(data, INPUTS, stdin)
    return payload.body


def test_a_whole_request_is_sent_as_it_is() -> None:
    body = {"id": "7", "inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}
    assert only(json.dumps(body)) == body


def test_inputs_by_name_get_shape_and_datatype_from_the_model() -> None:
    body = only('{"X": [[1, 2.5], [3, 4]], "text": ["a", "b"]}')
    assert body == {
        "inputs": [
            {"name": "X", "shape": [2, 2], "datatype": "FP32", "data": [1, 2.5, 3, 4]},
            {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["a", "b"]},
        ]
    }


def test_a_scalar_has_no_dimensions() -> None:
    assert only('{"ids": 16000}') == {"inputs": [{"name": "ids", "shape": [], "datatype": "INT64", "data": [16000]}]}


def test_an_empty_list_has_no_elements() -> None:
    assert only('{"X": [[]]}') == {"inputs": [{"name": "X", "shape": [1, 0], "datatype": "FP32", "data": []}]}


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_integers_keep_every_digit(rows: list[list[int]]) -> None:
    (payload,) = read_payloads(json.dumps({"ids": rows}), INPUTS)
    sent = payload.body["inputs"][0]
    assert sent["data"] == [value for row in rows for value in row]
    assert sent["shape"] == [len(rows), 3]


def test_an_unknown_input_is_refused_with_the_known_ones() -> None:
    with pytest.raises(click.UsageError, match="no input 'Y'; its inputs are X, ids"):
        only('{"Y": [1]}')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('{"X": [[1], [2, 3]]}', "input 'X' is no FP32 tensor"),
        ('{"ids": ["a"]}', "input 'ids' is no INT64 tensor"),
        ("{", "not JSON"),
        ("[1, 2]", "expected a whole request"),
        ("absent.json", "absent.json: No such file"),
        ("absent.npz", "absent.npz: not a readable .npz file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(data: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        only(data)


def test_json_file_is_one_request(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text('{"X": [1]}')
    assert only(str(path))["inputs"] == [{"name": "X", "shape": [1], "datatype": "FP32", "data": [1]}]


def test_each_line_of_a_jsonl_file_is_a_request_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text('{"X": [1]}\n\n{"X": [2]}\n')
    payloads = list(read_payloads(str(path), INPUTS))
    assert [payload.source for payload in payloads] == [f"{path}:1", f"{path}:3"]
    assert [payload.body["inputs"][0]["data"] for payload in payloads] == [[1], [2]]


def test_dash_reads_lines_from_standard_input() -> None:
    payloads = list(read_payloads("-", INPUTS, '{"X": [1]}\n{"X": [2]}\n'))
    assert [payload.source for payload in payloads] == ["standard input:1", "standard input:2"]


def test_npz_arrays_are_inputs_by_name(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(
        path,
        X=np.ones((2, 3), np.float32),
        flag=np.array([True, False]),
        text=np.array(["ä", "b"]),
        half=np.array([0x3F80], np.uint16),
    )
    by_name = {one["name"]: one for one in only(str(path))["inputs"]}  # type: ignore[attr-defined]
    assert {name: (one["datatype"], one["shape"]) for name, one in by_name.items()} == {
        "X": ("FP32", [2, 3]),
        "flag": ("BOOL", [2]),
        "text": ("BYTES", [2]),
        "half": ("BF16", [1]),
    }
    assert by_name["text"]["data"].tolist() == ["ä".encode(), b"b"]


def test_npz_array_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "complex.npz"
    np.savez(path, X=np.ones(2, np.complex64))
    with pytest.raises(click.UsageError, match="'X' has dtype complex64"):
        only(str(path))
