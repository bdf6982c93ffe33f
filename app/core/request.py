"""One inference: the decoded request, the response, and the call that joins them. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import Cancelled, KernelPortError
from .tensor import Tensor

if TYPE_CHECKING:
    from .timing import BatchTiming

ParameterValue = bool | int | float | str


@dataclass(slots=True, frozen=True)
class RequestedOutput:
    """One entry of a request's `outputs`: which, and how it is to be encoded."""

    name: str
    binary: bool = False
    classification: int = 0  # top-k; 0 = not asked for


@dataclass(slots=True)
class InferenceRequest:
    """A decoded request. Every array is well-formed for its datatype; fit to a model is checked at admission.

    `outputs` None means all outputs, each in the form `binary_output` says.
    `timeout_us` and `priority` keep the meaning of Triton's schedule policy extension.
    """

    inputs: dict[str, Tensor]
    outputs: tuple[RequestedOutput, ...] | None = None
    id: str = ""
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    binary_output: bool = False
    priority: int = 0
    timeout_us: int = 0


@dataclass(slots=True)
class InferenceResponse:
    """What a model answered to one request; outputs in the model's order."""

    model: str
    version: str
    outputs: list[Tensor]
    parameters: dict[str, ParameterValue] = field(default_factory=dict)


class Call:
    """One accepted inference on its way: finishes exactly once, with a response or an error.

    Lives on the event loop; the batcher's lanes read only `request` and `is_cancelled`. A done callback runs at
    once when the call finishes, so no loop tick lies between a batch's end and the writing of its replies.
    """

    __slots__ = (
        "_callback",
        "batch",
        "enqueued_ns",
        "error",
        "finished_ns",
        "is_cancelled",
        "is_done",
        "on_cancel",
        "received_ns",
        "request",
        "response",
    )

    def __init__(self, request: InferenceRequest, received_ns: int) -> None:
        self.request = request
        self.received_ns = received_ns
        self.enqueued_ns = 0
        self.finished_ns = 0
        self.response: InferenceResponse | None = None
        self.error: KernelPortError | None = None
        self.is_done = False
        self.is_cancelled = False
        self.batch: BatchTiming | None = None
        self.on_cancel: Callable[[Call], None] | None = None
        self._callback: Callable[[Call], None] | None = None

    def add_done_callback(self, callback: Callable[[Call], None]) -> None:
        """Run `callback(call)` on the event loop once the call is done; at once if it already is."""
        if self.is_done:
            callback(self)
            return
        previous = self._callback
        if previous is None:
            self._callback = callback
        else:
            earlier = previous

            def both(call: Call) -> None:
                earlier(call)
                callback(call)

            self._callback = both

    def finish(self, response: InferenceResponse | None, error: KernelPortError | None) -> bool:
        """Settle the call; False (and nothing happens) if it was settled before."""
        if self.is_done:
            return False
        self.is_done = True
        self.response = response
        self.error = error
        callback = self._callback
        if callback is not None:
            self._callback = None
            callback(self)
        return True

    def cancel(self) -> None:
        """The caller has gone: queued work is dropped, running work is finished and thrown away."""
        if self.is_done:
            return
        self.is_cancelled = True
        hook = self.on_cancel
        if hook is not None:
            hook(self)
        self.finish(None, Cancelled("the client went away before the answer was ready"))


def output_names(outputs: Sequence[RequestedOutput] | None) -> tuple[str, ...] | None:
    """The names a request asks for, or None for all."""
    return None if outputs is None else tuple(one.name for one in outputs)
