"""/metrics: exact numbers under three vocabularies, one series per thing, readable by Prometheus' own tools."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.model import ModelState, ModelStatus
from kernelport.core.timing import BatchTiming
from kernelport.telemetry.http_stats import HttpStats
from kernelport.telemetry.loop_lag import LoopLag
from kernelport.telemetry.metrics import Metrics
from kernelport.telemetry.stats import OUTCOMES, RELEASE_REASONS, ModelStats
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_fastapi_instrumentator import Instrumentator

US, MS = 1_000, 1_000_000
INFER = "/v2/models/{model}/infer"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True)
class Identity:
    """A model version by name."""

    name: str
    version: str = "1"


@dataclass
class Front:
    """Readings of an HTTP front at rest."""

    http_stats: HttpStats = field(default_factory=HttpStats)
    connections: int = 0
    bytes_in_flight: int = 0
    in_flight: int = 0
    is_open: bool = True


class StillClock:
    """A clock at zero whose timers never fire."""

    def now_ns(self) -> int:
        return 0

    def call_at(self, when_ns: int, callback: object) -> "StillClock":
        return self

    def call_soon(self, callback: object) -> None:
        raise AssertionError("nothing runs on this clock")

    def call_soon_threadsafe(self, callback: object, *args: object) -> None:
        raise AssertionError("nothing runs on this clock")

    def cancel(self) -> None:
        raise AssertionError("nothing was planned")


def series(metrics: Metrics) -> Series:
    """All samples of a scrape; each series may come only once."""
    read: Series = {}
    body, _ = metrics.expose()
    for family in parse_text(body.decode()):
        for sample in family.samples:
            # The reference parser gives every counter a `_total`; Triton's are written without.
            name = sample.name.removesuffix("_total") if sample.name.startswith("nv_") else sample.name
            key = (name, frozenset(sample.labels.items()))
            assert key not in read, f"{key} comes twice"
            read[key] = sample.value
    return read


def value(read: Series, name: str, **labels: str) -> float:
    """One sample."""
    return read[name, frozenset(labels.items())]


def busy_stats() -> ModelStats:
    """One batch of 8 rows for 2 requests, one of 1 row for 1; a queue refusal, a hang-up, a backend failure."""
    stats = ModelStats()
    pair = BatchTiming(1_000 * US, 8, 2, "size")
    pair.compute_start_ns, pair.compute_end_ns, pair.done_ns = 1_020 * US, 4_020 * US, 4_030 * US
    pair.padded_rows = 3
    single = BatchTiming(5_000 * US, 1, 1, "idle")
    single.compute_start_ns, single.compute_end_ns, single.done_ns = 5_010 * US, 7_010 * US, 7_015 * US
    stats.executed(pair)
    stats.succeeded(5, 600 * US, 700 * US, pair, 4_100 * US)
    stats.succeeded(3, 800 * US, 900 * US, pair, 4_200 * US)
    stats.executed(single)
    stats.succeeded(1, 4_900 * US, 4_950 * US, single, 7_100 * US)
    for outcome in ("queue_full", "cancelled", "backend", "invalid"):
        stats.failed(outcome, 50 * US)
    for _ in range(3):
        stats.encode_time.observe(30 * US)
    stats.received = 9
    stats.pending, stats.in_flight, stats.reruns = 1, 1, 1
    stats.load_ns = 1_500 * MS
    return stats


@pytest.fixture
def busy() -> Series:
    return series(Metrics(lambda: [(Identity("m", "3"), busy_stats())]))


def test_own_counters_show_the_exact_numbers(busy: Series) -> None:
    m = {"model": "m", "version": "3"}
    expected = {
        "kernelport_requests_received_total": 9,
        "kernelport_rows_total": 9,
        "kernelport_executions_total": 2,
        "kernelport_executed_rows_total": 9,
        "kernelport_padded_rows_total": 3,
        "kernelport_batch_reruns_total": 1,
        "kernelport_pending_requests": 1,
        "kernelport_in_flight_requests": 1,
        "kernelport_model_load_duration_seconds": 1.5,
        "kernelport_batch_rows_sum": 9,
        "kernelport_batch_rows_count": 2,
        "kernelport_request_duration_seconds_sum": 0.0091,
        "kernelport_request_duration_seconds_count": 3,
        "kernelport_queue_duration_seconds_sum": 0.00045,
        "kernelport_merge_duration_seconds_sum": 0.00005,
        "kernelport_compute_duration_seconds_sum": 0.008,
        "kernelport_encode_duration_seconds_sum": 0.00009,
        "kernelport_encode_duration_seconds_count": 3,
    }
    assert {name: value(busy, name, **m) for name in expected} == expected
    outcomes = {name: value(busy, "kernelport_requests_total", outcome=name, **m) for name in OUTCOMES}
    failed = dict.fromkeys(("queue_full", "cancelled", "backend", "invalid"), 1)
    assert outcomes == {**dict.fromkeys(OUTCOMES, 0), "success": 3, **failed}
    reasons = {name: value(busy, "kernelport_batch_releases_total", reason=name, **m) for name in RELEASE_REASONS}
    assert reasons == {**dict.fromkeys(RELEASE_REASONS, 0), "size": 1, "idle": 1}


def test_latency_buckets_are_cumulated(busy: Series) -> None:
    m = {"model": "m", "version": "3"}
    buckets = {
        bound: value(busy, "kernelport_compute_duration_seconds_bucket", le=bound, **m)
        for bound in ("5e-05", "0.001", "0.0025", "0.005", "30.0", "+Inf")
    }
    assert buckets == {"5e-05": 0, "0.001": 0, "0.0025": 1, "0.005": 3, "30.0": 3, "+Inf": 3}
    assert value(busy, "kernelport_batch_rows_bucket", le="1.0", **m) == 1
    assert value(busy, "kernelport_batch_rows_bucket", le="8.0", **m) == 2


def test_triton_names_show_the_same_numbers(busy: Series) -> None:
    m = {"model": "m", "version": "3"}
    expected = {
        "nv_inference_request_success": 3,
        "nv_inference_count": 9,
        "nv_inference_exec_count": 2,
        "nv_inference_request_duration_us": 9_100,
        "nv_inference_queue_duration_us": 450,
        "nv_inference_compute_input_duration_us": 50,
        "nv_inference_compute_infer_duration_us": 8_000,
        "nv_inference_compute_output_duration_us": 25,
        "nv_inference_pending_request_count": 1,
        "nv_model_load_duration_secs": 1.5,
    }
    assert {name: value(busy, name, **m) for name in expected} == expected
    reasons = {
        reason: value(busy, "nv_inference_request_failure", reason=reason, **m)
        for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    }
    assert reasons == {"REJECTED": 1, "CANCELED": 1, "BACKEND": 1, "OTHER": 1}


def test_kserve_names_add_up_the_versions_of_a_model() -> None:
    other = ModelStats()
    other.encode_time.observe(10 * US)
    read = series(Metrics(lambda: [(Identity("m", "3"), busy_stats()), (Identity("m", "4"), other)]))
    assert value(read, "request_predict_seconds_sum", model_name="m") == 0.008
    assert value(read, "request_preprocess_seconds_count", model_name="m") == 3
    assert value(read, "request_postprocess_seconds_count", model_name="m") == 4
    assert value(read, "request_postprocess_seconds_sum", model_name="m") == 0.0001
    assert value(read, "kernelport_encode_duration_seconds_count", model="m", version="3") == 3


def test_triton_series_have_the_names_types_and_labels_of_a_real_triton(repository_root: Path) -> None:
    sample = (repository_root / "tests/data/telemetry/triton_metrics.txt").read_text()
    body, _ = Metrics(lambda: [(Identity("add_sub"), ModelStats())]).expose()

    # Compared to the letter, because the reference parser would rename the counters.
    def type_lines(text: str) -> set[str]:
        return {line for line in text.splitlines() if line.startswith("# TYPE nv_") and "pinned" not in line}

    def series_lines(text: str) -> set[tuple[str, frozenset[str]]]:
        """Name and label set of every nv_ sample."""
        found = re.findall(r"^(nv_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE)
        return {(name, frozenset(labels.split(","))) for name, labels in found if "pinned" not in name}

    assert len(series_lines(sample)) == 16
    assert series_lines(sample) <= series_lines(body.decode())
    assert type_lines(sample) <= type_lines(body.decode())


def test_a_fresh_model_has_every_series_at_zero() -> None:
    def of_model(stats: ModelStats) -> Series:
        read = series(Metrics(lambda: [(Identity("m"), stats)]))
        return {key: number for key, number in read.items() if {("model", "m"), ("model_name", "m")} & key[1]}

    fresh = of_model(ModelStats())
    assert set(fresh.values()) == {0}
    assert fresh.keys() == of_model(busy_stats()).keys()
    assert len(fresh) > 200


def test_an_unloaded_model_leaves_no_series() -> None:
    loaded = [(Identity("stays"), ModelStats()), (Identity("goes"), ModelStats())]
    metrics = Metrics(lambda: loaded)
    assert b'"goes"' in metrics.expose()[0]
    loaded.pop()
    body, _ = metrics.expose()
    assert b'"goes"' not in body
    assert b'"stays"' in body


def test_two_copies_of_one_version_during_a_reload_are_one_series() -> None:
    old, new = busy_stats(), busy_stats()
    read = series(Metrics(lambda: [(Identity("m"), old), (Identity("m"), new)]))
    assert value(read, "nv_inference_request_success", model="m", version="1") == 6
    assert old.outcomes["success"] == new.outcomes["success"] == 3


def test_counters_that_two_loads_of_a_version_share_are_counted_once() -> None:
    shared = busy_stats()
    read = series(Metrics(lambda: [(Identity("m"), shared), (Identity("m"), shared)]))
    assert value(read, "nv_inference_request_success", model="m", version="1") == 3


@pytest.mark.parametrize("name", ["50%s off", 'quote"d', "back\\slash", "new\nline", "模型", "{a}"])
def test_any_model_name_is_a_label(name: str) -> None:
    read = series(Metrics(lambda: [(Identity(name), busy_stats())]))
    assert value(read, "kernelport_rows_total", model=name, version="1") == 9
    assert value(read, "request_predict_seconds_count", model_name=name) == 3


def test_vocabularies_can_be_switched_off_one_by_one() -> None:
    def names(vocabularies: Iterable[str]) -> str:
        body, _ = Metrics(lambda: [(Identity("m"), ModelStats())], vocabularies=tuple(vocabularies)).expose()
        return body.decode()

    assert "nv_" not in names(["kserve"])
    assert "request_predict_seconds" in names(["kserve"])
    assert "request_predict_seconds" not in names(["triton"])
    assert "nv_cpu_memory_total_bytes" in names(["triton"])
    assert "nv_" not in names([])
    with pytest.raises(ValueError, match="metric vocabulary 'ovms' is unknown; use triton or kserve"):
        names(["ovms"])


def test_state_is_one_series_per_state() -> None:
    statuses = [
        ModelStatus("good", "1", ModelState.READY),
        ModelStatus("bad", "1", ModelState.UNAVAILABLE, 'no such "file"'),
        ModelStatus("bad", "2", ModelState.LOADING),
    ]
    read = series(Metrics(list, statuses=lambda: statuses))
    states = {key: number for key, number in read.items() if key[0] == "kernelport_model_state"}
    assert len(states) == 3 * len(ModelState)
    on = {frozenset(labels) for (_, labels), number in states.items() if number}
    assert on == {
        frozenset({("model", one.name), ("version", one.version), ("state", one.state.value)}) for one in statuses
    }


def test_front_and_loop_are_shown() -> None:
    lag = LoopLag(StillClock())
    lag.lateness.observe(3 * MS, 2)
    lag.max_ns = 3 * MS
    gate = Front(connections=7, bytes_in_flight=1_234, in_flight=2, is_open=False)
    read = series(Metrics(list, version="1.2.3", gate=gate, loop_lag=lag))
    assert value(read, "kernelport_http_connections") == 7
    assert value(read, "kernelport_http_bytes_in_flight") == 1_234
    assert value(read, "kernelport_http_in_flight_requests") == 2
    assert value(read, "kernelport_admission_open") == 0
    assert value(read, "kernelport_event_loop_lag_seconds_sum") == 0.006
    assert value(read, "kernelport_event_loop_lag_seconds_bucket", le="0.0025") == 0
    assert value(read, "kernelport_event_loop_lag_seconds_bucket", le="0.005") == 2
    assert value(read, "kernelport_event_loop_lag_max_seconds") == 0.003
    (build,) = [dict(labels) for name, labels in read if name == "kernelport_build_info"]
    assert build["version"] == "1.2.3"


def test_process_shows_itself_and_a_second_server_has_its_own_numbers() -> None:
    one = Metrics(list)
    assert value(series(one), "process_open_fds") > 0
    assert value(series(one), "process_resident_memory_bytes") > 1_000_000
    assert one.registry is not Metrics(list).registry


async def _merged_front() -> Series:
    gate = Front()
    metrics = Metrics(list, gate=gate)
    app = FastAPI()
    Instrumentator(registry=metrics.registry).instrument(app)

    @app.post(INFER)
    async def infer(model: str) -> str:
        return model

    @app.get("/v2")
    async def server() -> str:
        return "kernelport"

    route = gate.http_stats.route(INFER, "POST")
    route.observe(200, 5 * MS, 10, 20)
    route.observe(201, 80 * MS, 10, 20)
    route.observe(503, 2_000 * MS, 1, 2)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await client.post("/v2/models/m/infer", content=b"12345")
        await client.get("/v2")
    return series(metrics)


def test_lane_and_fastapi_share_their_http_families() -> None:
    read = asyncio.run(_merged_front())
    post = {"method": "POST", "handler": INFER}
    assert value(read, "http_requests_total", status="2xx", **post) == 3
    assert value(read, "http_requests_total", status="5xx", **post) == 1
    assert value(read, "http_requests_total", status="2xx", method="GET", handler="/v2") == 1
    assert value(read, "http_request_duration_highr_seconds_count") == 5
    assert value(read, "http_request_duration_highr_seconds_bucket", le="0.075") == 3
    assert value(read, "http_request_duration_highr_seconds_bucket", le="0.1") == 4
    assert value(read, "http_request_duration_seconds_count", **post) == 4
    assert value(read, "http_request_duration_seconds_bucket", le="0.1", **post) == 3
    assert value(read, "http_request_duration_seconds_bucket", le="1.0", **post) == 3
    assert value(read, "http_request_duration_seconds_bucket", le="+Inf", **post) == 4
    assert value(read, "http_request_size_bytes_sum", handler=INFER) == 26
    assert value(read, "http_request_size_bytes_count", handler=INFER) == 4
    assert value(read, "http_response_size_bytes_sum", handler=INFER) == 45


def test_lane_writes_the_very_families_of_the_instrumentator() -> None:
    async def both() -> tuple[dict[str, tuple[str, set[frozenset[str]]]], ...]:
        gate = Front()
        gate.http_stats.route("/x", "POST").observe(200, MS, 1, 1)
        metrics = Metrics(list, gate=gate)
        plain = Metrics(list)
        app = FastAPI()
        app.post("/x")(lambda: "x")
        Instrumentator(registry=plain.registry).instrument(app)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            await client.post("/x")
        return shapes(metrics), shapes(plain)

    def shapes(metrics: Metrics) -> dict[str, tuple[str, set[frozenset[str]]]]:
        families = parse_text(metrics.expose()[0].decode())
        return {
            family.name: (
                family.type,
                {frozenset((*one.labels, one.name, one.labels.get("le", ""))) for one in family.samples},
            )
            for family in families
            if family.name.startswith("http_")
        }

    lane, instrumentator = asyncio.run(both())
    assert lane == instrumentator
    assert len(lane) == 5


def test_scrape_answers_as_expose_does_in_the_format_asked_for() -> None:
    metrics = Metrics(lambda: [(Identity("m"), busy_stats())], statuses=lambda: [], gate=Front())
    body, content_type = asyncio.run(metrics.scrape("application/openmetrics-text;version=1.0.0"))
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    names = {family.name for family in parse_openmetrics(body.decode())}  # type: ignore[no-untyped-call]
    assert {"kernelport_requests", "nv_inference_count", "request_predict_seconds", "process_cpu_seconds"} <= names
    body, content_type = asyncio.run(metrics.scrape())
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert body.endswith(b"\n")


def test_a_capture_does_not_change_while_it_is_rendered() -> None:
    stats = busy_stats()
    metrics = Metrics(lambda: [(Identity("m"), stats)])
    capture = metrics.capture()
    stats.failed("backend", 1)
    body, _ = metrics.render(capture)
    assert b'kernelport_requests_total{model="m",version="1",outcome="backend"} 1\n' in body


def promtool_findings(metrics: Metrics) -> list[str]:
    """Lines of `promtool check metrics`."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (Debian package prometheus)")
    body, _ = metrics.expose()
    checked = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, check=False)
    return (checked.stdout + checked.stderr).decode().splitlines()


