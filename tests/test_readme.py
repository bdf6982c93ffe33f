"""Every example of the README and the quickstart works as typed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernelport.cli.main import kernelport as command_line
from kernelport.config.load import parse_model_config
from kernelport.config.yaml_text import parse_yaml
from server_process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/quickstart.md")
ALL_PAGES = ["README.md", "CHANGELOG.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#:]+)(#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    """A code block of a page, and the block after it, which may show its output."""

    page: str
    number: int
    kind: str
    text: str
    shown: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def _blocks() -> list[Block]:
    found = []
    for page in PAGES:
        matches = list(_BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")))
        for number, match in enumerate(matches):
            after = matches[number + 1] if number + 1 < len(matches) else None
            shown = after["text"] if after is not None and after["kind"] in ("json", "text") else ""
            found.append(Block(page, number, match["kind"], match["text"], shown))
    return found


BLOCKS = _blocks()
ASKS_A_SERVER = re.compile(r"localhost:8080|^kernelport (infer|models|stats)|^python ", re.MULTILINE)


def _asking(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind and ASKS_A_SERVER.search(block.text)]


def _run(command: list[str], folder: Path, server: ServerProcess, text: str = "") -> str:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        input=text.replace("localhost:8080", server.url.removeprefix("http://")),
        env={**os.environ, "PATH": tools, "KERNELPORT_URL": server.url},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def folder_with_models(tmp_path: Path) -> Path:
    """A folder as the reader of the README has it: with a repository called MODELS."""
    shutil.copytree(ROOT / "app" / "builtin", tmp_path / "MODELS")
    return tmp_path


@pytest.fixture
def command_on_path(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `kernelport`, whether or not this environment has it installed as a script."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "kernelport"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kernelport "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("command_on_path")
@pytest.mark.parametrize("block", _asking("sh"), ids=str)
def test_shell_examples_work_as_typed(block: Block, folder_with_models: Path, tiny_server: ServerProcess) -> None:
    if "curl " in block.text and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    said = _run(["sh", "-e"], folder_with_models, tiny_server, block.text)
    if block.shown.startswith("{"):
        assert json.loads(said) == json.loads(block.shown)
    elif block.shown.startswith("y FP32"):
        assert said == block.shown


@pytest.mark.parametrize("block", _asking("python") + [b for b in BLOCKS if "tritonclient.http" in b.text][:1], ids=str)
def test_python_examples_work_as_typed(block: Block, tmp_path: Path, tiny_server: ServerProcess) -> None:
    said = _run([sys.executable, "-"], tmp_path, tiny_server, block.text)
    assert said.split() == ["[[10.", "2.5", "3.", "]", "[26.", "6.5", "3.", "]]"]


def test_the_pages_have_the_examples_that_are_looked_for() -> None:
    assert len(_asking("sh")) >= 5
    assert any("tritonclient.http" in block.text for block in BLOCKS)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.kind == "yaml"], ids=str)
def test_model_configurations_are_accepted(block: Block) -> None:
    parse_model_config(parse_yaml(block.text, str(block)).data, str(block))


def _commands(first: str) -> list[list[str]]:
    """Every typed command line that begins with that program."""
    lines = [line.partition(" #")[0] for block in BLOCKS if block.kind == "sh" for line in block.text.splitlines()]
    words = [
        shlex.split(line.strip(), posix=True) for line in lines if f"{first} " in line and not line.startswith("  ")
    ]
    return [line[line.index(first) :] for line in words if first in line]


@pytest.mark.parametrize("words", _commands("kernelport"), ids=" ".join)
def test_every_kernelport_command_is_understood(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "kernelport.yaml").write_text("port: 9000\n")
    words = [str(tmp_path / word) if word.endswith(".yaml") else word for word in words]
    command = command_line.get_command(command_line.make_context("kernelport", words[1:]), words[1])
    assert command is not None
    command.make_context(words[1], words[2:])


@pytest.mark.parametrize("words", _commands("make"), ids=" ".join)
def test_every_make_target_exists(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    broken = [
        match["target"] for match in _LINK.finditer(text) if not ((ROOT / page).parent / match["target"]).exists()
    ]
    assert not broken
