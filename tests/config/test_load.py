"""Model configurations from files."""

from pathlib import Path

import pytest
from kernelport.config.load import load_model_config, parse_model_config
from kernelport.core.errors import ConfigError


def test_both_spellings_say_the_same(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "config.pbtxt").write_text(
        'max_batch_size: 8 input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ] dynamic_batching { '
        'preferred_batch_size: [ 4 ] } parameters { key: "k" value { string_value: "v" } }'
    )
    (tmp_path / "b" / "model.yaml").write_text(
        "max_batch_size: 8\ninput:\n- {name: x, data_type: TYPE_FP32, dims: [4]}\n"
        "dynamic_batching:\n  preferred_batch_size: [4]\nparameters: {k: v}\n"
    )
    assert load_model_config(tmp_path / "a") == load_model_config(tmp_path / "b")


def test_a_folder_without_configuration_has_an_empty_one(tmp_path: Path) -> None:
    assert load_model_config(tmp_path).model_fields_set == set()


def test_two_configurations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").touch()
    (tmp_path / "config.pbtxt").touch()
    with pytest.raises(ConfigError, match=r"both model\.yaml and config\.pbtxt; keep one"):
        load_model_config(tmp_path)


@pytest.mark.parametrize("name", ["model.yml", "config.yaml", "config.pbtext"])
def test_a_misnamed_configuration_is_not_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=f"{name}: .* rename it to (model.yaml|config.pbtxt)"):
        load_model_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_batch_siz: 1\n", "model.yaml:1: unknown key 'max_batch_siz'; did you mean 'max_batch_size'?"),
        (
            "name: m\ninput:\n- name: x\n  dims: [1]\n  data_typ: FP32\n",
            "model.yaml:5: input.0: unknown key 'data_typ'; did you mean 'data_type'?",
        ),
        ("input: {a: 1}\n", "model.yaml:1: input: input should be a list, not {'a': 1}"),
        (
            "name: m\nmax_batch_size: -4\n",
            "model.yaml:2: max_batch_size: input should be greater than or equal to 0, not -4",
        ),
        (
            "dynamic_batching:\n  default_queue_policy:\n    timeout_action: DROP\n",
            "model.yaml:3: dynamic_batching.default_queue_policy.timeout_action: "
            "input should be 'REJECT' or 'DELAY', not 'DROP'",
        ),
        ("max_batch_size: 4\ndynamic_batching:\n", "model.yaml:2: 'dynamic_batching' is empty"),
        ("optimization: fast\n", "model.yaml:1: optimization: input should be a block of Optimization, not 'fast'"),
        ("ensemble_scheduling: {step: []}\n", "model.yaml: ensemble_scheduling: not supported: "),
        ("- a\n", "model.yaml: a mapping of configuration keys is expected, not list"),
    ],
)
def test_a_fault_is_told_with_file_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "model.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_model_config(tmp_path)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model_config({"max_batch_size": "many", "pad_value": True, "json_nonfinite": "x"}, "override")
    assert len(str(caught.value).splitlines()) == 3


def test_nesting_without_end_is_a_fault_not_a_crash() -> None:
    value: dict[str, object] = {}
    for _ in range(100_000):
        value = {"x": value}
    with pytest.raises(ConfigError):
        parse_model_config({"optimization": value}, "override")
    while value:  # taken apart step by step, or freeing it would recurse as deeply
        value = value.pop("x", {})  # type: ignore[assignment]
