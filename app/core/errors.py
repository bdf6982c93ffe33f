"""The exception tree; every class carries a transport-neutral code. Runs on: anywhere (pure).

KernelPortError                 INTERNAL
├── InvalidRequest              INVALID_ARGUMENT     the client sent something the model cannot take
│   ├── MalformedBody                                not JSON, not the binary layout, wrong member types
│   └── TensorMismatch                               name, datatype, shape or size against the signature
├── UnsupportedEncoding         UNIMPLEMENTED        a Content-Encoding that the server does not know
├── NotFound                    NOT_FOUND
│   └── ModelNotFound
├── PayloadTooLarge             TOO_LARGE            a body, tensor or reply above a limit
├── RequestTimeout              REQUEST_TIMEOUT      the client sent its request too slowly
├── Cancelled                   CANCELLED            the caller has gone
├── Unsupported                 UNIMPLEMENTED
├── Unavailable                 UNAVAILABLE          retry later; carries `retry_after_s`
│   ├── Overloaded
│   │   ├── QueueFull
│   │   └── TooManyInFlight
│   ├── QueueTimeout                                 waited longer than the queue policy allows
│   ├── ModelNotReady                                loading, or no healthy instance
│   ├── ServerStopping
│   └── WrongControlMode                             load and unload in a mode that has none; waiting does not help
├── DeadlineExceeded            DEADLINE_EXCEEDED
├── FailedPrecondition          FAILED_PRECONDITION
│   └── IllegalTransition                            a model state move that the table does not allow
├── ConfigError                 INVALID_ARGUMENT     server or model configuration
├── LoadError                   LOAD_FAILED          a model that cannot be loaded
│   └── BackendMissing                               the framework is not installed; text has the pip line
└── BackendError                INTERNAL             the framework failed while running
    └── BackendInputError       INVALID_ARGUMENT     the framework blames the input values
"""

from __future__ import annotations

from enum import Enum


class ErrorCode(Enum):
    """Transport-neutral error codes; each protocol maps them in one table."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    TOO_LARGE = "TOO_LARGE"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    CANCELLED = "CANCELLED"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    UNAVAILABLE = "UNAVAILABLE"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    LOAD_FAILED = "LOAD_FAILED"
    INTERNAL = "INTERNAL"


class KernelPortError(Exception):
    """Root of everything the server raises on purpose; `str(error)` is safe to show to a client."""

    code = ErrorCode.INTERNAL
    outcome = "internal"
    retry_after_s: int | None = None


class InvalidRequest(KernelPortError):
    """The request can never succeed as it was sent."""

    code = ErrorCode.INVALID_ARGUMENT
    outcome = "invalid"


class MalformedBody(InvalidRequest):
    """The body is not what the protocol describes."""


class TensorMismatch(InvalidRequest):
    """A tensor does not fit the model's signature."""


class UnsupportedEncoding(KernelPortError):
    """A Content-Encoding other than gzip, deflate or identity."""

    code = ErrorCode.UNIMPLEMENTED
    outcome = "invalid"


class NotFound(KernelPortError):
    """No such thing under that name."""

    code = ErrorCode.NOT_FOUND
    outcome = "invalid"


class ModelNotFound(NotFound):
    """No such model or version, or it is failed or unloaded."""


class PayloadTooLarge(KernelPortError):
    """A body, a tensor or a reply is above a configured limit."""

    code = ErrorCode.TOO_LARGE
    outcome = "invalid"


class RequestTimeout(KernelPortError):
    """The client sent its headers or body slower than the receive deadline allows."""

    code = ErrorCode.REQUEST_TIMEOUT
    outcome = "invalid"


class Cancelled(KernelPortError):
    """The caller went away before the answer was ready."""

    code = ErrorCode.CANCELLED
    outcome = "cancelled"


class Unsupported(KernelPortError):
    """A feature this server or model does not have."""

    code = ErrorCode.UNIMPLEMENTED
    outcome = "invalid"


class Unavailable(KernelPortError):
    """Right now the request cannot be taken; the same request may succeed later."""

    code = ErrorCode.UNAVAILABLE
    outcome = "unavailable"
    retry_after_s: int | None = 1


class Overloaded(Unavailable):
    """A limit on waiting work is reached."""

    outcome = "queue_full"


class QueueFull(Overloaded):
    """The model's queue holds as many waiting requests as it may."""


class TooManyInFlight(Overloaded):
    """The whole server holds as many request bytes or connections as it may."""

    outcome = "shed"


class QueueTimeout(Unavailable):
    """The request waited longer than its queue policy allows (Triton: "Request timeout expired")."""

    outcome = "queue_timeout"


class ModelNotReady(Unavailable):
    """The model is loading, or has no healthy instance."""


class ServerStopping(Unavailable):
    """The server has closed its admission and is finishing what it accepted."""


class WrongControlMode(Unavailable):
    """Load and unload outside explicit mode: Triton's 503, but coming back later would not help."""

    retry_after_s = None


class DeadlineExceeded(KernelPortError):
    """The request's absolute deadline has passed."""

    code = ErrorCode.DEADLINE_EXCEEDED
    outcome = "deadline"


class FailedPrecondition(KernelPortError):
    """The server's state does not allow the operation."""

    code = ErrorCode.FAILED_PRECONDITION
    outcome = "invalid"


class IllegalTransition(FailedPrecondition):
    """A model state move that the state table does not allow."""


class ConfigError(KernelPortError):
    """A server or model configuration that cannot be honoured; the text names file, key and cure."""

    code = ErrorCode.INVALID_ARGUMENT
    outcome = "invalid"


class LoadError(KernelPortError):
    """A model could not be loaded; the text is the reason shown in the repository index."""

    code = ErrorCode.LOAD_FAILED
    outcome = "backend"


class BackendMissing(LoadError):
    """The framework of a model is not installed; the text has the `pip install` line."""


class BackendError(KernelPortError):
    """The framework failed while running a batch."""

    code = ErrorCode.INTERNAL
    outcome = "backend"


class BackendInputError(BackendError):
    """The framework positively blames the values of the input."""

    code = ErrorCode.INVALID_ARGUMENT
    outcome = "backend"
