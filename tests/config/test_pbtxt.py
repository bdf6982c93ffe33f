"""config.pbtxt through Triton's descriptor."""

import subprocess
import sys
from pathlib import Path

import pytest
from kernelport.config import pbtxt
from kernelport.config.pbtxt import parse_pbtxt
from kernelport.core.errors import ConfigError

FULL = """
name: "resnet"  # a comment
platform: 'onnxruntime_onnx'
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] } ]
output { name: "y", data_type: TYPE_FP32, dims: 10, label_filename: "labels.txt" }
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  priority_queue_policy { key: 1 value { max_queue_size: 5 } }
}
parameters { key: "b" value: { string_value: "2" } }
parameters { key: "a" value: { string_value: "1" } }
optimization { execution_accelerators { gpu_execution_accelerator : [ {
  name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ] } }
model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { dims: [ 3 ] zero_data: true } } }
version_policy { specific { versions: [ 1, 3 ] } }
"""


def test_every_kind_of_field_becomes_plain_data() -> None:
    data = parse_pbtxt(FULL, "config.pbtxt")
    assert data["input"] == [{"name": "x", "data_type": "TYPE_FP32", "format": "FORMAT_NCHW", "dims": [3, 224, 224]}]
    assert data["output"][0]["dims"] == [10]
    assert data["instance_group"] == [{"count": 2, "kind": "KIND_GPU", "gpus": [0, 1]}]
    assert data["dynamic_batching"]["priority_queue_policy"] == {1: {"max_queue_size": 5}}
    assert data["parameters"] == {"a": {"string_value": "1"}, "b": {"string_value": "2"}}
    accelerator = data["optimization"]["execution_accelerators"]["gpu_execution_accelerator"][0]
    assert accelerator == {"name": "tensorrt", "parameters": {"precision_mode": "FP16"}}
    assert data["model_warmup"][0]["inputs"] == {"x": {"dims": [3], "zero_data": True}}
    assert data["version_policy"] == {"specific": {"versions": [1, 3]}}


def test_a_default_that_was_written_is_told_from_one_that_was_not() -> None:
    assert parse_pbtxt("max_batch_size: 0", "f") == {"max_batch_size": 0}
    assert parse_pbtxt("", "f") == {}
    assert parse_pbtxt("dynamic_batching { }", "f") == {"dynamic_batching": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n max_batch_siz: 3", r"^f:2:2: unknown field 'max_batch_siz'; did you mean 'max_batch_size'\?"),
        ('input [ { name: "a" data_type: TYPE_FP33 } ]', r"^f:1:32: .*no value named TYPE_FP33"),
        ('input [ { name: "a"', r"^f:1:\d+: Expected"),
        ("max_batch_size: 4294967296", r"^f:1:17: Value out of range"),
        ('name: "x" name: "y"', r"^f:1:\d+: .*multiple \"name\" fields"),
        ("dynamic_batching { } sequence_batching { }", r"^f:1:\d+: .*scheduling_choice"),
    ],
)
def test_faults_come_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_pbtxt(text, "f")


def test_a_missing_or_unfit_message_description_is_a_readable_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "unfit.py").write_text("raise RuntimeError('made for protobuf 9')")
    for stub, message in (
        ("none.py", "needs the package tritonclient"),
        (tmp_path / "unfit.py", "made for protobuf 9"),
    ):
        pbtxt._model_config_class.cache_clear()
        monkeypatch.setattr(pbtxt, "_STUB", Path(stub))
        with pytest.raises(ConfigError, match=message):
            parse_pbtxt("", "f")
    pbtxt._model_config_class.cache_clear()


def test_reading_pbtxt_never_imports_grpc_and_only_pbtxt_imports_protobuf() -> None:
    script = (
        "import sys\n"
        "from kernelport.config import load, pbtxt\n"
        "assert 'google.protobuf' not in sys.modules\n"
        "pbtxt.parse_pbtxt('max_batch_size: 3', 'f')\n"
        "assert 'google.protobuf' in sys.modules and 'grpc' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
