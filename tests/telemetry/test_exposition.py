"""What is written is what Prometheus' own parser reads back, in both formats."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.telemetry.exposition import (
    ExpositionFormat,
    Family,
    labels_text,
    merge_metrics,
    negotiate,
    number_text,
    write,
)
from prometheus_client import CollectorRegistry, Counter, Histogram, Info, Summary
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

TEXT, OPENMETRICS = ExpositionFormat.TEXT, ExpositionFormat.OPENMETRICS


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/json", TEXT),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8", OPENMETRICS),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            OPENMETRICS,
        ),
        ("application/openmetrics-text;q=0.4,text/plain;q=0.5", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=much", TEXT),
        (",;,=", TEXT),
    ],
)
def test_format_is_the_one_asked_for(accept: str, expected: ExpositionFormat) -> None:
    assert negotiate(accept) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12345678901234567890, "12345678901234567890"),
        (3.0, "3"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (-2.0, "-2"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.floats(allow_nan=False))
def test_numbers_lose_nothing(value: float) -> None:
    assert float(number_text(value)) == value


@given(
    st.dictionaries(st.sampled_from(("model", "version", "reason")), st.text(st.characters(codec="utf-8")), min_size=1)
)
def test_label_values_come_back_whatever_they_hold(labels: dict[str, str]) -> None:
    # A carriage return is the one thing the reference parser cuts lines at, though the format does not.
    labels = {key: "".join(part for part in value.splitlines()) + '\\"\n' for key, value in labels.items()}
    body = write([Family("kernelport_x", "gauge", "Help.", [f"kernelport_x{labels_text(labels)} 1"])], TEXT)
    (family,) = parse_text(body.decode())
    assert family.samples[0].labels == labels


def test_counters_carry_total_in_the_header_of_text_only() -> None:
    family = Family("kernelport_rows", "counter", "Rows.", ["kernelport_rows_total 3"])
    assert write([family], TEXT) == (
        b"# HELP kernelport_rows_total Rows.\n# TYPE kernelport_rows_total counter\nkernelport_rows_total 3\n"
    )
    assert write([family], OPENMETRICS) == (
        b"# HELP kernelport_rows Rows.\n# TYPE kernelport_rows counter\nkernelport_rows_total 3\n# EOF\n"
    )


def test_bare_counters_keep_their_name_and_are_untyped_only_where_they_must_be() -> None:
    family = Family("nv_inference_count", "bare_counter", "Rows.", ["nv_inference_count 3"])
    assert b"# TYPE nv_inference_count counter\nnv_inference_count 3\n" in write([family], TEXT)
    assert b"# TYPE nv_inference_count unknown\nnv_inference_count 3\n" in write([family], OPENMETRICS)


def test_help_text_is_escaped() -> None:
    family = Family("a", "gauge", 'back\\slash "quoted"\nnext', ["a 1"])
    assert write([family], TEXT).startswith(b'# HELP a back\\\\slash "quoted"\\nnext\n')
    assert write([family], OPENMETRICS).startswith(b'# HELP a back\\\\slash \\"quoted\\"\\nnext\n')
    (read,) = parse_text(write([family], TEXT).decode())
    assert read.documentation == family.help


def test_families_without_samples_are_left_out() -> None:
    assert write([Family("a", "gauge", "A.")], TEXT) == b""
    assert write([Family("a", "gauge", "A.")], OPENMETRICS) == b"# EOF\n"


def registry_with(count: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    counter = Counter("http_requests", "Requests.", ("status",), registry=registry)
    counter.labels("2xx").inc(count)
    Histogram("took_seconds", "Time.", buckets=(0.5, 1), registry=registry).observe(0.25)
    Summary("size_bytes", "Bytes.", registry=registry).observe(count)
    return registry


def test_two_sources_of_a_family_become_one_and_equal_samples_add_up() -> None:
    one, two = registry_with(2), registry_with(5)
    Counter("other", "Other.", registry=two).inc()
    families = merge_metrics([*one.collect(), *two.collect()])
    assert [family.name for family in families] == ["http_requests", "took_seconds", "size_bytes", "other"]
    assert families[0].lines == ['http_requests_total{status="2xx"} 7']
    assert families[1].lines == [
        'took_seconds_bucket{le="0.5"} 2',
        'took_seconds_bucket{le="1.0"} 2',
        'took_seconds_bucket{le="+Inf"} 2',
        "took_seconds_count 2",
        "took_seconds_sum 0.5",
    ]
    assert families[2].lines == ["size_bytes_count 2", "size_bytes_sum 7"]


@pytest.mark.parametrize("form", list(ExpositionFormat))
def test_every_kind_of_prometheus_client_is_readable_in_both_formats(form: ExpositionFormat) -> None:
    registry = registry_with(1)
    Info("build", "Build.", registry=registry).info({"version": "1"})
    body = write(merge_metrics(registry.collect()), form).decode()
    read = {family.name: family for family in (parse_text if form is TEXT else parse_openmetrics)(body)}
    assert read["http_requests"].type == "counter"
    assert read["took_seconds"].type == "histogram"
    assert read["size_bytes"].type == "summary"
    info = read["build_info" if form is TEXT else "build"]
    assert info.samples[0] == ("build_info", {"version": "1"}, 1.0, None, None, None)
