"""Health routes: what load balancers, orchestrators and SDKs read."""

from __future__ import annotations

import pytest

LIVE = ["/v2/health/live", "/livez"]
READY = ["/v2/health/ready", "/readyz"]


@pytest.mark.parametrize("path", LIVE)
def test_a_living_server_says_so_in_json(ask, path):
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()) == (200, {"live": True})
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", LIVE)
def test_a_server_that_is_not_live_answers_503(ask, control, path):
    control.live = False
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()) == (503, {"live": False})


@pytest.mark.parametrize("path", READY)
def test_a_ready_server_says_so_in_json(ask, path):
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()) == (200, {"ready": True})


@pytest.mark.parametrize("path", READY)
def test_a_server_that_is_not_ready_answers_503_with_the_reason(ask, control, path):
    control.reason = "model 'resnet' failed to load"
    answer = ask("GET", path)
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reason": "model 'resnet' failed to load"}


@pytest.mark.parametrize("path", LIVE + READY)
@pytest.mark.parametrize("healthy", [True, False])
def test_head_has_the_status_of_get(ask, control, path, healthy):
    control.live = healthy
    control.reason = "" if healthy else "still loading"
    assert ask("HEAD", path).status_code == ask("GET", path).status_code == (200 if healthy else 503)


def test_the_root_says_alive_for_clients_of_the_v1_protocol(ask):
    answer = ask("GET", "/")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})
