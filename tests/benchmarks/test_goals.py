from benchmarks.goals import Goal, reached, verdicts
from benchmarks.report import Line


def line(name: str, rate: float, p50_us: float = 100.0, failure: str = "") -> Line:
    return Line(name, rate, rate, rate, p50_us, p50_us, 0.0, 1.0, 0, 0.0, failure)


LINES = [line("kernelport", 300, p50_us=150), line("triton", 100, p50_us=120), line("mlserver", 0, failure="it died")]


def test_a_throughput_goal_compares_requests_per_second() -> None:
    assert reached(Goal(2, "triton"), LINES) == 3.0


def test_a_p50_goal_is_met_by_the_shorter_time() -> None:
    assert reached(Goal(1, "triton", measure="p50"), LINES) == 0.8


def test_a_goal_against_a_server_that_failed_is_not_measured() -> None:
    assert reached(Goal(10, "mlserver"), LINES) is None


def test_verdicts_say_met_missed_or_not_measured() -> None:
    goals = [Goal(2, "triton"), Goal(4, "triton"), Goal(10, "mlserver")]
    assert [row[-1] for row in verdicts(goals, LINES)] == ["met", "**missed**", "not measured"]
