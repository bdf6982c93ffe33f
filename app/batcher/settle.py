"""Ending requests: each exactly once, counted exactly once. Runs on: event loop."""

from __future__ import annotations

import logging

from ..core.errors import KernelPortError
from ..core.request import Call, InferenceResponse
from .queue import Entry
from .target import Batch, Result, Target

_log = logging.getLogger(__name__)


def settle(
    entry: Entry,
    response: InferenceResponse | None,
    error: KernelPortError | None,
    now_ns: int,
    outcome: str = "",
) -> bool:
    """Finish an accepted entry and count it; nothing happens to one that is finished already.

    True if it succeeded: what it shares with its batch (`ModelStats.shared`) is then left to the caller to count.

    The done callback encodes the reply and may turn a response into an error (a reply above the size limit, say), so
    the outcome is counted after it. A cancelled entry is finished by `Call.cancel` itself, here only counted.
    """
    if entry.is_done:
        return False
    succeeded = False
    target = entry.target
    entry.finished_ns = now_ns
    target.open_calls -= 1
    stats = target.stats
    if not outcome:
        error = finish(entry, response, error, target.spec.name)
        outcome = error.outcome if error is not None else ""
    if not entry.is_part:  # of an oversized request the whole is counted
        if outcome:
            stats.failed(outcome, now_ns - entry.received_ns)
        elif entry.batch is not None:
            stats.answered(entry.rows, entry.received_ns, entry.enqueued_ns, entry.batch.taken_ns, now_ns)
            succeeded = True
    if target.is_closed:
        check_drained(target)
    return succeeded


def finish(
    call: Call, response: InferenceResponse | None, error: KernelPortError | None, model: str
) -> KernelPortError | None:
    """Give a call its answer; returns the error that it ended with, which its done callback may have put there."""
    try:
        call.finish(response, error)
    except Exception:
        # A callback's fault must not keep the rest of the batch from its answers.
        _log.exception("model '%s': writing a reply failed", model)
        return KernelPortError("writing the reply failed")
    return call.error


def refuse(entry: Entry, error: KernelPortError, now_ns: int) -> None:
    """Finish and count an entry that was never queued."""
    entry.finished_ns = now_ns
    entry.finish(None, error)
    if not entry.is_part:
        entry.target.stats.failed(error.outcome, now_ns - entry.received_ns)


def deliver(batch: Batch, now_ns: int) -> None:
    """Count a batch's executions and settle its entries, in arrival order where the model asks for it."""
    stats = batch.target.stats
    for timing in batch.executions:
        stats.executed(timing)
    if batch.was_rerun:
        stats.reruns += 1
    if not batch.target.batch_policy.preserve_ordering:
        timing, times = batch.timing, 0
        for result in batch.results:
            if not _settle_result(result, now_ns):
                continue
            if result.timing is timing:
                times += 1
            else:  # it was run again by itself
                stats.shared(result.timing, 1)
        if times:
            stats.shared(timing, times)
        return
    for result in batch.results:
        result.entry.held = result
    release_in_order(batch.target, now_ns)


def release_in_order(target: Target, now_ns: int) -> None:
    """Under preserve_ordering: settle the finished entries before which nothing is open any more."""
    order = target.order
    while order and (order[0].held is not None or order[0].is_done or order[0].is_cancelled):
        entry = order.popleft()
        if entry.held is not None:
            held, entry.held = entry.held, None
            if _settle_result(held, now_ns):
                target.stats.shared(held.timing, 1)


def fail_rest(batch: Batch, error: KernelPortError) -> None:
    """Give every entry without a result the error."""
    have = {id(result.entry) for result in batch.results}
    for entry in batch.entries:
        if id(entry) not in have:
            batch.results.append(Result(entry, None, error, batch.timing))


def check_drained(target: Target) -> None:
    """Tell the owner of a closed target, once, that nothing refers to its copies any more."""
    if target.is_closed and target.is_drained and target.on_drained is not None:
        callback, target.on_drained = target.on_drained, None
        callback()


def _settle_result(result: Result, now_ns: int) -> bool:
    result.entry.batch = result.timing
    return settle(result.entry, result.response, result.error, now_ns)
