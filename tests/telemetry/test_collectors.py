"""The lane's HTTP families start at zero; the machine's CPU and memory are read as Triton reads them."""

from pathlib import Path

from kernelport.telemetry.collectors import LaneCollector, MachineCollector
from kernelport.telemetry.http_stats import HttpStats


def write_proc(proc: Path, cpu: str, available_kb: int) -> None:
    (proc / "stat").write_text(f"cpu  {cpu}\ncpu0 1 2 3 4 5 6 7 8 9 10\nbtime 1\n")
    (proc / "meminfo").write_text(
        f"MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  {available_kb} kB\nHugePages_Total:  0\n"
    )


def readings(collector: MachineCollector) -> dict[str, float]:
    return {sample.name: sample.value for metric in collector.collect() for sample in metric.samples}


def test_utilization_is_the_busy_share_since_the_scrape_before(tmp_path: Path) -> None:
    collector = MachineCollector(tmp_path)
    #                  user nice system idle iowait irq softirq steal guest guest_nice
    write_proc(tmp_path, "100 0 100 700 100 0 0 0 50 0", 400)
    assert readings(collector) == {
        "nv_cpu_utilization": 0.2,
        "nv_cpu_memory_total_bytes": 1_024_000,
        "nv_cpu_memory_used_bytes": 614_400,
    }
    write_proc(tmp_path, "130 10 120 720 110 5 5 0 90 0", 300)
    assert readings(collector)["nv_cpu_utilization"] == 0.7


def test_two_scrapes_in_one_tick_do_not_divide_by_zero(tmp_path: Path) -> None:
    collector = MachineCollector(tmp_path)
    write_proc(tmp_path, "100 0 100 700 100 0 0 0 0 0", 400)
    readings(collector)
    assert readings(collector)["nv_cpu_utilization"] == 0


def test_without_proc_there_are_no_series(tmp_path: Path) -> None:
    assert readings(MachineCollector(tmp_path)) == {}


def test_a_route_without_requests_shows_zeros() -> None:
    http = HttpStats()
    http.route("/v2/models/{model}/infer", "POST")
    samples = [sample for metric in LaneCollector(http).collect() for sample in metric.samples]
    assert {sample.name for sample in samples} >= {"http_requests_total", "http_request_duration_seconds_count"}
    assert {sample.value for sample in samples} == {0}
