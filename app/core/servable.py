"""What a model name resolves to. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from .model import ModelSpec
from .request import Call, InferenceRequest
from .tensor import DataType, Shape

Form = tuple[str, DataType, Shape]  # all that admission looks at in a request of one input that asks for all outputs
Admitted = tuple[int, Hashable]  # the rows of such a request, and the key of the requests it may share a batch with


class Servable(Protocol):
    """One READY model version (later also a pipeline): takes requests, answers each exactly once."""

    spec: ModelSpec
    json_nonfinite: str  # "null" or "literal": how NaN and infinities are written in JSON
    splits_oversized: bool  # a request above `spec.max_batch_size` is cut up instead of refused

    forms: dict[Form, Admitted]  # forms that were admitted before, so that most requests need no check

    def submit(self, request: InferenceRequest, rows: int, received_ns: int, key: Hashable = None) -> Call:
        """Queue an admitted request of `rows` rows; the call may come back refused (`call.error` set).

        `key` None: not known from `forms`.
        """

    def remember(self, form: Form, request: InferenceRequest, rows: int) -> None:
        """Put an admitted form into `forms`, if it decides all by itself how its requests are batched."""

    def reject(self, error_outcome: str, elapsed_ns: int) -> None:
        """Count a request refused before `submit`, `elapsed_ns` after its receipt, under its error's outcome."""

    def encoded(self, elapsed_ns: int) -> None:
        """Count the time that encoding one reply took."""
