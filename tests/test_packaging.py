"""The built distributions: complete, installable beside a user's package called `app`, buildable again from source."""

import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import kernelport
import pytest

ROOT = Path(__file__).resolve().parent.parent
APP = ROOT / "app"


def _run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def _build(source: Path, target: Path, kind: str) -> Path:
    """Build with the tools of this environment, so that no package index is needed."""
    _run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", target, source, cwd=target)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def _copy_of_source(target: Path) -> Path:
    """The files a build needs, away from the work tree, which a build would litter."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target / name)
    shutil.copytree(APP, target / "app", ignore=shutil.ignore_patterns("__pycache__"))
    return target


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    return _build(_copy_of_source(folder / "source"), folder, "sdist")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return _build(source, folder, "wheel")


def _files_of_app() -> set[str]:
    return {
        path.relative_to(APP).as_posix()
        for path in APP.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_package_is_listed_in_pyproject(repository_root: Path) -> None:
    settings = tomllib.loads((repository_root / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(settings["tool"]["setuptools"]["packages"])
    found = {".".join(["kernelport", *path.parent.relative_to(APP).parts]) for path in APP.rglob("__init__.py")}
    assert listed == found, "keep `packages` in pyproject.toml equal to the packages under app/"


@pytest.mark.timeout(240)
def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(metadata_name).decode())
    inside = {name.removeprefix("kernelport/") for name in names if name.startswith("kernelport/")}
    outside = {name for name in names if not name.startswith(("kernelport/", "kernelport-"))}
    assert inside == _files_of_app()
    assert not outside
    assert "py.typed" in inside
    assert (metadata["Name"], metadata["Version"]) == ("kernelport", kernelport.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"cpu", "gpu", "dev"} <= set(metadata.get_all("Provides-Extra", []))


@pytest.mark.timeout(240)
def test_source_distribution_holds_licence_and_readme(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "app/__init__.py", "app/py.typed"} <= names


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and a user's own package `app`; returns its folder.

    What the wheel needs comes from this environment by a path entry, so nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    _run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel, cwd=folder)
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "zz_dependencies.pth").write_text(f"import sys; sys.path.append({here!r})\n", encoding="utf-8")
    (folder / "app").mkdir()
    (folder / "app" / "__init__.py").write_text("NAME = 'the user'\n", encoding="utf-8")
    (folder / "app" / "core.py").write_text("NAME = 'the core of the user'\n", encoding="utf-8")
    return folder


@pytest.mark.timeout(240)
def test_wheel_lives_beside_a_package_called_app(installed: Path) -> None:
    program = textwrap.dedent(
        """
        import app, app.core, kernelport, kernelport.core.errors, kernelport.cli.main
        assert app.NAME == "the user" and app.core.NAME == "the core of the user"
        assert issubclass(kernelport.core.errors.ModelNotFound, kernelport.core.errors.KernelPortError)
        print(kernelport.__file__)
        """
    )
    where = _run(installed / "venv/bin/python", "-c", program, cwd=installed)
    assert Path(where.strip()).is_relative_to(installed / "venv")


@pytest.mark.timeout(240)
def test_installed_package_runs_as_a_module(installed: Path) -> None:
    said = _run(installed / "venv/bin/python", "-m", "kernelport", "--version", cwd=installed)
    assert said == f"kernelport {kernelport.__version__}\n"


def test_build_needs_setuptools_only(repository_root: Path) -> None:
    settings = tomllib.loads((repository_root / "pyproject.toml").read_text(encoding="utf-8"))
    assert [line.partition(">")[0] for line in settings["build-system"]["requires"]] == ["setuptools"]


def test_pins_name_no_place(repository_root: Path) -> None:
    lines = (repository_root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        assert line.startswith("#") or line.count("==") == 1, line
        assert "://" not in line
        assert "@" not in line
