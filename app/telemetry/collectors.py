"""Small collectors beside the model counters: the lane's HTTP families and the machine's CPU and memory.

Runs on: event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from .http_stats import HIGHR_BOUNDS_NS, HIGHR_BOUNDS_S, LOWR_BOUNDS_S, HttpStats
from .stats import Histogram


def _buckets(histogram: Histogram, bounds_s: Iterable[float]) -> list[tuple[str, float]]:
    """Cumulated counts at these bounds, which are some of the histogram's own."""
    cumulated = list(accumulate(histogram.counts))
    picked = [(repr(bound), float(cumulated[HIGHR_BOUNDS_NS.index(round(bound * 1e9))])) for bound in bounds_s]
    return [*picked, ("+Inf", float(cumulated[-1]))]


class LaneCollector(Collector):
    """The infer lane's requests under the names, labels and buckets of prometheus-fastapi-instrumentator.

    It has no `describe`, so it may share a registry with the instrumentator itself; `merge_metrics` joins the two.
    """

    def __init__(self, http: HttpStats) -> None:
        self._http = http

    def collect(self) -> Iterator[Metric]:
        """See the class; status codes are grouped (2xx, 4xx, 5xx), as the instrumentator does by default."""
        requests = CounterMetricFamily(
            "http_requests",
            "Total number of requests by method, status and handler.",
            labels=("method", "status", "handler"),
        )
        received = SummaryMetricFamily(
            "http_request_size_bytes", "Content length of incoming requests by handler.", labels=("handler",)
        )
        sent = SummaryMetricFamily(
            "http_response_size_bytes", "Content length of outgoing responses by handler.", labels=("handler",)
        )
        highr = HistogramMetricFamily(
            "http_request_duration_highr_seconds", "Latency with many buckets but no API specific labels."
        )
        lowr = HistogramMetricFamily(
            "http_request_duration_seconds", "Latency with only few buckets by handler.", labels=("method", "handler")
        )
        everything = Histogram(HIGHR_BOUNDS_NS)
        for (handler, method), route in self._http.routes.items():
            classes = {"2xx": 0}  # there before the first request, so that no data and no requests differ
            for status, count in route.statuses.items():
                group = f"{status // 100}xx"
                classes[group] = classes.get(group, 0) + count
            for group, count in classes.items():
                requests.add_metric((method, group, handler), count)
            count = route.duration.count
            received.add_metric((handler,), count, route.request_bytes)
            sent.add_metric((handler,), count, route.response_bytes)
            lowr.add_metric((method, handler), _buckets(route.duration, LOWR_BOUNDS_S), route.duration.total / 1e9)
            everything.add(route.duration)
        highr.add_metric((), _buckets(everything, HIGHR_BOUNDS_S), everything.total / 1e9)
        yield from (requests, received, sent, highr, lowr)


class MachineCollector(Collector):
    """Triton's nv_cpu_* gauges out of /proc; no samples where there is no /proc."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._stat = proc / "stat"
        self._meminfo = proc / "meminfo"
        self._previous = (0, 0)

    def collect(self) -> Iterator[Metric]:
        """See the class; utilization is the share of busy CPU time since the scrape before."""
        if not self._stat.exists() or not self._meminfo.exists():
            return
        busy, total = self._cpu_ticks()
        busy_before, total_before = self._previous
        self._previous = (busy, total)
        elapsed = total - total_before
        share = (busy - busy_before) / elapsed if elapsed > 0 else 0.0
        yield GaugeMetricFamily("nv_cpu_utilization", "CPU utilization of the machine, 0 to 1.", share)
        memory = self._memory_bytes()
        yield GaugeMetricFamily("nv_cpu_memory_total_bytes", "Memory of the machine.", memory["MemTotal"])
        used = memory["MemTotal"] - memory["MemAvailable"]
        yield GaugeMetricFamily("nv_cpu_memory_used_bytes", "Memory of the machine that is in use.", used)

    def _cpu_ticks(self) -> tuple[int, int]:
        """(busy, all) ticks since boot: user nice system idle iowait irq softirq steal."""
        with self._stat.open() as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
        idle = ticks[3] + ticks[4]
        return sum(ticks) - idle, sum(ticks)

    def _memory_bytes(self) -> dict[str, int]:
        """/proc/meminfo in bytes."""
        with self._meminfo.open() as file:
            lines = (line.split() for line in file)
            return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in lines if len(fields) == 3}
