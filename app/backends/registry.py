"""Which backends exist, which one a model wants, and how to get a missing framework. Runs on: loader thread."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from ..core.errors import BackendMissing, LoadError
from .base import BackendModel

ENTRY_POINT_GROUP = "kernelport.backends"


@dataclass(slots=True, frozen=True)
class BackendInfo:
    """One backend: where its code is, which file it serves and what must be installed.

    `module` is relative to this package and exports `BACKEND`; it is imported on first use only.
    `framework` is the import name whose absence means "not installed", `extras` the pip extras that bring it.
    """

    name: str
    module: str
    default_filename: str
    platform: str
    framework: str = ""
    extras: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


BACKENDS: dict[str, BackendInfo] = {
    one.name: one
    for one in (
        BackendInfo(
            name="onnxruntime",
            module=".onnxruntime",
            default_filename="model.onnx",
            platform="onnxruntime_onnx",
            framework="onnxruntime",
            extras=("cpu", "gpu"),
            aliases=("onnx", "onnxruntime_onnx"),
        ),
        BackendInfo(name="fake", module=".fake", default_filename="model.fake", platform="fake"),
    )
}

# Files and names of frameworks this release does not serve yet; a known name deserves a better answer than "unknown".
_LATER: dict[str, tuple[str, ...]] = {
    "pytorch": ("torch", "pytorch_libtorch", "libtorch"),
    "tensorflow": ("tensorflow_savedmodel", "tensorflow_graphdef"),
    "tensorrt": ("tensorrt_plan",),
    "python": (),
    "helion": (),
}
_LATER_FILES: dict[str, str] = {
    "model.pt": "pytorch",
    "model.pt2": "pytorch",
    "model.savedmodel": "tensorflow",
    "model.graphdef": "tensorflow",
    "model.plan": "tensorrt",
    "model.py": "python",
}
_LATER_NAMES = {alias: name for name, aliases in _LATER.items() for alias in (name, *aliases)}
_ALIASES = {alias: info.name for info in BACKENDS.values() for alias in (info.name, *info.aliases)}


def backend_names() -> list[str]:
    """Every backend that can be named in a model's configuration, outside packages included."""
    return sorted({*BACKENDS, *(point.name for point in _entry_points())})


def canonical_name(name: str) -> str:
    """The backend's own name for a Triton backend or platform name ("onnxruntime_onnx" -> "onnxruntime").

    Raises LoadError for a name nobody knows, with the known ones, and for one of a later release.
    """
    found = _ALIASES.get(name)
    if found is not None:
        return found
    if name in _LATER_NAMES:
        raise LoadError(
            f"backend {name!r} ({_LATER_NAMES[name]}) is not part of this release; it serves {_known_backends()}"
        )
    if any(point.name == name for point in _entry_points()):
        return name
    close = get_close_matches(name, backend_names(), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise LoadError(f"backend {name!r} is not known; it can be one of {_known_backends()}{hint}")


def backend_info(name: str) -> BackendInfo:
    """The description of a backend under any of its names; an outside package's has only name and module."""
    name = canonical_name(name)
    return BACKENDS.get(name) or BackendInfo(name=name, module="", default_filename="", platform=name)


def backend_class(name: str) -> type[BackendModel]:
    """The class that loads models for that backend, importing its framework now.

    Raises BackendMissing with the pip line when the framework is not installed.
    """
    name = canonical_name(name)
    info = BACKENDS.get(name)
    if info is None:
        return _outside_class(name)
    if info.framework and importlib.util.find_spec(info.framework) is None:
        raise BackendMissing(f"backend {name!r} needs the package {info.framework}; {install_line(info)}")
    try:
        module = importlib.import_module(info.module, __package__)
    except ImportError as error:
        raise BackendMissing(
            f"backend {name!r}: {info.framework or name} is installed but cannot be imported ({error}); "
            f"{install_line(info)}"
        ) from error
    return _checked_class(name, module.BACKEND)


def install_line(info: BackendInfo) -> str:
    """`run: pip install 'kernelport[cpu]' (or ...)` for a backend whose framework is missing."""
    lines = [f"pip install 'kernelport[{extra}]'" for extra in info.extras] or [f"pip install {info.framework}"]
    return "run: " + " (or, for NVIDIA GPUs: ".join(lines) + ")" * (len(lines) - 1)


def detect(files: Iterable[str]) -> str | None:
    """The backend for a version folder with these entries, by file name; None when none of them is a model.

    Exact default names win over suffixes, so `model.onnx` beside `tokenizer.onnx` is no question.
    Raises LoadError when the model there belongs to a later release.
    """
    names = list(files)
    for info in BACKENDS.values():
        if info.default_filename in names:
            return info.name
    for name in names:
        if name in _LATER_FILES:
            later = _LATER_FILES[name]
            raise LoadError(f"{name} belongs to the {later} backend, which is not part of this release")
    if any(name.endswith(".onnx") for name in names):
        return "onnxruntime"
    return None


def _known_backends() -> str:
    return ", ".join(name for name in backend_names() if name != "fake")


def _entry_points() -> Sequence[EntryPoint]:
    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _outside_class(name: str) -> type[BackendModel]:
    point = next(point for point in _entry_points() if point.name == name)
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise BackendMissing(f"backend {name!r} ({point.value}) cannot be imported: {error}") from error
    return _checked_class(name, loaded)


def _checked_class(name: str, loaded: object) -> type[BackendModel]:
    if not (isinstance(loaded, type) and issubclass(loaded, BackendModel)):
        raise LoadError(f"backend {name!r} does not export a BackendModel class but {loaded!r}")
    return loaded
