"""The door for one request, whatever the protocol. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import KernelPortError
from ..core.request import Call, InferenceRequest
from ..core.servable import Form, Servable
from ..lifecycle.catalog import Catalog
from .admission import check


class DataPlane:
    """Finds the model and lets the request in. Every frontend goes through here and nowhere else."""

    def __init__(self, catalog: Catalog, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.find: Callable[[str, str | None], Servable] = catalog.find

    def infer(self, servable: Servable, request: InferenceRequest, received_ns: int) -> Call:
        """Start an inference; never raises: a request that is refused comes back as a finished call."""
        inputs = request.inputs
        form: Form | None = None
        if len(inputs) == 1 and request.outputs is None:
            (tensor,) = inputs.values()
            form = (tensor.name, tensor.datatype, tensor.array.shape)
            known = servable.forms.get(form)
            if known is not None:
                return servable.submit(request, known[0], received_ns, known[1])
        try:
            rows = check(request, servable.spec, servable.splits_oversized)
        except KernelPortError as error:
            self.reject(servable, error, received_ns)
            call = Call(request, received_ns)
            call.finish(None, error)
            return call
        if form is not None:
            servable.remember(form, request, rows)
        return servable.submit(request, rows, received_ns)

    def reject(self, servable: Servable, error: KernelPortError, received_ns: int) -> None:
        """Count a request to a known model that failed before it could be queued."""
        servable.reject(error.outcome, self._now_ns() - received_ns)
