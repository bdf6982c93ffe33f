"""docs/reference/metrics.md lists what /metrics shows: every family, its type, every outcome and reason."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from kernelport.core.model import ModelState, ModelStatus
from kernelport.core.timing import BatchTiming
from kernelport.telemetry.http_stats import HttpStats
from kernelport.telemetry.loop_lag import LoopLag
from kernelport.telemetry.metrics import Metrics
from kernelport.telemetry.stats import OUTCOMES, RELEASE_REASONS, ModelStats


class StillClock:
    """A clock at zero whose timers never fire."""

    def now_ns(self) -> int:
        return 0

    def call_at(self, when_ns: int, callback: object) -> "StillClock":
        raise AssertionError("nothing is planned")

    def call_soon(self, callback: object) -> None:
        raise AssertionError("nothing runs on this clock")

    def call_soon_threadsafe(self, callback: object, *args: object) -> None:
        raise AssertionError("nothing runs on this clock")

    def cancel(self) -> None:
        raise AssertionError("nothing was planned")


@pytest.fixture
def page(repository_root: Path) -> str:
    return (repository_root / "docs/reference/metrics.md").read_text()


def test_page_lists_every_family_with_its_type_and_no_other(page: str) -> None:
    http = HttpStats()
    http.route("/v2/models/{model}/infer", "POST").observe(200, 1, 1, 1)
    stats = ModelStats()
    stats.executed(BatchTiming(0, 1, 1, "single"))
    body, _ = Metrics(
        lambda: [(SimpleNamespace(name="m", version="1"), stats)],
        statuses=lambda: [ModelStatus("m", "1", ModelState.READY)],
        gate=SimpleNamespace(http_stats=http, connections=0, bytes_in_flight=0, in_flight=0, is_open=True),
        loop_lag=LoopLag(StillClock()),
    ).expose()
    shown = dict(re.findall(r"^# TYPE (\S+) (\S+)$", body.decode(), re.MULTILINE))
    listed = dict(re.findall(r"^\| `([a-z_]+)` \| (counter|gauge|histogram|summary) \|", page, re.MULTILINE))
    assert listed == shown


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_page_explains_every_outcome(outcome: str, page: str) -> None:
    assert f"| `{outcome}` |" in page


@pytest.mark.parametrize("reason", RELEASE_REASONS)
def test_page_explains_every_release_reason(reason: str, page: str) -> None:
    (paragraph,) = re.findall(r"^Reasons: .*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert f"`{reason}` (" in paragraph
