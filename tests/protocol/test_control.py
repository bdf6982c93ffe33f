"""Bodies of metadata, statistics, index, load and unload."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infer_bodies import model
from kernelport.core.errors import KernelPortError, MalformedBody
from kernelport.core.model import ModelState, ModelStatus
from kernelport.core.tensor import BYTES, FP32, TensorSpec
from kernelport.core.timing import BatchTiming
from kernelport.protocol.control import (
    index_body,
    metadata_body,
    parse_index,
    parse_load,
    parse_unload,
    statistics_body,
)
from kernelport.telemetry.stats import ModelStats


def test_metadata_has_the_shapes_that_clients_send() -> None:
    spec = model([TensorSpec("a", FP32, (-1, 4)), TensorSpec("b", BYTES, None)], [TensorSpec("c", FP32, ())], 8)
    assert metadata_body(spec, ["1", "3"]) == {
        "name": "m",
        "versions": ["1", "3"],
        "platform": "onnxruntime_onnx",
        "inputs": [
            {"name": "a", "datatype": "FP32", "shape": [-1, 4]},
            {"name": "b", "datatype": "BYTES", "shape": [-1]},
        ],
        "outputs": [{"name": "c", "datatype": "FP32", "shape": []}],
    }


def test_the_index_leaves_out_what_there_is_not() -> None:
    statuses = [
        ModelStatus("a", "1", ModelState.READY),
        ModelStatus("b", "", ModelState.UNKNOWN),
        ModelStatus("c", "2", ModelState.UNAVAILABLE, "unloaded"),
        ModelStatus("d", "", ModelState.UNAVAILABLE, "no version"),
    ]
    assert index_body(statuses) == [
        {"name": "a", "version": "1", "state": "READY"},
        {"name": "b"},
        {"name": "c", "version": "2", "state": "UNAVAILABLE", "reason": "unloaded"},
        {"name": "d", "state": "UNAVAILABLE", "reason": "no version"},
    ]


def test_untouched_statistics_have_every_member() -> None:
    (entry,) = statistics_body([(model(), ModelStats())])["model_stats"]
    zero = {"count": 0, "ns": 0}
    names = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
    assert entry == {
        "name": "m",
        "version": "1",
        "last_inference": 0,
        "inference_count": 0,
        "execution_count": 0,
        "inference_stats": dict.fromkeys(names, zero),
        "response_stats": {},
        "batch_stats": [],
        "memory_usage": [],
    }


def test_statistics_count_requests_rows_and_runs() -> None:
    stats = ModelStats()
    batch = BatchTiming(1_000, 3, 2, "size")
    batch.compute_start_ns, batch.compute_end_ns, batch.done_ns = 1_100, 1_400, 1_450
    stats.executed(batch)
    stats.succeeded(1, 500, 600, batch, 1_500)
    stats.succeeded(2, 500, 700, batch, 1_500)
    stats.failed("backend", 40)
    stats.failed("invalid", 0)
    (entry,) = statistics_body([(model(), stats)])["model_stats"]
    assert (entry["inference_count"], entry["execution_count"]) == (3, 1)
    durations = entry["inference_stats"]
    assert durations["success"] == {"count": 2, "ns": 2_000}
    assert durations["fail"] == {"count": 1, "ns": 40}
    assert durations["queue"] == {"count": 2, "ns": 700}
    assert durations["compute_input"] == {"count": 2, "ns": 200}
    assert durations["compute_infer"] == {"count": 2, "ns": 600}
    assert durations["compute_output"]["count"] == 2
    assert entry["batch_stats"] == [
        {
            "batch_size": 3,
            "compute_input": {"count": 1, "ns": 100},
            "compute_infer": {"count": 1, "ns": 300},
            "compute_output": {"count": 1, "ns": 50},
        }
    ]
    json.dumps(entry)


@pytest.mark.parametrize(
    ("body", "ready"),
    [
        (b"", False),
        (b"  \n", False),
        (b"{}", False),
        (b"[]", False),
        (b'{"ready":true}', True),
        (b'{"ready":false}', False),
    ],
)
def test_index_requests_are_read(body: bytes, ready: bool) -> None:
    assert parse_index(body) is ready


@pytest.mark.parametrize("body", [b'{"ready":"yes"}', b"{bad", b"\xff", b'{"ready":null}', b'{"ready":1}'])
def test_odd_index_requests_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_index(body)


@pytest.mark.parametrize(
    ("body", "dependents"),
    [
        (b"", False), (b"{}", False), (b'{"parameters":null}', False), (b'{"parameters":{}}', False),
        (b'{"parameters":{"unload_dependents":false}}', False), (b'{"parameters":{"unload_dependents":true}}', True),
        (b"\xef\xbb\xbf{}", False),
    ],
)  # fmt: skip
def test_unload_requests_are_read(body: bytes, dependents: bool) -> None:
    assert parse_unload(body) is dependents


@pytest.mark.parametrize("body", [b"[]", b"5", b'{"parameters":[]}', b'{"parameters":{"unload_dependents":"no"}}'])
def test_odd_unload_requests_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_unload(body)


def _load(**parameters: Any) -> bytes:
    return json.dumps(
        {"parameters": {name.replace("file_", "file:"): value for name, value in parameters.items()}}
    ).encode()


def test_a_plain_load_wishes_nothing() -> None:
    for body in (b"", b"{}", b'{"parameters":{}}', b'{"parameters":null}'):
        wish = parse_load(body)
        assert (wish.config, wish.files) == (None, None)


def test_a_load_brings_configuration_and_files() -> None:
    content = base64.b64encode(b"\0model").decode()
    wish = parse_load(_load(config='{"max_batch_size":4}', **{"file:1/model.onnx": content}))
    assert wish.config == {"max_batch_size": 4}
    assert wish.files == {"1/model.onnx": b"\0model"}


@pytest.mark.parametrize(
    "body",
    [
        _load(config="{bad"), _load(config="[]"), _load(config={}), _load(config=None), _load(config="[" * 100_000),
        _load(config='{"a":' * 70 + "1" + "}" * 70), _load(other="x"), _load(**{"file:1/m": "YQ=="}),
        _load(config="{}", **{"file:1/m": "no base64!"}), _load(config="{}", **{"file:1/m": "YQ"}),
        _load(config="{}", **{"file:": "YQ=="}), _load(config="{}", **{"file:1/m": 5}),
        b'{"parameters":5}', b"nonsense",
    ],
)  # fmt: skip
def test_odd_load_requests_are_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_load(body)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_control_bodies(body: bytes) -> None:
    for parse in (parse_index, parse_load, parse_unload):
        try:
            parse(body)
        except KernelPortError as error:
            str(error).encode()
