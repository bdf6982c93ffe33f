"""Errors as HTTP: the one table of statuses, and the one body format. Runs on: anywhere (pure)."""

from __future__ import annotations

import logging

import orjson

from ..core.errors import ErrorCode, KernelPortError

_log = logging.getLogger(__name__)

STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.LOAD_FAILED: 400,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.REQUEST_TIMEOUT: 408,
    ErrorCode.FAILED_PRECONDITION: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.CANCELLED: 499,
    ErrorCode.INTERNAL: 500,
    ErrorCode.UNIMPLEMENTED: 501,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.DEADLINE_EXCEEDED: 504,
}


def status_of(error: KernelPortError) -> int:
    """The HTTP status for an error's code."""
    return STATUS[error.code]


def error_text(text: str) -> bytes:
    """The body of a failure: `{"error": text}`; lone surrogates that a client smuggled in become "?"."""
    return orjson.dumps({"error": text.encode("utf-8", "replace").decode()})


def error_body(error: KernelPortError) -> bytes:
    """The body for an error."""
    return error_text(str(error))


def public_error(error: BaseException, doing: str) -> KernelPortError:
    """The error itself if it was raised on purpose; else "internal error", with the traceback in the log."""
    if isinstance(error, KernelPortError):
        return error
    _log.error("unexpected failure %s", doing, exc_info=error)
    return KernelPortError("internal error")
