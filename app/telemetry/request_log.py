"""Log lines about single requests: slow ones as warnings, all of them at debug. Runs on: event loop."""

from __future__ import annotations

import logging

from ..core.request import Call

SLOW_LOGGER = "kernelport.slow"
REQUEST_LOGGER = "kernelport.request"


def step_ms(call: Call, encoded_ns: int) -> dict[str, float]:
    """Milliseconds of each step a call went through, in order; steps it never reached are absent.

    decode: receipt to queue; queue: until a lane took it; merge; compute; split: outputs cut into answers;
    encode: until the reply was ready, the way back to the event loop included.
    """
    stamps: list[tuple[str, int]] = []
    batch = call.batch
    if call.enqueued_ns:
        stamps.append(("decode_ms", call.enqueued_ns))
    if batch is not None:
        stamps.append(("queue_ms", batch.taken_ns))
        stamps.append(("merge_ms", batch.compute_start_ns))
        stamps.append(("compute_ms", batch.compute_end_ns))
        stamps.append(("split_ms", batch.done_ns))
        stamps.append(("encode_ms", encoded_ns))
    steps: dict[str, float] = {}
    before_ns = call.received_ns
    for name, stamp_ns in stamps:
        steps[name] = round((stamp_ns - before_ns) / 1e6, 3)
        before_ns = stamp_ns
    return steps


class RequestLog:
    """Writes at most one line per finished request. Build it through `request_log`, which answers None when off."""

    __slots__ = ("_is_verbose", "_requests", "_slow", "_slow_ns")

    def __init__(self, slow_request_ms: float, is_verbose: bool) -> None:
        self._slow_ns = int(slow_request_ms * 1e6) if slow_request_ms > 0 else 0
        self._is_verbose = is_verbose
        self._slow = logging.getLogger(SLOW_LOGGER)
        self._requests = logging.getLogger(REQUEST_LOGGER)

    def record(self, call: Call, model: str, version: str, request_id: str, encoded_ns: int) -> None:
        """Log `call`, whose reply was ready at `encoded_ns`, if it was slow or everything is logged."""
        total_ns = encoded_ns - call.received_ns
        is_slow = self._slow_ns and total_ns >= self._slow_ns
        if not is_slow and not self._is_verbose:
            return
        fields: dict[str, object] = {
            "request_id": request_id,
            "model": model,
            "version": version,
            "outcome": "success" if call.error is None else call.error.outcome,
            "total_ms": round(total_ns / 1e6, 3),
            **step_ms(call, encoded_ns),
        }
        if call.batch is not None:
            fields["batch_rows"] = call.batch.rows
            fields["batch_requests"] = call.batch.requests
            fields["batch_reason"] = call.batch.reason
        if is_slow:
            self._slow.warning("slow request", extra=fields)
        else:
            self._requests.debug("request", extra=fields)


def request_log(slow_request_ms: float) -> RequestLog | None:
    """The log, or None when neither slow requests nor debug lines are wanted; ask after logging is configured."""
    is_verbose = logging.getLogger(REQUEST_LOGGER).isEnabledFor(logging.DEBUG)
    if slow_request_ms <= 0 and not is_verbose:
        return None
    return RequestLog(slow_request_ms, is_verbose)
