"""The metrics route, and the HTTP families that the instrumentator counts."""

from __future__ import annotations


def _series(text: str, name: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith(name)]
    return {series: float(value) for series, _, value in lines}


def test_metrics_are_prometheus_text(ask):
    answer = ask("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "kernelport_build_info" in answer.text


def test_openmetrics_is_given_when_asked_for(ask):
    answer = ask("GET", "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_requests_are_counted_under_their_route_and_not_under_what_clients_send(ask):
    ask("GET", "/v2/models/echo")
    ask("GET", "/v2/models/nope")
    ask("GET", "/no/such/path")
    ask("GET", "/nor/this")
    counted = _series(ask("GET", "/metrics").text, "http_requests_total")
    assert counted == {
        'http_requests_total{method="GET",status="2xx",handler="/v2/models/{model}"}': 1,
        'http_requests_total{method="GET",status="4xx",handler="/v2/models/{model}"}': 1,
        'http_requests_total{method="GET",status="4xx",handler="none"}': 2,
    }


def test_an_inference_on_this_path_is_counted_once(ask):
    body = {"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}]}
    ask("POST", "/v2/models/echo/infer", json=body)
    counted = _series(ask("GET", "/metrics").text, "http_requests_total")
    assert sum(counted.values()) == 1
    assert "/v2/models/{model}/infer" in next(iter(counted))


def test_each_family_is_described_once_although_two_sources_feed_it(ask, gate):
    gate.http_stats.route("/v2/models/{model}/infer", "POST").observe(200, 1_000_000, 10, 20)
    ask("GET", "/v2")
    text = ask("GET", "/metrics").text
    types = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    assert sum(_series(text, "http_requests_total").values()) == 2
