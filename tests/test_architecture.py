"""The rules that keep the code readable, checked by machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "app"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MIRRORED = ("core", "batcher", "protocol", "lifecycle")
WITHOUT_CODE = {"core/servable.py"}  # only a Protocol
RUNS_ON = re.compile(r"Runs on: (anywhere|event loop|worker thread|loader thread|main thread)\b")
# Words that belong to someone's machine or plans, not to a released project.
FORBIDDEN = re.compile(r"\b(TODO|FIXME|XXX)\b|(?<![\w.])/(work/|home/|root/\.)")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".cfg", ".json", ""}

MODULES = sorted(path for path in APP.rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_modules_keep_to_the_walls(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    findings = [
        *_size_findings(text, tree),
        *_docstring_findings(path, tree),
        *_import_findings(tree),
        *_swallow_findings(tree),
    ]
    assert not findings, "\n".join(findings)


def _size_findings(text: str, tree: ast.AST) -> Iterator[str]:
    lines = len(text.splitlines())
    if lines > MAX_FILE_LINES:
        yield f"{lines} lines; a file has at most {MAX_FILE_LINES}"
    for function in _functions(tree):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > MAX_FUNCTION_LINES:
            yield f"{function.name} has {length} lines; a function has at most {MAX_FUNCTION_LINES}"


def _docstring_findings(path: Path, tree: ast.Module) -> Iterator[str]:
    docstring = ast.get_docstring(tree)
    if not docstring:
        yield "no module docstring"
    elif path.name != "__init__.py" and not RUNS_ON.search(docstring):
        yield "the module docstring does not say where it runs ('Runs on: event loop', ...)"


def _import_findings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            if name.split(".")[0] in ("app", "kernelport"):
                yield f"imports {name} absolutely; inside the package imports are relative"
        if isinstance(node, ast.Name | ast.alias) and "BaseHTTPMiddleware" in ast.dump(node):
            yield "BaseHTTPMiddleware hides disconnects; write a plain ASGI middleware"


def _swallow_findings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield f"line {node.lineno}: a bare except"
        if all(isinstance(step, ast.Pass) or _is_ellipsis(step) for step in node.body):
            yield f"line {node.lineno}: an exception is swallowed; use contextlib.suppress with a reason, or handle it"


def _is_ellipsis(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant) and step.value.value is ...


@pytest.mark.parametrize("package", MIRRORED)
def test_every_module_of_the_heart_has_its_test(package: str) -> None:
    missing = []
    for path in sorted((APP / package).rglob("*.py")):
        inside = path.relative_to(APP)
        if path.name == "__init__.py" or inside.as_posix() in WITHOUT_CODE:
            continue
        test = ROOT / "tests" / inside.parent / f"test_{inside.name}"
        if not test.is_file():
            missing.append(_relative(test))
    assert not missing, f"no test file: {', '.join(missing)}"


def test_import_contracts_are_kept() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [str(tool), "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert result.returncode == 0, result.stdout + result.stderr


def _tracked_text_files() -> list[Path]:
    """Files of the project as git sees them, new ones included; without git, the source folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines()] or [*MODULES, *TESTS]
    return [path for path in paths if path.is_file() and path.suffix in TEXT_SUFFIXES]


def test_nothing_is_left_to_do_or_tied_to_one_machine() -> None:
    findings = []
    for path in _tracked_text_files():
        if path == Path(__file__).resolve() or (ROOT / "tests/data") in path.parents:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if FORBIDDEN.search(line):
                findings.append(f"{_relative(path)}:{number}: {line.strip()[:120]}")
    assert not findings, "\n".join(findings)


def test_test_folders_are_no_packages() -> None:
    assert not [_relative(path) for path in TESTS if path.name == "__init__.py"]


def test_test_names_are_sentences() -> None:
    short = [
        f"{_relative(path)}: {function.name}"
        for path in TESTS
        for function in _functions(ast.parse(path.read_text(encoding="utf-8")))
        if function.name.startswith("test_") and len(function.name.split("_")) < 3
    ]
    assert not short, "\n".join(short)
