"""Model files that came with a load request, in a private folder. Runs on: event loop, loader thread."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from concurrent.futures import Executor
from pathlib import Path

from ..config.model import ModelConfig
from ..core.errors import InvalidRequest, LoadError, PayloadTooLarge
from ..repository.layout import bad_name, is_version
from ..repository.model import RepositoryModel
from ..repository.repository import ModelRepository, with_config

_MAX_FILES = 256
_PART = re.compile(r"[A-Za-z0-9_+=@,()\[\] -][A-Za-z0-9_.+=@,()\[\] -]{0,199}", re.ASCII)


class BroughtFiles:
    """Writes such files under fresh temporary folders; a model's newer folder replaces its older one.

    File names are "<version>/<path>" of plain ASCII parts, so none of them can leave its folder.
    """

    def __init__(self, executor: Executor, max_bytes: int) -> None:
        self._executor = executor
        self._max_bytes = max_bytes
        self._root = Path(tempfile.mkdtemp(prefix="kernelport-brought-"))
        self._folders: dict[str, list[Path]] = {}

    async def write(self, name: str, config: ModelConfig, files: dict[str, bytes]) -> RepositoryModel:
        """Write the files and describe them as a repository model; raises InvalidRequest for a bad name."""
        reason = bad_name(name)
        if reason or name in (".", ".."):
            raise InvalidRequest(f"model name {name!r}: {reason or 'not usable'}")
        for path in files:
            check_path(name, path)
        if len(files) > _MAX_FILES:
            raise PayloadTooLarge(f"load of model '{name}': {len(files)} files, at most {_MAX_FILES} are taken")
        total = sum(map(len, files.values()))
        if total > self._max_bytes:
            raise PayloadTooLarge(
                f"load of model '{name}': {total} bytes of files, at most {self._max_bytes} are taken"
            )
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self._executor, self._write, name, files)
        self._folders.setdefault(name, []).append(model.model_dir.parent)
        return with_config(model, config)

    async def keep(self, name: str, model: RepositoryModel | None) -> None:
        """Remove what was written for the name, except the files of `model`."""
        kept = None if model is None else model.model_dir.parent
        folders = self._folders.pop(name, [])
        if kept in folders:
            self._folders[name] = [kept]
        gone = [folder for folder in folders if folder != kept]
        loop = asyncio.get_running_loop()
        for folder in gone:
            await loop.run_in_executor(self._executor, _remove, folder)

    def close(self) -> None:
        """Remove everything."""
        _remove(self._root)

    def _write(self, name: str, files: dict[str, bytes]) -> RepositoryModel:
        folder = Path(tempfile.mkdtemp(dir=self._root))
        try:
            return _write_into(folder, name, files)
        except BaseException:
            _remove(folder)
            raise


def _write_into(folder: Path, name: str, files: dict[str, bytes]) -> RepositoryModel:
    for path, content in files.items():
        target = folder / name / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise InvalidRequest(f"load of model '{name}': {path!r} is a file and a folder at once") from error
        except OSError as error:
            raise LoadError(f"load of model '{name}': {path!r} cannot be written: {error.strerror}") from error
    found = ModelRepository([folder]).scan().get(name)
    if found is None:
        raise InvalidRequest(f"load of model '{name}': the files hold no version folder with a model")
    return found


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def check_path(name: str, path: str) -> None:
    """Refuse anything but "<version>/<part>[/<part>...]" with parts of plain characters."""
    version, _, rest = path.partition("/")
    if is_version(version) and rest and all(_PART.fullmatch(part) for part in rest.split("/")):
        return
    raise InvalidRequest(
        f"load of model '{name}': file name {path[:100]!r} is not of the form <version>/<file> with plain ASCII names"
    )
