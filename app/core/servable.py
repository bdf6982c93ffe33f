"""What a model name resolves to. Runs on: event loop."""

from __future__ import annotations

from typing import Protocol

from .model import ModelSpec
from .request import Call, InferenceRequest


class Servable(Protocol):
    """One READY model version (later also a pipeline): takes requests, answers each exactly once."""

    spec: ModelSpec
    json_nonfinite: str  # "null" or "literal": how NaN and infinities are written in JSON
    splits_oversized: bool  # a request above `spec.max_batch_size` is cut up instead of refused

    def submit(self, request: InferenceRequest, rows: int, received_ns: int) -> Call:
        """Queue an admitted request of `rows` rows; the call may come back refused (`call.error` set)."""

    def reject(self, error_outcome: str, elapsed_ns: int) -> None:
        """Count a request refused before `submit`, `elapsed_ns` after its receipt, under its error's outcome."""

    def encoded(self, elapsed_ns: int) -> None:
        """Count the time that encoding one reply took."""
