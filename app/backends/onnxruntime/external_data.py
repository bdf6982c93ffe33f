"""Refuses weight files outside the model's folder, before the runtime opens anything. Runs on: loader thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath

from ...core.errors import LoadError
from ...protocol.onnx_file import ExternalTensor

MEMORY_LOCATION_MARK = "*/_ORT_MEM_ADDR_/*"  # the runtime's own tag for raw addresses; never legal in a file


def check_external_data(folder: Path, tensors: Iterable[ExternalTensor]) -> tuple[Path, ...]:
    """The weight files of a model, each proved to be a plain file inside `folder` that is long enough.

    Raises LoadError naming the tensor: absolute paths, `..`, links (the files could be swapped for any other),
    devices and pipes (reading one may never end), and ranges past the end of the file.
    """
    checked: dict[str, os.stat_result] = {}
    for tensor in tensors:
        status = checked.get(tensor.location)
        if status is None:
            status = checked[tensor.location] = _plain_file(folder, tensor)
        stop = (tensor.offset or 0) + (tensor.length or 0)
        if stop > status.st_size:
            raise LoadError(
                f"external data of tensor {tensor.name!r} ends at byte {stop}, but {tensor.location} "
                f"has {status.st_size} bytes: the file is cut short or not the one the model was saved with"
            )
    return tuple(folder / location for location in checked)


def _plain_file(folder: Path, tensor: ExternalTensor) -> os.stat_result:
    location = tensor.location
    problem = f"external data of tensor {tensor.name!r} points at {location!r}"
    parts = PurePosixPath(location).parts
    if (
        not parts
        or "\0" in location
        or location.startswith(MEMORY_LOCATION_MARK)
        or PurePosixPath(location).is_absolute()
        or PureWindowsPath(location).is_absolute()
        or ".." in (*parts, *PureWindowsPath(location).parts)
    ):
        raise LoadError(f"{problem}; only a relative path inside the model's version folder is allowed")
    path = folder
    for part in parts:
        path = path / part
        try:
            status = path.lstat()
        except OSError as error:
            raise LoadError(f"{problem}, which cannot be read ({error.strerror})") from error
        if stat.S_ISLNK(status.st_mode):
            raise LoadError(f"{problem}; {part!r} is a symbolic link, which is not allowed there")
    if not stat.S_ISREG(status.st_mode):
        raise LoadError(f"{problem}, which is not a regular file")
    return status
