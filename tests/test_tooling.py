"""The tools that guard the project are wired up, and all in the same way."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent


def _recipe(target: str) -> list[str]:
    """The command lines of a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert match is not None
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in match[1].splitlines()]


def _hooks() -> list[dict[str, Any]]:
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    return [hook for repository in settings["repos"] for hook in repository["hooks"]]


def test_hooks_run_the_commands_of_make_lint() -> None:
    linted = [line.removesuffix(" .").replace(" --check", "") for line in _recipe("lint")]
    hooked = [hook["entry"].replace(" --fix", "") for hook in _hooks()]
    assert hooked == linted


def test_hooks_need_no_network() -> None:
    assert all(hook["language"] == "system" for hook in _hooks())


def test_hook_configuration_is_valid() -> None:
    tool = TOOLS / "pre-commit"
    if not tool.exists():
        pytest.skip("pre-commit is not installed")
    result = subprocess.run(
        [tool, "validate-config", ROOT / ".pre-commit-config.yaml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_continuous_integration_runs_lint_and_the_test_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "\nmake lint\n" in text
    assert "\nmake test\n" in text
    assert "\nmake test\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_make_help_tells_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    told = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert sorted(told) == sorted(phony[1].split())
