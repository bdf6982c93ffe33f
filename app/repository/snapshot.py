"""A private copy of a model version's files, so that nobody changes them under a backend. Runs on: loader thread.

Hard links would not do: truncating or writing the original in place changes them too, and a backend that maps its
weights then dies of SIGBUS. Copies share their blocks with the original where the file system can (reflink).
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..config.paths import PLAIN_RELATIVE, is_plain_relative
from ..core.errors import LoadError
from ..core.model import ModelArtifact
from ..protocol.onnx_file import read_graph_facts
from .layout import is_ignored, is_version
from .model import RepositoryModel

_CHUNK = 64 * 1024 * 1024
_SPARE_BYTES = 16 * 1024 * 1024
_NO_REFLINK = frozenset({errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EPERM})
_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Snapshot:
    """The private copy; closed when the backend no longer needs the files."""

    artifact: ModelArtifact
    folder: Path

    def close(self) -> None:
        """Delete the copy; mapped files stay usable until they are unmapped. Harmless when repeated."""
        try:
            shutil.rmtree(self.folder)
        except FileNotFoundError:
            _log.debug("the copy %s was deleted before", self.folder)
        except OSError as error:
            _log.warning("the copy %s cannot be deleted: %s", self.folder, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def prepare(model: RepositoryModel, version: str, filename: str, scratch: Path | None = None) -> Snapshot:
    """Copy the version's files; `filename` is the model inside its folder (ignored for a bare file).

    Raises LoadError when a file is missing, no plain file, outside the model, or changes meanwhile.
    """
    source = model.versions[version]
    main = source if source.is_file() or source.suffix == ".savedmodel" else source / filename
    label = f"model {model.name!r} version {version}"
    if main != source and not is_plain_relative(filename):
        raise LoadError(f"{label}: the file name {filename!r} must be {PLAIN_RELATIVE}")
    relative = _relative(main, source)
    folder = Path(tempfile.mkdtemp(prefix="kernelport-", dir=scratch))
    try:
        copied = _copy_all(_own_files(main, source, model, label), folder, label)
        if main.suffix == ".onnx":
            copied += _copy_all(_external_files(folder / relative, main, relative, label), folder, label)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Snapshot(ModelArtifact(model.name, version, model.model_dir, folder / relative, copied), folder)


def _relative(main: Path, source: Path) -> Path:
    return Path(main.name) if main == source else main.relative_to(source)


def _own_files(main: Path, source: Path, model: RepositoryModel, label: str) -> dict[Path, Path]:
    """Relative path in the copy to the real file: an ONNX file by itself, anything else with its whole folder."""
    relative = _relative(main, source)
    real_main = _inside(main, model.bounds, label)
    if real_main.is_dir():
        return _tree(main, relative, model, label)
    _require_plain(real_main, main, label)
    if main.suffix == ".onnx" or main == source:
        return {relative: real_main}
    return _tree(source, Path(), model, label)


def _external_files(copy: Path, main: Path, relative: Path, label: str) -> dict[Path, Path]:
    """The files an ONNX model keeps weights in, found in its copy because nobody can truncate that one."""
    try:
        locations = sorted({tensor.location for tensor in read_graph_facts(copy).external})
    except LoadError as error:
        raise LoadError(f"{label}: {error}") from error
    found = (_external(location, main, label) for location in locations)
    return {relative.parent / beside: real for beside, real in found}


def _external(location: str, main: Path, label: str) -> tuple[Path, Path]:
    """An external data file: a plain file under the folder of the model file, also after following links."""
    text = f"{label}: external data {location!r} of {main.name}"
    if not is_plain_relative(location):
        raise LoadError(f"{text} must be {PLAIN_RELATIVE}")
    path = main.parent / location
    # A link of the folder itself (1 -> ..data/1) is the owner's layout; what counts is where it leads from there.
    homes = (main.parent.resolve(), main.resolve().parent)
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise LoadError(f"{text} is missing") from error
    if not any(real.is_relative_to(home) for home in homes):
        raise LoadError(f"{text} leads outside the model's folder")
    _require_plain(real, path, label)
    return Path(location), real


def _tree(top: Path, prefix: Path, model: RepositoryModel, label: str) -> dict[Path, Path]:
    """Every plain file under `top`; version folders and hidden entries of a flat model are not its files."""
    files: dict[Path, Path] = {}
    todo = [(top, prefix)]
    seen: set[Path] = set()
    while todo:
        folder, relative = todo.pop()
        real_folder = _inside(folder, model.bounds, label)
        if real_folder in seen:
            raise LoadError(f"{label}: {folder} is reached twice by links")
        seen.add(real_folder)
        for entry in sorted(folder.iterdir()):
            if is_ignored(entry.name) or (folder == model.model_dir and is_version(entry.name)):
                continue
            real = _inside(entry, model.bounds, label)
            if real.is_dir():
                todo.append((entry, relative / entry.name))
            else:
                _require_plain(real, entry, label)
                files[relative / entry.name] = real
    return files


def _inside(path: Path, bounds: tuple[Path, ...], label: str) -> Path:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise LoadError(f"{label}: {path.name} is missing in {path.parent}") from error
    if bounds and not any(real.is_relative_to(bound) for bound in bounds):
        raise LoadError(f"{label}: {path} is a link that leads outside the repository")
    return real


def _require_plain(real: Path, path: Path, label: str) -> None:
    if not stat.S_ISREG(real.stat().st_mode):
        raise LoadError(f"{label}: {path} is not a plain file")


def _copy_all(files: Mapping[Path, Path], folder: Path, label: str) -> tuple[Path, ...]:
    _require_space(files.values(), folder, label)
    return tuple(_copy(real, folder / relative, label) for relative, real in files.items())


def _require_space(files: Iterable[Path], folder: Path, label: str) -> None:
    needed = sum(path.stat().st_size for path in files)
    free = shutil.disk_usage(folder).free
    if needed + _SPARE_BYTES > free:
        raise LoadError(
            f"{label}: its private copy needs {needed} bytes, {folder.parent} has {free} free; "
            "set TMPDIR to a larger place"
        )


def _copy(source: Path, target: Path, label: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(source, flags), "rb") as reader, open(target, "xb") as writer:
            before = os.fstat(reader.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise LoadError(f"{label}: {source} is not a plain file")
            copied = _copy_bytes(reader.fileno(), writer.fileno(), before.st_size)
            after = os.fstat(reader.fileno())
        now = os.stat(source)
    except OSError as error:
        raise LoadError(f"{label}: {source} cannot be copied: {error.strerror}") from error
    if copied != before.st_size or not (_state(before) == _state(after) == _state(now)):
        raise LoadError(f"{label}: {source} is still being written; load it again when it is complete")
    target.chmod(0o400)
    return target


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _copy_bytes(reader: int, writer: int, size: int) -> int:
    """Copy up to `size` bytes, sharing blocks if the file system can; returns how many there were."""
    copied = 0
    while copied < size:
        try:
            moved = os.copy_file_range(reader, writer, min(_CHUNK, size - copied))
        except OSError as error:
            if error.errno not in _NO_REFLINK or copied:
                raise
            return _copy_through_memory(reader, writer)
        if moved == 0:
            break
        copied += moved
    return copied


def _copy_through_memory(reader: int, writer: int) -> int:
    copied = 0
    while block := os.read(reader, 1024 * 1024):
        view = memoryview(block)
        while view:
            view = view[os.write(writer, view) :]
        copied += len(block)
    return copied
