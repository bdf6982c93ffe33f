"""The lane's HTTP counters are exact and keep one entry per route."""

from kernelport.telemetry.http_stats import HIGHR_BOUNDS_S, LOWR_BOUNDS_S, HttpStats

MS = 1_000_000


def test_a_route_counts_replies_by_status_time_and_bytes() -> None:
    route = HttpStats().route("/v2/models/{model_name}/infer", "POST")
    route.observe(200, 40 * MS, 100, 1_000)
    route.observe(200, 60 * MS, 10, 2_000)
    route.observe(503, 1 * MS, 1, 50)
    assert route.statuses == {200: 2, 503: 1}
    assert (route.duration.count, route.duration.total) == (3, 101 * MS)
    assert (route.request_bytes, route.response_bytes) == (111, 3_050)


def test_the_same_route_has_the_same_counters() -> None:
    http = HttpStats()
    assert http.route("/a", "POST") is http.route("/a", "POST")
    assert http.route("/a", "POST") is not http.route("/b", "POST")
    assert list(http.routes) == [("/a", "POST"), ("/b", "POST")]


def test_coarse_bounds_are_among_the_fine_ones() -> None:
    assert set(LOWR_BOUNDS_S) <= set(HIGHR_BOUNDS_S)
    assert list(HIGHR_BOUNDS_S) == sorted(HIGHR_BOUNDS_S)
