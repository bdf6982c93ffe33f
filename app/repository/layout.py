"""How a repository's folders are read: names to models, versions, files. Runs on: anywhere (pure)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

_VERSION = re.compile(r"[1-9][0-9]*", re.ASCII)
_MAX_VERSION = 2**63 - 1
_LOOKS_NUMERIC = re.compile(r"[\s+-]*\d[\d_.\s]*", re.UNICODE)
_IGNORED = frozenset({"lost+found", "__pycache__", "__MACOSX", "System Volume Information"})

# What a model file is called in Triton's layout, and whose it is; the registry of backends says which are served.
MODEL_FILES: dict[str, str] = {
    "model.onnx": "onnxruntime",
    "model.pt": "pytorch",
    "model.pt2": "pytorch",
    "model.savedmodel": "tensorflow",
    "model.graphdef": "tensorflow",
    "model.plan": "tensorrt",
    "model.py": "python",
}
# Suffixes by which a bare file beside the model folders is a model of its own.
MODEL_SUFFIXES: dict[str, str] = {
    ".onnx": "onnxruntime",
    ".pt": "pytorch",
    ".pt2": "pytorch",
    ".savedmodel": "tensorflow",
    ".plan": "tensorrt",
}
FLAT_VERSION = "1"


@dataclass(slots=True, frozen=True)
class Versions:
    """The version folders among a model folder's entries, and a warning per name that only looks like one."""

    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def is_ignored(name: str) -> bool:
    """Hidden entries (`.ipynb_checkpoints`, `..data`) and what file systems and tools leave behind."""
    return name.startswith(".") or name.endswith("~") or name in _IGNORED


def is_version(name: str) -> bool:
    """True for a version number as a folder is named: ASCII digits, no sign, no leading zero, within 63 bits."""
    return _VERSION.fullmatch(name) is not None and len(name) < 20 and int(name) <= _MAX_VERSION


def find_versions(folders: Iterable[str]) -> Versions:
    """The version folders, ascending; names like `01`, `-1`, `1.5` or `1_0` are left out with a warning."""
    names, warnings = [], []
    for name in sorted(folders):
        if is_ignored(name):
            continue
        if is_version(name):
            names.append(name)
        elif _LOOKS_NUMERIC.fullmatch(name):
            warnings.append(f"folder {name!r} is ignored: a version is a positive whole number without leading zeros")
    return Versions(tuple(sorted(names, key=int)), tuple(warnings))


def bad_name(name: str) -> str:
    """Why `name` cannot be a model's name, or an empty text."""
    if not name or name.strip() != name:
        return "empty, or with spaces at its ends"
    if len(name.encode("utf-8", "surrogatepass")) > 255:
        return "longer than 255 bytes"
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            return f"contains the character {character!a}"
        if character in "/\\":
            return "contains a slash"
    return ""


def flat_model_name(file_name: str) -> str | None:
    """`resnet` for `resnet.onnx`, None if the file is no model by its suffix."""
    path = PurePath(file_name)
    return path.stem if path.suffix in MODEL_SUFFIXES and path.stem else None


def pick_model_file(names: Iterable[str], default: str) -> str | None:
    """The model among a version folder's entries: the backend's default name, else the only one with its suffix."""
    entries = [name for name in names if not is_ignored(name)]
    if default in entries:
        return default
    suffix = PurePath(default).suffix
    same = [name for name in entries if suffix and name.endswith(suffix)]
    return same[0] if len(same) == 1 else None


def is_model_entry(name: str) -> bool:
    """True if an entry of a folder makes that folder a model version."""
    return name in MODEL_FILES or PurePath(name).suffix in MODEL_SUFFIXES


def name_for_path(path: PurePath) -> str:
    """Name of the model at a path given by itself: the stem, or for `model.*` the folder's (its parent's for `1/`)."""
    stem = path.stem if path.suffix in MODEL_SUFFIXES else path.name
    if stem != "model":
        return stem
    folder = path.parent
    return folder.parent.name if is_version(folder.name) and folder.parent.name else folder.name or stem
