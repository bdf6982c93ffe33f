"""HTTP counters of the infer lane, which the FastAPI instrumentator never sees. Runs on: event loop.

The gate owns one `HttpStats`; the lane asks it once per route for a `RouteStats` and calls `observe` per reply.
"""

from __future__ import annotations

from bisect import bisect_left

from .stats import Histogram

# The bounds of prometheus-fastapi-instrumentator's http_request_duration_highr_seconds; those of its coarse
# http_request_duration_seconds are among them. Equal bounds are what lets both sources add up in one family.
HIGHR_BOUNDS_S: tuple[float, ...] = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5, 10.0, 30.0, 60.0,
)  # fmt: skip
LOWR_BOUNDS_S: tuple[float, ...] = (0.1, 0.5, 1.0)
HIGHR_BOUNDS_NS: tuple[int, ...] = tuple(round(bound * 1e9) for bound in HIGHR_BOUNDS_S)


class RouteStats:
    """Replies of one route template and method."""

    __slots__ = ("duration", "request_bytes", "response_bytes", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int, int] = {}
        self.duration = Histogram(HIGHR_BOUNDS_NS)  # first byte of the request to the reply being written
        self.request_bytes = 0  # bodies as they came, before decompression
        self.response_bytes = 0  # bodies as they went, after compression

    def observe(self, status: int, duration_ns: int, request_bytes: int, response_bytes: int) -> None:
        """Count one reply; also one that nobody read any more (499)."""
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + 1
        duration = self.duration
        duration.counts[bisect_left(HIGHR_BOUNDS_NS, duration_ns)] += 1
        duration.total += duration_ns
        self.request_bytes += request_bytes
        self.response_bytes += response_bytes


class HttpStats:
    """All routes of the lane. `handler` is the FastAPI route template, never the path a client sent."""

    __slots__ = ("routes",)

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], RouteStats] = {}

    def route(self, handler: str, method: str) -> RouteStats:
        """The counters of one route; made, with zeros, when first asked for."""
        stats = self.routes.get((handler, method))
        if stats is None:
            stats = self.routes[handler, method] = RouteStats()
        return stats
