"""Has anything changed under a model's folder? Runs on: loader thread.

Every file counts by inode, size, modification time and link target, so that an edit that keeps the time, a rename over
the old file and the swap of a link (as Kubernetes does for ConfigMaps) are all seen.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .layout import is_ignored

MAX_FILES = 50_000
_MAX_DEPTH = 32


def fingerprint(tops: Iterable[Path], bounds: tuple[Path, ...]) -> str:
    """A digest over every file in `tops` (files or folders); linked folders are followed only inside `bounds`."""
    digest = hashlib.blake2b(digest_size=16)
    walk = _Walk(bounds)
    for top in tops:
        walk.add(top, str(top), 0)
    for line in sorted(walk.lines):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


class _Walk:
    def __init__(self, bounds: tuple[Path, ...]) -> None:
        self.lines: list[str] = []
        self._bounds = bounds
        self._entered: set[tuple[int, int]] = set()

    def add(self, path: Path, label: str, depth: int) -> None:
        """Note `path` and, for a folder, all that is in it."""
        try:
            found = path.lstat()
            link = ""
            if stat.S_ISLNK(found.st_mode):
                link = os.readlink(path)
                found = path.stat()
        except OSError as error:
            self.lines.append(f"{label}|gone|{error.errno}")
            return
        if len(self.lines) > MAX_FILES:
            return
        if not stat.S_ISDIR(found.st_mode):
            self.lines.append(
                f"{label}|{stat.S_IFMT(found.st_mode)}|{found.st_dev}|{found.st_ino}|{found.st_size}"
                f"|{found.st_mtime_ns}|{link}"
            )
            return
        self.lines.append(f"{label}|folder|{link}")
        if self._may_enter(path, found, link, depth):
            self._add_folder(path, label, depth)

    def _may_enter(self, path: Path, found: os.stat_result, link: str, depth: int) -> bool:
        identity = (found.st_dev, found.st_ino)
        if depth > _MAX_DEPTH or identity in self._entered:
            return False
        self._entered.add(identity)
        return not link or any(path.resolve().is_relative_to(bound) for bound in self._bounds)

    def _add_folder(self, path: Path, label: str, depth: int) -> None:
        try:
            with os.scandir(path) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            self.lines.append(f"{label}|unreadable|{error.errno}")
            return
        for name in names:
            if not is_ignored(name):
                self.add(path / name, f"{label}/{name}", depth + 1)
