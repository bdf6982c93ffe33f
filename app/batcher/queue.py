"""Waiting requests: entries, their buckets, and the queue of one model name. Runs on: anywhere (pure).

Nothing here locks or reads a clock; the Dispatcher calls it under its lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..core.request import Call, InferenceRequest

if TYPE_CHECKING:
    from .target import Result, Target


class Entry(Call):
    """A call that waits, with what the batcher needs to know about it."""

    __slots__ = ("bucket", "expires_ns", "held", "is_late", "is_part", "is_pinned", "rows", "sizes", "target")

    def __init__(
        self, request: InferenceRequest, rows: int, received_ns: int, target: Target, is_pinned: bool = False
    ) -> None:
        super().__init__(request, received_ns)
        self.rows = rows
        self.target = target
        self.is_pinned = is_pinned  # the client named the version, so no other may answer
        self.expires_ns = 0  # 0: no queue timeout
        self.is_part = False  # of an oversized request, which is counted as one
        self.is_late = False  # expired under DELAY: served after the others
        self.bucket: Bucket | None = None  # None once it was taken, cancelled or expired
        self.held: Result | None = None  # finished, but an earlier request is not (preserve_ordering)
        self.sizes: dict[tuple[str, int], int] | None = None  # dimensions before padding to a shape bucket


class ModelQueue:
    """The bound on waiting requests of one model name, shared by its versions."""

    __slots__ = ("name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0


class Bucket:
    """Waiting entries that may share a batch, in order of arrival; expired ones under DELAY wait behind.

    `rows` counts both. `is_ready` while it stands in a ready heap, `must_leave` when it may not wait any longer
    for company (a different shape arrived at a model that preserves order).
    """

    __slots__ = ("due_ns", "entries", "is_ready", "key", "late", "must_leave", "rows")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.entries: deque[Entry] = deque()
        self.late: deque[Entry] = deque()
        self.rows = 0
        self.is_ready = False
        self.must_leave = False
        self.due_ns = 0  # when the timer is armed to look at this bucket again; 0: not armed

    def __len__(self) -> int:
        return len(self.entries) + len(self.late)

    @property
    def head(self) -> Entry:
        """The entry that leaves first; the bucket must not be empty."""
        return self.entries[0] if self.entries else self.late[0]

    def append(self, entry: Entry) -> None:
        """Add an entry at the end."""
        self.entries.append(entry)
        self.rows += entry.rows
        entry.bucket = self

    def remove(self, entry: Entry) -> None:
        """Take a cancelled or expired entry out, wherever it stands."""
        (self.late if entry.is_late else self.entries).remove(entry)
        self.rows -= entry.rows
        entry.bucket = None

    def delay(self, entry: Entry) -> None:
        """Move an expired entry behind all that have not expired."""
        self.entries.remove(entry)
        entry.is_late = True
        self.late.append(entry)

    def pop(self, max_rows: int) -> list[Entry]:
        """Remove and return the entries that fit `max_rows`, in order; at least one."""
        taken: list[Entry] = []
        room = max_rows
        for line in (self.entries, self.late):
            while line and (line[0].rows <= room or not taken):
                entry = line.popleft()
                entry.bucket = None
                taken.append(entry)
                room -= entry.rows
            if line:
                break
        self.rows -= max_rows - room
        if not self.rows:
            self.must_leave = False
        return taken
