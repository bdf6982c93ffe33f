"""The metric families of a model version: names, labels, and where in `ModelStats` each number is. Runs on: anywhere.

Three vocabularies over the same counters: ours (kernelport_*), Triton's (nv_*), KServe's (request_*_seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

from .stats import LATENCY_BOUNDS_NS, OUTCOMES, RELEASE_REASONS, Histogram, ModelStats

Number = int | float


@dataclass(slots=True, frozen=True)
class ModelFamily:
    """One family with the same samples for every model version.

    `samples` are (name suffix, further labels) and `values` gives one number for each, in that order.
    """

    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, str], ...]
    values: Callable[[ModelStats], Iterable[Number]]

    def template(self, labels: str) -> str:
        """The sample lines of one model version with `%s` for each number; made once, filled at every scrape.

        One C-level format call per family and model is what keeps a scrape of 200 models cheap.
        """
        name = f"{self.name}_total" if self.kind == "counter" else self.name
        separator = "," if labels else ""
        return "\n".join(
            f"{name}{suffix}{{{labels}{separator if extra else ''}{extra}}}".replace("%", "%%") + " %s"
            for suffix, extra in self.samples
        )


def histogram_samples(bounds: Iterable[float]) -> tuple[tuple[str, str], ...]:
    """The samples of a histogram with these upper bounds (in the unit of the family)."""
    buckets = tuple(("_bucket", f'le="{float(bound)!r}"') for bound in bounds)
    return (*buckets, ("_bucket", 'le="+Inf"'), ("_count", ""), ("_sum", ""))


def histogram_values(histogram: Histogram, unit: int = 1) -> list[Number]:
    """Cumulated buckets, count, sum divided by `unit`."""
    values: list[Number] = list(accumulate(histogram.counts))
    values.append(values[-1])
    values.append(histogram.total if unit == 1 else histogram.total / unit)
    return values


def _counter(name: str, text: str, value: Callable[[ModelStats], Number]) -> ModelFamily:
    return ModelFamily(name, "counter", text, (("", ""),), lambda stats: (value(stats),))


def _gauge(name: str, text: str, value: Callable[[ModelStats], Number]) -> ModelFamily:
    return ModelFamily(name, "gauge", text, (("", ""),), lambda stats: (value(stats),))


def _by_label(
    name: str, text: str, label: str, keys: tuple[str, ...], tally: Callable[[ModelStats], dict[str, int]]
) -> ModelFamily:
    samples = tuple(("", f'{label}="{key}"') for key in keys)
    return ModelFamily(name, "counter", text, samples, lambda stats: map(tally(stats).__getitem__, keys))


_SECONDS = histogram_samples(bound / 1e9 for bound in LATENCY_BOUNDS_NS)


def _latency(name: str, text: str, histogram: Callable[[ModelStats], Histogram]) -> ModelFamily:
    return ModelFamily(
        name, "histogram", text, _SECONDS, lambda stats: histogram_values(histogram(stats), 1_000_000_000)
    )


NATIVE: tuple[ModelFamily, ...] = (
    _counter("kernelport_requests_received", "Requests that named this model version.", lambda s: s.received),
    _by_label(
        "kernelport_requests",
        "Finished requests by outcome; each request is counted once.",
        "outcome",
        OUTCOMES,
        lambda s: s.outcomes,
    ),
    _counter("kernelport_rows", "Rows of successful requests.", lambda s: s.rows),
    _counter("kernelport_executions", "Successful framework calls.", lambda s: s.executions),
    _counter("kernelport_executed_rows", "Rows in successful framework calls, padding excluded.",
             lambda s: s.executed_rows),
    _counter("kernelport_padded_rows", "Rows added to reach a configured batch size.", lambda s: s.padded_rows),
    _counter("kernelport_batch_reruns", "Failed batches whose requests were run again one by one.",
             lambda s: s.reruns),
    _by_label(
        "kernelport_batch_releases",
        "Executed batches by what made them leave the queue.",
        "reason",
        RELEASE_REASONS,
        lambda s: s.release_reasons,
    ),
    _gauge("kernelport_pending_requests", "Requests that wait in the queue.", lambda s: s.pending),
    _gauge("kernelport_in_flight_requests", "Requests taken by a lane and not finished.", lambda s: s.in_flight),
    _latency("kernelport_request_duration_seconds", "Successful requests, receipt to result.",
             lambda s: s.request_time),
    _latency("kernelport_queue_duration_seconds", "Wait of a successful request until a lane took it.",
             lambda s: s.queue_time),
    _latency("kernelport_merge_duration_seconds", "Joining of the inputs of a successful request's batch.",
             lambda s: s.merge_time),
    _latency("kernelport_compute_duration_seconds", "Framework call of a successful request's batch.",
             lambda s: s.compute_time),
    _latency("kernelport_encode_duration_seconds", "Encoding of a reply.", lambda s: s.encode_time),
    ModelFamily(
        "kernelport_batch_rows",
        "histogram",
        "Rows per successful framework call.",
        histogram_samples((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
        lambda s: histogram_values(s.batch_rows),
    ),
    _gauge("kernelport_model_load_duration_seconds", "How long the last load took, warm-up included.",
           lambda s: s.load_ns / 1e9),
)  # fmt: skip

# Triton's failure reasons out of our outcomes.
_TRITON_REASONS: dict[str, tuple[str, ...]] = {
    "REJECTED": ("queue_full", "queue_timeout", "deadline", "shed", "unavailable"),
    "CANCELED": ("cancelled",),
    "BACKEND": ("backend",),
    "OTHER": ("invalid", "internal"),
}


def _triton_failures(stats: ModelStats) -> Iterable[int]:
    outcomes = stats.outcomes
    return (sum(outcomes[outcome] for outcome in members) for members in _TRITON_REASONS.values())


def _triton_counter(name: str, text: str, value: Callable[[ModelStats], Number]) -> ModelFamily:
    return ModelFamily(name, "bare_counter", text, (("", ""),), lambda stats: (value(stats),))


TRITON: tuple[ModelFamily, ...] = (
    _triton_counter("nv_inference_request_success", "Successful requests.", lambda s: s.outcomes["success"]),
    ModelFamily(
        "nv_inference_request_failure",
        "bare_counter",
        "Failed requests by reason.",
        tuple(("", f'reason="{reason}"') for reason in _TRITON_REASONS),
        _triton_failures,
    ),
    # Rows run, not rows answered: so it equals the sum over the statistics' batch_stats whatever clients cancel.
    _triton_counter("nv_inference_count", "Rows in successful framework calls.", lambda s: s.executed_rows),
    _triton_counter("nv_inference_exec_count", "Successful framework calls.", lambda s: s.executions),
    _triton_counter("nv_inference_request_duration_us", "Successful requests, receipt to result, microseconds.",
                    lambda s: s.request_time.total // 1000),
    _triton_counter("nv_inference_queue_duration_us", "Waits of successful requests, microseconds.",
                    lambda s: s.queue_time.total // 1000),
    _triton_counter("nv_inference_compute_input_duration_us", "Joining of inputs, microseconds per request.",
                    lambda s: s.merge_time.total // 1000),
    _triton_counter("nv_inference_compute_infer_duration_us", "Framework calls, microseconds per request.",
                    lambda s: s.compute_time.total // 1000),
    _triton_counter("nv_inference_compute_output_duration_us", "Splitting of outputs, microseconds per request.",
                    lambda s: s.split_ns // 1000),
    _gauge("nv_inference_pending_request_count", "Requests that wait in the queue.", lambda s: s.pending),
    _gauge("nv_model_load_duration_secs", "How long the last load took, warm-up included, seconds.",
           lambda s: s.load_ns / 1e9),
)  # fmt: skip

# One series per model name: versions are added up before rendering.
KSERVE: tuple[ModelFamily, ...] = (
    _latency("request_preprocess_seconds", "Joining of the inputs of a request's batch.", lambda s: s.merge_time),
    _latency("request_predict_seconds", "Framework call of a request's batch.", lambda s: s.compute_time),
    _latency("request_postprocess_seconds", "Encoding of a reply.", lambda s: s.encode_time),
)
