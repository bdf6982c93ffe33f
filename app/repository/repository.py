"""`ModelRepository`: which models exist on disk, loaded or not. Runs on: loader thread."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ..config.load import MODEL_PBTXT, MODEL_YAML, load_model_config
from ..config.model import ModelConfig
from ..config.support import review
from ..core.errors import ConfigError
from .fingerprint import fingerprint
from .layout import (
    FLAT_VERSION,
    bad_name,
    find_versions,
    flat_model_name,
    is_ignored,
    is_model_entry,
    is_version,
    name_for_path,
)
from .model import RepositoryModel


@dataclass(slots=True, frozen=True)
class _Candidate:
    """Something that is to be a model: a folder, or a model file (or SavedModel folder) by itself."""

    name: str
    path: Path
    is_bare: bool
    root: Path
    is_renamed: bool = False  # its name was given on the command line


class ModelRepository:
    """Models in several repositories (folders), and single models given by their path.

    `scan` never fails for one broken model; it raises ConfigError only when a repository itself cannot be read,
    so that a lost mount is not mistaken for a repository whose models were all removed.
    """

    def __init__(self, paths: Iterable[Path], model_path: Path | None = None, model_name: str = "") -> None:
        self._roots: list[Path] = []
        self._singles: list[_Candidate] = []
        self._previous: dict[str, RepositoryModel] = {}
        self._warned: set[str] = set()
        self.warnings: tuple[str, ...] = ()  # what the last scan saw for the first time
        for path in paths:
            if path.is_file() or path.suffix == ".savedmodel":
                self._singles.append(_single(path, ""))
            else:
                _refuse_no_repository(path)
                self._roots.append(path.absolute())
        if model_path is not None:
            self._singles.append(_single(model_path, model_name))

    def scan(self) -> dict[str, RepositoryModel]:
        """Every model by name, also broken ones, sorted by name."""
        warnings: list[str] = []
        by_name: dict[str, list[_Candidate]] = {}
        for candidate in [*self._singles, *self._in_roots(warnings)]:
            by_name.setdefault(candidate.name, []).append(candidate)
        models = {name: self._examine(name, by_name[name]) for name in sorted(by_name)}
        self._previous = models
        warnings += [f"model {name!r}: {one}" for name, model in models.items() for one in model.warnings]
        self.warnings = tuple(one for one in warnings if one not in self._warned)
        self._warned = set(warnings)
        return dict(models)

    def _in_roots(self, warnings: list[str]) -> Iterable[_Candidate]:
        for root in self._roots:
            for name in _names(root):
                path = root / name
                candidate = _candidate(root, path)
                if candidate is None:
                    continue
                reason = bad_name(candidate.name)
                if reason:
                    warnings.append(f"{str(path)!a} is ignored: not usable as a model name: {reason}")
                elif not candidate.is_bare and _is_unrelated(path):
                    warnings.append(f"{path} is ignored: no configuration, no version folder and no model file in it")
                else:
                    yield candidate

    def _examine(self, name: str, candidates: list[_Candidate]) -> RepositoryModel:
        first = candidates[0]
        if len(candidates) > 1:
            places = ", ".join(str(one.path) for one in candidates)
            prints = fingerprint([one.path for one in candidates], (first.root,))
            error = f"model {name!r} exists more than once: {places}; keep one of them"
            return RepositoryModel(name, first.path, {}, None, error, prints)
        try:
            return _bare_model(first) if first.is_bare else self._folder_model(first)
        except (ConfigError, OSError) as error:  # vanished or unreadable since its repository was listed
            text = str(error) if isinstance(error, ConfigError) else f"{first.path}: cannot be read: {error.strerror}"
            return RepositoryModel(name, first.path, {}, None, text, text)

    def _folder_model(self, candidate: _Candidate) -> RepositoryModel:
        model_dir = candidate.path
        bounds = (candidate.root.resolve(), model_dir.resolve())
        prints = fingerprint([model_dir], bounds)
        previous = self._previous.get(candidate.name)
        if previous is not None and previous.fingerprint == prints and previous.model_dir == model_dir:
            return previous
        names = _names(model_dir)
        found = find_versions(name for name in names if (model_dir / name).is_dir())
        warnings = list(found.warnings)
        versions = {name: model_dir / name for name in found.names}
        config, error = _read_config(candidate, warnings)
        has_flat_model = any(map(is_model_entry, names)) or (
            config is not None and config.default_model_filename in names
        )
        if has_flat_model and not versions:
            versions = {FLAT_VERSION: model_dir}
        elif has_flat_model:
            warnings.append("the model file beside the version folders is ignored")
        version_prints = {name: fingerprint([path], bounds) for name, path in versions.items()}
        others = [model_dir / name for name in names if not is_version(name) and not is_model_entry(name)]
        return RepositoryModel(
            candidate.name,
            model_dir,
            versions,
            config,
            error,
            prints,
            version_prints,
            fingerprint(others, bounds),
            tuple(warnings),
            bounds,
        )


def _bare_model(candidate: _Candidate) -> RepositoryModel:
    path = candidate.path
    folder = path.parent
    bounds = (folder.resolve(), path.resolve().parent)
    beside = [folder / name for name in _names(folder) if name.startswith(path.name) and not is_ignored(name)]
    prints = fingerprint(beside, bounds)
    versions = {FLAT_VERSION: path}
    return RepositoryModel(
        candidate.name, folder, versions, ModelConfig(), "", prints, {FLAT_VERSION: prints}, "", (), bounds
    )


def _read_config(candidate: _Candidate, warnings: list[str]) -> tuple[ModelConfig | None, str]:
    try:
        config = load_model_config(candidate.path)
    except ConfigError as error:
        return None, str(error)
    if config.name and config.name != candidate.name and not candidate.is_renamed:
        return None, (
            f"{candidate.path}: the configuration says name {config.name!r}, but the folder is {candidate.name!r}; "
            "make them equal or remove the name"
        )
    warnings += review(config).warnings
    return config, ""


def _candidate(root: Path, path: Path) -> _Candidate | None:
    flat_name = flat_model_name(path.name)
    is_folder = path.is_dir()
    if flat_name is not None and is_folder == (path.suffix == ".savedmodel"):
        return _Candidate(name_for_path(path), path, True, root)
    return _Candidate(path.name, path, False, root) if is_folder else None


def _single(path: Path, model_name: str) -> _Candidate:
    path = path.absolute()
    if not path.exists():
        raise ConfigError(f"{path}: no such model file or folder")
    name = model_name or name_for_path(path)
    reason = bad_name(name)
    if reason:
        raise ConfigError(f"{name!a} cannot be a model name: {reason}; give another one with --model-name")
    is_bare = not path.is_dir() or path.suffix == ".savedmodel"
    if is_bare and flat_model_name(path.name) is None:
        raise ConfigError(f"{path}: not a model file by its suffix (for example .onnx)")
    return _Candidate(name, path, is_bare, path.parent, bool(model_name))


def _refuse_no_repository(path: Path) -> None:
    if not path.exists():
        raise ConfigError(f"{path}: no such model repository")
    if not path.is_dir():
        raise ConfigError(f"{path}: neither a folder nor a model file")
    names = _names(path)
    if MODEL_YAML in names or MODEL_PBTXT in names or any(is_version(one) and _has_model(path / one) for one in names):
        raise ConfigError(f"{path}: a model's folder, not a repository; serve it with --model-path {path}")


def _has_model(folder: Path) -> bool:
    return folder.is_dir() and any(map(is_model_entry, _names(folder)))


def _is_unrelated(folder: Path) -> bool:
    """True for a folder that nothing marks as a model, for example one with data sets."""
    try:
        names = _names(folder)
    except ConfigError:
        return False
    if any(name in (MODEL_YAML, MODEL_PBTXT, "model.yml") or is_model_entry(name) for name in names):
        return False
    return not find_versions(name for name in names if (folder / name).is_dir()).names


def _names(folder: Path) -> list[str]:
    """Entries of a folder that are not ignored, sorted; raises ConfigError when it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not is_ignored(entry.name))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}") from error


def with_config(model: RepositoryModel, config: ModelConfig) -> RepositoryModel:
    """The same files under another configuration, as a load request may bring one."""
    return replace(model, config=config, config_error="", warnings=review(config).warnings)
