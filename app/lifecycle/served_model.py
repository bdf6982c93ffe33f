"""One READY model version: the Servable behind a name. Runs on: event loop."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Hashable

from ..batcher.dispatcher import Dispatcher
from ..batcher.merge import match_key, pad_to_bucket
from ..batcher.oversized import Oversized
from ..batcher.queue import Entry, ModelQueue
from ..batcher.target import Copy, Target
from ..core.model import ModelSpec
from ..core.request import Call, InferenceRequest
from ..core.servable import Admitted, Form
from ..telemetry.stats import LATENCY_BOUNDS_NS, ModelStats
from .loaded import LoadedVersion

_MAX_FORMS = 256


class ServedModel:
    """Puts requests for one version into the Dispatcher, and frees its copies when it has been retired.

    `pinned` is the same version for clients that named it: their requests never move to a successor.
    """

    def __init__(self, loaded: LoadedVersion, dispatcher: Dispatcher, queue: ModelQueue, stats: ModelStats) -> None:
        policy = loaded.batch_policy
        copies: dict[str, list[Copy]] = {device: list(some) for device, some in loaded.permits.items()}
        self.loaded = loaded
        self.target = Target(loaded.spec, policy, loaded.queue_policy, queue, stats, copies)
        self.spec: ModelSpec = loaded.spec
        self.stats = stats
        self.json_nonfinite = loaded.json_nonfinite
        self.splits_oversized = policy.split_oversized
        self._dispatcher = dispatcher
        self.forms: dict[Form, Admitted] = {}
        self._pads = bool(policy.shape_buckets)
        # Padding changes a request's shape, and an unbatched input is compared by value: no form says that.
        self._has_plain_keys = not policy.merges or (
            not self._pads and all(one.batch_axis is not None for one in self.spec.inputs)
        )
        self.pinned = PinnedModel(self)

    def submit(
        self, request: InferenceRequest, rows: int, received_ns: int, key: Hashable = None, is_pinned: bool = False
    ) -> Call:
        """See `Servable`."""
        target = self.target
        target.stats.received += 1
        if self.splits_oversized and rows > target.batch_policy.max_rows:
            whole = Oversized(request, rows, received_ns, target)
            whole.submit(self._dispatcher, is_pinned)
            return whole
        entry = Entry(request, rows, received_ns, target, is_pinned)
        if self._pads:
            entry.sizes = pad_to_bucket(request, target.batch_policy)
        self._dispatcher.submit(entry, key)
        return entry

    def remember(self, form: Form, request: InferenceRequest, rows: int) -> None:
        """See `Servable`."""
        if self._has_plain_keys:
            if len(self.forms) >= _MAX_FORMS:
                self.forms.clear()
            merges = self.target.batch_policy.merges
            self.forms[form] = (rows, match_key(request, self.spec) if merges else None)

    def reject(self, error_outcome: str, elapsed_ns: int) -> None:
        """See `Servable`."""
        self.stats.received += 1
        self.stats.failed(error_outcome, elapsed_ns)

    def encoded(self, elapsed_ns: int) -> None:
        """See `Servable`."""
        encode_time = self.stats.encode_time
        encode_time.counts[bisect_left(LATENCY_BOUNDS_NS, elapsed_ns)] += 1
        encode_time.total += elapsed_ns

    def retire(self, successor: ServedModel | None = None) -> asyncio.Future[None]:
        """Take no more requests; done when the last accepted one has its answer and no lane runs a copy.

        What waits for any version goes to the successor if that takes the same inputs.
        """
        drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settled() -> None:
            if not drained.done():
                drained.set_result(None)

        self.target.on_drained = settled
        if successor is not None and takes_same_inputs(self.spec, successor.spec):
            self._dispatcher.hand_over(self.target, successor.target)
        self._dispatcher.close(self.target)
        return drained

    def close(self) -> None:
        """Free the loaded copies; only after `retire` is done. Loader thread."""
        self.target.idle_copies.clear()
        self.loaded.close()


class PinnedModel:
    """A ServedModel as seen by clients that asked for this very version."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self.spec = model.spec
        self.json_nonfinite = model.json_nonfinite
        self.splits_oversized = model.splits_oversized
        self.reject = model.reject
        self.encoded = model.encoded
        self.remember = model.remember
        self.forms = model.forms

    def submit(self, request: InferenceRequest, rows: int, received_ns: int, key: Hashable = None) -> Call:
        """See `Servable`."""
        return self._model.submit(request, rows, received_ns, key, is_pinned=True)


def takes_same_inputs(one: ModelSpec, other: ModelSpec) -> bool:
    """True if a request that was admitted for one version fits the other, and is batched alike."""
    return (
        one.inputs == other.inputs
        and one.max_batch_size <= other.max_batch_size
        and bool(one.max_batch_size) == bool(other.max_batch_size)
        and {out.name for out in one.outputs} <= {out.name for out in other.outputs}
    )