def everything(vocabularies: tuple[str, ...]) -> Metrics:
    gate = Front()
    gate.http_stats.route(INFER, "POST").observe(200, MS, 1, 1)
    return Metrics(
        lambda: [(Identity("m"), busy_stats())],
        statuses=lambda: [ModelStatus("m", "1", ModelState.READY)],
        gate=gate,
        loop_lag=LoopLag(StillClock()),
        vocabularies=vocabularies,
    )


def test_promtool_finds_no_fault_in_our_names() -> None:
    assert promtool_findings(everything(("kserve",))) == []


def test_promtool_only_minds_the_names_that_triton_chose() -> None:
    findings = promtool_findings(everything(("triton", "kserve")))
    assert findings
    assert all(re.match(r"nv_inference_\w+ (counter|metric|non-histogram)", line) for line in findings)


outcomes = st.lists(st.sampled_from(OUTCOMES), max_size=40)


@given(outcomes, outcomes)
def test_sums_of_all_vocabularies_add_up_whatever_happened(first: list[str], second: list[str]) -> None:
    loaded = []
    for version, happened in (("1", first), ("2", second)):
        stats = ModelStats()
        for number, outcome in enumerate(happened):
            stats.received += 1
            batch = BatchTiming(number, number + 1, 1, RELEASE_REASONS[number % len(RELEASE_REASONS)])
            batch.compute_start_ns, batch.compute_end_ns, batch.done_ns = (
                number + 10,
                number * MS + 50,
                number * MS + 60,
            )
            if outcome in ("success", "cancelled"):
                stats.executed(batch)
            if outcome == "success":
                stats.succeeded(batch.rows, 0, 0, batch, batch.done_ns)
            else:
                stats.failed(outcome, 5)
        loaded.append((Identity("m", version), stats))
    read = series(Metrics(lambda: loaded))

    def total(name: str, **labels: str) -> float:
        return sum(n for (key, found), n in read.items() if key == name and labels.items() <= dict(found).items())

    for version, happened in (("1", first), ("2", second)):
        m = {"model": "m", "version": version}
        assert (
            total("kernelport_requests_total", **m) == total("kernelport_requests_received_total", **m) == len(happened)
        )
        successes = total("kernelport_requests_total", outcome="success", **m)
        assert successes == total("nv_inference_request_success", **m) == happened.count("success")
        assert total("nv_inference_request_failure", **m) == len(happened) - successes
        for stage in ("request", "queue", "merge", "compute"):
            assert total(f"kernelport_{stage}_duration_seconds_count", **m) == successes
            assert total(f"kernelport_{stage}_duration_seconds_bucket", le="+Inf", **m) == successes
        executions = total("kernelport_executions_total", **m)
        assert executions == total("kernelport_batch_releases_total", **m) == total("nv_inference_exec_count", **m)
        assert executions == total("kernelport_batch_rows_count", **m)
        assert total("kernelport_batch_rows_sum", **m) == total("nv_inference_count", **m)
    assert total("request_predict_seconds_count") == first.count("success") + second.count("success")
