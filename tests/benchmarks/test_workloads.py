import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models import MODELS, model_file
from benchmarks.workloads import (
    JSON_LENGTH_HEADER,
    WORKLOADS,
    decode_answer,
    encode_request,
    expected_answer,
    sample_rows,
)

TINY = MODELS["tiny"]


def test_every_workload_names_a_model() -> None:
    assert {workload.model for workload in WORKLOADS.values()} <= set(MODELS)


def test_a_json_request_carries_the_very_float32_values() -> None:
    rows = sample_rows(TINY)
    tensor = json.loads(encode_request(TINY, rows, "json").content)["inputs"][0]
    assert np.array_equal(np.array(tensor["data"], np.float32).reshape(tensor["shape"]), rows)


def test_a_binary_request_says_where_its_json_ends() -> None:
    rows = sample_rows(TINY)
    body = encode_request(TINY, rows, "binary")
    length = int(body.headers[JSON_LENGTH_HEADER])
    tensor = json.loads(body.content[:length])["inputs"][0]
    assert tensor["parameters"]["binary_data_size"] == len(body.content) - length
    assert body.content[length:] == rows.tobytes()


def test_json_and_binary_answers_decode_to_the_same_array() -> None:
    array = np.arange(3, dtype=np.float32).reshape(1, 3)
    output = {"name": "y", "datatype": "FP32", "shape": [1, 3]}
    as_json = json.dumps({"outputs": [output | {"data": [0, 1, 2]}]}).encode()
    head = json.dumps({"outputs": [output]}).encode()
    binary = decode_answer(head + array.tobytes(), {"inference-header-content-length": str(len(head))})
    assert np.array_equal(decode_answer(as_json, {}), array)
    assert np.array_equal(binary, array)


@pytest.mark.parametrize("name", ["tiny", "image"])
def test_a_built_model_answers_in_the_shape_it_declares(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    answer = expected_answer(model_file(name, tmp_path), model)
    assert answer.shape == (1, *model.output_shape)
