"""The command line as people meet it: help, versions, mistakes."""

import subprocess
import sys
from pathlib import Path

import kernelport
import pytest
from kernelport.cli.main import main


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "kernelport", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=cwd)


def test_version_is_printed_alone() -> None:
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"kernelport {kernelport.__version__}\n")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for command in ("serve", "check", "models", "load", "unload", "infer", "stats"):
        assert f"\n  {command} " in said


@pytest.mark.parametrize("command", ["serve", "check", "models", "load", "unload", "infer", "stats"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "Usage: kernelport" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["srve"], "did you mean 'serve'?"),
        (["xyzzy"], "commands: serve, check"),
        (["serve", "--prot", "1"], "'--port'"),
        (["models", "--ulr", "x"], "'--url'"),
        (["infer"], "Missing argument"),
        (["stats", "--version", "1"], "--version needs a MODEL"),
        (["serve", "/no/such/folder"], "/no/such/folder: no such file or folder"),
        (["serve", "--port", "eighty"], "--port"),
        (["serve", "--device", "gpu7"], "gpu7"),
        (["serve", "--config", "/no/such.yaml"], "/no/such.yaml"),
        (["load", "m", "--config", "/no/such.json"], "/no/such.json"),
    ],
)
def test_mistakes_are_one_readable_message_and_exit_code_two(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "words", [["models"], ["load", "m"], ["unload", "m"], ["stats"], ["infer", "m", "{}"]], ids=lambda words: words[0]
)
def test_no_server_is_said_plainly(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--url", "127.0.0.1:1"]) == 1
    said = capsys.readouterr().err
    assert "no server answers at http://127.0.0.1:1" in said
    assert "--url" in said


def test_an_unknown_key_of_the_configuration_file_is_refused_with_a_suggestion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernelport.yaml"
    file.write_text("prot: 8000\n")
    assert main(["serve", "--config", str(file)]) == 2
    assert "did you mean 'port'?" in capsys.readouterr().err


def test_an_unknown_variable_is_refused_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELPORT_PROT", "8000")
    assert main(["serve"]) == 2
    assert "KERNELPORT_PORT" in capsys.readouterr().err
