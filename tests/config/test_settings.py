"""Flags over environment over file over defaults."""

from pathlib import Path
from typing import Any

import pytest
from kernelport.config.docs import check_described
from kernelport.config.server import ServerSettings
from kernelport.config.settings import load_settings
from kernelport.core.errors import ConfigError


def test_a_flag_wins_over_a_variable_over_the_file_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / "kernelport.yaml"
    file.write_text("port: 1\nhost: file\nlog_level: debug\nmax_request_bytes: 1GiB\n")
    env = {"KERNELPORT_PORT": "2", "KERNELPORT_HOST": "variable", "KERNELPORT_CONFIG": str(file), "PATH": "x"}
    settings = load_settings({"port": "3", "host": None}, env)
    assert (settings.port, settings.host, settings.log_level, settings.drain_delay_s) == (3, "variable", "debug", 5)
    assert settings.max_request_bytes == 1024**3
    assert settings.config == str(file)


def test_the_documented_limits_are_the_defaults() -> None:
    settings = load_settings({}, {})
    assert (settings.max_request_bytes, settings.max_json_bytes) == (64 * 1024**2, 16 * 1024**2)
    assert (settings.max_inflight_bytes, settings.max_response_bytes) == (1024**3, 256 * 1024**2)
    assert (settings.max_queue_size, settings.max_batch_size) == (1024, 32)
    assert (settings.header_timeout_s, settings.body_timeout_s, settings.body_min_rate) == (10, 60, 1024)
    assert (settings.keep_alive_s, settings.json_depth, settings.tensor_rank) == (75, 64, 16)
    assert (settings.drain_delay_s, settings.exit_timeout_s) == (5, 30)


def test_lists_take_commas_in_a_variable_and_switches_take_words() -> None:
    env = {
        "KERNELPORT_MODELS": "a, b,",
        "KERNELPORT_ACCESS_LOG": "yes",
        "KERNELPORT_STRICT_READINESS": "0",
        "KERNELPORT_UDS": "",
    }
    settings = load_settings({}, env)
    assert settings.repositories == (Path("a"), Path("b"))
    assert (settings.access_log, settings.strict_readiness, settings.uds) == (True, False, "")


def test_service_links_of_an_orchestrator_are_no_options() -> None:
    env = {
        "KERNELPORT_PORT": "tcp://10.0.0.1:8080",
        "KERNELPORT_SERVICE_HOST": "10.0.0.1",
        "KERNELPORT_SERVICE_PORT_HTTP": "8080",
        "KERNELPORT_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert load_settings({}, env) == load_settings({}, {})


@pytest.mark.parametrize(
    ("flags", "env", "message"),
    [
        ({"prot": 1}, {}, "unknown option --prot; did you mean 'port'?"),
        ({}, {"KERNELPORT_PROT": "1"}, "unknown environment variable KERNELPORT_PROT; did you mean 'KERNELPORT_PORT'?"),
        ({"port": "70000"}, {}, "--port: input should be less than or equal to 65535, not '70000'"),
        ({}, {"KERNELPORT_PORT": "eighty"}, "KERNELPORT_PORT: input should be a valid integer"),
        ({}, {"KERNELPORT_MAX_JSON_BYTES": "16 miles"}, "KERNELPORT_MAX_JSON_BYTES: '16 miles' is not a size"),
        ({}, {"KERNELPORT_ACCESS_LOG": "maybe"}, "KERNELPORT_ACCESS_LOG: true or false is expected, not 'maybe'"),
        ({"device": "gpu"}, {}, "--device: 'gpu' is no device; use auto, cpu or cuda:N"),
        ({"log_level": "loud"}, {}, "--log-level: input should be 'debug', "),
        ({"backend_config": ("onnxruntime,a",)}, {}, "--backend-config: 'onnxruntime,a' is not of the form"),
        ({"load_model": ("m",)}, {}, "--load-model needs --model-control-mode explicit"),
        ({"allow_file_override": True}, {}, "--allow-file-override needs --model-control-mode explicit"),
        ({"model_name": "m"}, {}, "--model-name names the model of --model-path"),
        ({"config": "missing.yaml"}, {}, "missing.yaml: cannot be read"),
        ({"drain_delay_s": "nan"}, {}, "--drain-delay-s: "),
    ],
)
def test_a_wrong_option_is_told_by_the_name_it_was_given_under(
    flags: dict[str, Any], env: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(flags, env)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acces_log: true\n", ":1: unknown option 'acces_log'; did you mean 'access_log'?"),
        ("port: 1\nlog_level: loud\n", ":2: log_level: input should be"),
        ("port:\n", ":1: 'port' is empty"),
        ("config: x\n", ":1: unknown option 'config'"),
        ("[]\n", ": a mapping of options is expected"),
        ("port: 1\nport: 2\n", ":2: 'port' is given twice"),
    ],
)
def test_a_fault_in_the_file_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "kernelport.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings({}, {}, file)
    assert str(caught.value).startswith(f"{file}{message}")


def test_backend_parameters_go_to_their_backend_and_shared_ones_to_all() -> None:
    settings = load_settings({"backend_config": ["onnxruntime,a=1", "python,a=2", "b=x=y"]}, {})
    assert settings.backend_parameters("onnxruntime") == {"a": "1", "b": "x=y"}
    assert settings.backend_parameters("python") == {"a": "2", "b": "x=y"}


@pytest.mark.parametrize(("written", "path"), [("/", ""), ("models", "/models"), ("/a/b/", "/a/b"), ("", "")])
def test_a_root_path_has_one_slash_before_and_none_behind(written: str, path: str) -> None:
    assert load_settings({"root_path": written}, {}).root_path == path


def test_every_option_has_a_one_line_description() -> None:
    assert check_described(ServerSettings) == []


def test_the_json_limit_has_a_limit_of_its_own() -> None:
    with pytest.raises(ConfigError, match="32MiB at most"):
        load_settings({"max_json_bytes": "33MiB"}, env={})
    assert load_settings({"max_json_bytes": "32MiB"}, env={}).max_json_bytes == 32 * 1024**2
