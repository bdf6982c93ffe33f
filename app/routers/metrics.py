"""The Prometheus endpoint. Runs on: event loop."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from .planes import Readings

router = APIRouter(tags=["Metrics"], default_response_class=Response)

_RESPONSES: dict[int | str, dict[str, object]] = {
    200: {
        "description": "Prometheus text, or OpenMetrics when asked for.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/metrics", summary="Metrics", responses=_RESPONSES)
async def metrics(request: Request, readings: Readings) -> Response:
    """Counters and histograms of models, queues, batches and HTTP, under our, Triton's and KServe's names."""
    body, content_type = await readings.scrape(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": content_type})
