"""Every server option is a flag, and typed values win."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from kernelport.cli.options import flag, settings_from, settings_options
from kernelport.config.server import ServerSettings
from kernelport.core.errors import ConfigError


def typed(*words: str) -> dict[str, Any]:
    """What the command gets for these words."""
    seen: dict[str, Any] = {}

    @click.command()
    @settings_options()
    def command(**flags: Any) -> None:
        seen.update(flags)

    result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen


def test_every_field_is_an_option_with_its_help() -> None:
    @click.command()
    @settings_options()
    def command(**flags: Any) -> None: ...

    options = {name: option for option in command.params for name in option.opts if isinstance(option, click.Option)}
    for name, field in ServerSettings.model_fields.items():
        if name == "models":
            continue
        option = options[flag(name)]
        assert isinstance(option, click.Option)
        assert field.description
        assert str(option.help).startswith(field.description)


def test_nothing_typed_means_the_defaults() -> None:
    assert settings_from(typed()) == ServerSettings()


def test_typed_values_arrive_whatever_their_place() -> None:
    settings = settings_from(typed("one/", "--port", "0", "two/", "--access-log", "--max-json-bytes", "1MiB"))
    assert settings.models == ("one/", "two/")
    assert (settings.port, settings.access_log, settings.max_json_bytes) == (0, True, 1024**2)


def test_a_flag_is_stronger_than_a_variable_and_that_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kernelport.yaml"
    file.write_text("port: 1\nlog_level: debug\nmax_queue_size: 5\n")
    monkeypatch.setenv("KERNELPORT_PORT", "2")
    monkeypatch.setenv("KERNELPORT_LOG_LEVEL", "error")
    settings = settings_from(typed("--config", str(file), "--port", "3"))
    assert (settings.port, settings.log_level, settings.max_queue_size) == (3, "error", 5)


def test_a_switch_can_be_turned_off_over_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPORT_ACCESS_LOG", "true")
    assert settings_from(typed()).access_log is True
    assert settings_from(typed("--no-access-log")).access_log is False


def test_repeated_options_are_lists() -> None:
    flags = typed("--model-control-mode", "explicit", "--load-model", "a", "--load-model", "b")
    assert settings_from(flags).load_model == ("a", "b")


def test_the_variable_of_the_client_commands_does_not_disturb_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPORT_URL", "http://localhost:9000")
    assert settings_from({}).port == 8080


def test_a_wrong_value_is_refused_naming_the_flag() -> None:
    with pytest.raises(ConfigError, match="--port"):
        settings_from(typed("--port", "many"))
