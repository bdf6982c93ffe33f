"""The generated references are those of today's models, and the schema fits real files."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kernelport.config.docs import model_schema, references, write
from kernelport.config.model import ModelConfig

jsonschema = pytest.importorskip("jsonschema")


@pytest.mark.parametrize("name", sorted(references()))
def test_the_reference_in_the_repository_is_up_to_date(repository_root: Path, name: str) -> None:
    written = (repository_root / "docs" / "reference" / name).read_text("utf-8")
    assert written == references()[name], "run: python -m kernelport.config.docs docs/reference"


def test_writing_touches_only_what_changed(tmp_path: Path) -> None:
    assert [path.name for path in write(tmp_path)] == sorted(references(), key=list(references()).index)
    assert write(tmp_path) == []


GOOD = """
max_batch_size: 8
input:
- {name: x, data_type: TYPE_FP32, dims: [4]}
- {name: sr, batch_axis: null}
dynamic_batching: {max_queue_delay_microseconds: 100}
version_policy: {latest: {num_versions: 2}}
instance_group: [{kind: KIND_CPU, count: 2}]
parameters: {intra_op_thread_count: 1}
shape_buckets: {x: {1: [16, 32]}}
"""


@pytest.mark.parametrize("text", [GOOD, "dynamic_batching: off", "dynamic_batching: 'off'", "max_queue_size: 3"])
def test_the_schema_accepts_what_the_loader_accepts(text: str) -> None:
    data = yaml.safe_load(text)
    ModelConfig.model_validate(data)
    jsonschema.validate(_with_text_keys(data), model_schema())


@pytest.mark.parametrize("text", ["max_batch_siz: 1", "name:", "input: [{dims: [1]}]", "max_batch_size: -1"])
def test_the_schema_refuses_what_the_loader_refuses(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), model_schema())


def _with_text_keys(data: Any) -> Any:
    """As an editor's validator sees YAML: keys are texts."""
    if isinstance(data, dict):
        return {str(key): _with_text_keys(value) for key, value in data.items()}
    return [_with_text_keys(one) for one in data] if isinstance(data, list) else data
