"""One loaded model version as the batcher sees it, and the batch a lane takes from it. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

from ..core.errors import KernelPortError
from ..core.model import ModelSpec
from ..core.request import InferenceResponse
from ..core.tensor import Array
from ..core.timing import BatchTiming
from ..telemetry.stats import ModelStats
from .policy import BatchPolicy, QueuePolicy
from .queue import Bucket, Entry, ModelQueue


class Copy(Protocol):
    """One loaded copy of a model; holding it is the permit to run it."""

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        """Run once; raises KernelPortError."""


class Target:
    """Waiting requests, permits and counters of one model version.

    `idle_copies` are the permits: per device, the copies that may run now (a thread-safe copy stands there once per
    instance); `free` is their number. `open_calls` counts accepted requests that have no answer yet, `busy` batches
    on lanes; when both are zero after `is_closed` was set, nothing refers to the copies and `on_drained` is called.
    """

    __slots__ = (
        "batch_policy",
        "buckets",
        "busy",
        "free",
        "idle_copies",
        "is_closed",
        "on_drained",
        "open_calls",
        "order",
        "queue",
        "queue_policy",
        "spec",
        "stats",
        "was_crowded",
    )

    def __init__(
        self,
        spec: ModelSpec,
        batch_policy: BatchPolicy,
        queue_policy: QueuePolicy,
        queue: ModelQueue,
        stats: ModelStats,
        copies: Mapping[str, list[Copy]],
    ) -> None:
        self.spec = spec
        self.batch_policy = batch_policy
        self.queue_policy = queue_policy
        self.queue = queue
        self.stats = stats
        self.buckets: dict[Hashable, Bucket] = {}
        self.idle_copies: dict[str, list[Copy]] = {device: list(some) for device, some in copies.items()}
        self.free = sum(map(len, self.idle_copies.values()))
        self.busy = 0
        self.open_calls = 0
        self.is_closed = False
        self.was_crowded = False  # the last batch held several requests
        self.on_drained: Callable[[], None] | None = None
        self.order: deque[Entry] = deque()  # arrival order, kept only under preserve_ordering

    @property
    def is_drained(self) -> bool:
        """Nothing waits, nothing runs."""
        return not self.open_calls and not self.busy


class Result:
    """What one entry of a batch came to, and the timing of the execution that decided it."""

    __slots__ = ("entry", "error", "response", "timing")

    def __init__(
        self, entry: Entry, response: InferenceResponse | None, error: KernelPortError | None, timing: BatchTiming
    ) -> None:
        self.entry = entry
        self.response = response
        self.error = error
        self.timing = timing


class Batch:
    """Entries that a lane took together and the copy they run on; later their results.

    `executions` are the framework calls that succeeded: one, or one per entry after a failure of all together.
    """

    __slots__ = ("copy", "device", "entries", "executions", "results", "target", "timing", "was_rerun")

    def __init__(self, target: Target, device: str, copy: Copy, entries: list[Entry], timing: BatchTiming) -> None:
        self.target = target
        self.device = device
        self.copy = copy
        self.entries = entries
        self.timing = timing
        self.results: list[Result] = []
        self.executions: list[BatchTiming] = []
        self.was_rerun = False
