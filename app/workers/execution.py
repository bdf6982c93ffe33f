"""Running one batch: merge, execute, split, and what to do when it fails. Runs on: worker thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..batcher.merge import merge, split, wanted_outputs
from ..batcher.queue import Entry
from ..batcher.target import Batch, Result
from ..core.errors import BackendError, KernelPortError
from ..core.request import InferenceResponse
from ..core.timing import BatchTiming

_log = logging.getLogger(__name__)


def run(batch: Batch, now_ns: Callable[[], int]) -> None:
    """Execute a batch and leave one result per entry in `batch.results`.

    When a batch of several entries fails, its members are run one by one, so that the one whose values broke it
    fails alone; its neighbours pay with latency only. Entries whose callers have gone meanwhile are left out.
    """
    try:
        _run_together(batch, batch.entries, batch.timing, now_ns)
        return
    except Exception as error:
        failure = _as_error(batch, error)
    if len(batch.entries) == 1:
        batch.results.append(Result(batch.entries[0], None, failure, batch.timing))
        return
    batch.was_rerun = True
    _log.warning(
        "model '%s' version %s: a batch of %d requests failed and is run one by one: %s",
        batch.target.spec.name, batch.target.spec.version, len(batch.entries), failure,
    )  # fmt: skip
    for entry in batch.entries:
        timing = BatchTiming(now_ns(), entry.rows, 1, batch.timing.reason)
        # What the failed attempt cost is waiting time to this request, not computing.
        if entry.is_cancelled:
            batch.results.append(Result(entry, None, failure, timing))
            continue
        try:
            _run_together(batch, [entry], timing, now_ns)
        except Exception as error:
            batch.results.append(Result(entry, None, _as_error(batch, error), timing))


def _run_together(batch: Batch, entries: Sequence[Entry], timing: BatchTiming, now_ns: Callable[[], int]) -> None:
    target = batch.target
    spec = target.spec
    inputs, total = merge(entries, spec, target.batch_policy, timing.rows)
    wanted = wanted_outputs(entries, spec)
    timing.compute_start_ns = now_ns()
    outputs = batch.copy.execute(inputs, wanted)
    timing.compute_end_ns = now_ns()
    parts = split(entries, outputs, spec, timing.rows, total)
    timing.padded_rows = total - timing.rows
    timing.done_ns = now_ns()
    batch.executions.append(timing)
    for entry, part in zip(entries, parts, strict=True):
        batch.results.append(Result(entry, InferenceResponse(spec.name, spec.version, part), None, timing))


def _as_error(batch: Batch, error: Exception) -> KernelPortError:
    if isinstance(error, KernelPortError):
        return error
    spec = batch.target.spec
    _log.error("model '%s' version %s: the backend raised", spec.name, spec.version, exc_info=error)
    return BackendError(f"model '{spec.name}' version {spec.version}: {type(error).__name__} in its backend")
