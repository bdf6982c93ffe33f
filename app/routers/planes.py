"""What routes are given: the control plane, the infer endpoint, the metrics. Runs on: event loop."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from ..http.endpoint import InferEndpoint
from ..serving.control import ControlPlane
from ..telemetry.metrics import Metrics


async def _control_plane(request: Request) -> ControlPlane:
    plane: ControlPlane = request.app.state.control_plane
    return plane


async def _endpoint(request: Request) -> InferEndpoint:
    endpoint: InferEndpoint = request.app.state.endpoint
    return endpoint


async def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


Control = Annotated[ControlPlane, Depends(_control_plane)]
Inference = Annotated[InferEndpoint, Depends(_endpoint)]
Readings = Annotated[Metrics, Depends(_metrics)]
