"""A request of more rows than a batch may have, cut into parts and put together again. Runs on: event loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.errors import BackendError, KernelPortError
from ..core.request import Call, InferenceRequest, InferenceResponse
from ..core.tensor import Tensor
from .dispatcher import Dispatcher
from .merge import pad_to_bucket
from .queue import Entry
from .settle import finish
from .target import Target


class Oversized(Call):
    """The whole: done when all its parts are, failed as soon as one is."""

    __slots__ = ("_open", "_parts", "_rows", "_target")

    def __init__(self, request: InferenceRequest, rows: int, received_ns: int, target: Target) -> None:
        super().__init__(request, received_ns)
        self._rows = rows
        self._target = target
        self._parts: list[Entry] = []
        self._open = 0
        self.on_cancel = self._cancelled

    def submit(self, dispatcher: Dispatcher, is_pinned: bool) -> None:
        """Queue all parts; a part that is refused fails the whole and takes the others back."""
        requests = cut(self.request, self._rows, self._target)
        policy = self._target.batch_policy
        self._open = len(requests)
        for request, rows in requests:
            part = Entry(request, rows, self.received_ns, self._target, is_pinned)
            part.is_part = True
            if policy.shape_buckets:
                part.sizes = pad_to_bucket(request, policy)
            part.add_done_callback(self._part_done)
            self._parts.append(part)
            dispatcher.submit(part)
            self.enqueued_ns = part.enqueued_ns
            if self.is_done:
                return

    def _part_done(self, part: Call) -> None:
        self._open -= 1
        if self.is_done or self.is_cancelled:
            return
        if part.error is not None:
            self._settle(None, part.error, part)
            self._cancel_parts()
        elif not self._open:
            try:
                response = join(self._parts, self._target)
            except KernelPortError as error:
                self._settle(None, error, part)
            else:
                self._settle(response, None, part)

    def _settle(self, response: InferenceResponse | None, error: KernelPortError | None, last: Call) -> None:
        now_ns = self.finished_ns = last.finished_ns
        self.batch = last.batch
        failure = finish(self, response, error, self._target.spec.name)
        stats = self._target.stats
        if failure is not None:
            stats.failed(failure.outcome, now_ns - self.received_ns)
        elif self.batch is not None:
            stats.succeeded(self._rows, self.received_ns, self.enqueued_ns, self.batch, now_ns)

    def _cancelled(self, call: Call) -> None:
        self._cancel_parts()
        self._target.stats.failed("cancelled", max(part.finished_ns for part in self._parts) - self.received_ns)

    def _cancel_parts(self) -> None:
        for part in self._parts:
            part.cancel()


def cut(request: InferenceRequest, rows: int, target: Target) -> list[tuple[InferenceRequest, int]]:
    """The request as pieces of at most `max_rows` rows, with their row counts."""
    limit = target.batch_policy.max_rows
    declared = target.spec.inputs_by_name
    pieces: list[tuple[InferenceRequest, int]] = []
    for start in range(0, rows, limit):
        end = min(start + limit, rows)
        inputs: dict[str, Tensor] = {}
        for name, tensor in request.inputs.items():
            axis = declared[name].batch_axis
            array = tensor.array
            if axis is not None:
                array = array[(slice(None),) * axis + (slice(start, end),)]
            inputs[name] = Tensor(name, tensor.datatype, array)
        pieces.append((replace(request, inputs=inputs), end - start))
    return pieces


def join(parts: list[Entry], target: Target) -> InferenceResponse:
    """One response out of the parts' responses; raises BackendError when their outputs do not fit together."""
    responses = [part.response for part in parts if part.response is not None]
    first = responses[0]
    spec = target.spec
    outputs: list[Tensor] = []
    for place, tensor in enumerate(first.outputs):
        axis = spec.outputs_by_name[tensor.name].batch_axis
        array = tensor.array
        if axis is not None:
            arrays = [response.outputs[place].array for response in responses]
            shapes = {(one.shape[:axis], one.shape[axis + 1 :]) for one in arrays}
            if len(shapes) > 1:
                listed = ", ".join(str(list(one.shape)) for one in arrays)
                raise BackendError(
                    f"model '{spec.name}' version {spec.version}: output '{tensor.name}' came out as {listed} for the "
                    "parts of a split request, which cannot be joined; send fewer rows"
                )
            array = np.concatenate(arrays, axis)
        outputs.append(Tensor(tensor.name, tensor.datatype, array))
    return InferenceResponse(first.model, first.version, outputs, first.parameters)
