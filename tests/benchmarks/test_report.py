import pytest

from benchmarks.report import BEGIN, END, cells, duration, headings, markdown_table, replace_between_markers, summarize
from benchmarks.rounds import ServerResult
from benchmarks.wrk import Window


def result(name: str, *rates: float, bad: int = 0, foreign: float = 0.0) -> ServerResult:
    windows = [Window(requests_per_s=rate, p50_us=1000.0, p99_us=2500.0, bad_answers=bad) for rate in rates]
    return ServerResult(name, "1.0", windows, [foreign])


def test_the_ratio_is_the_bases_median_over_each_servers_median() -> None:
    lines = summarize([result("ours", 90, 100, 400), result("theirs", 10, 50, 60)], base="ours")
    assert [line.requests_per_s for line in lines] == [100, 50]
    assert [line.ratio for line in lines] == [1.0, 2.0]


def test_lowest_and_highest_windows_are_kept() -> None:
    (line,) = summarize([result("ours", 90, 100, 400)], base="ours")
    assert (line.lowest, line.highest) == (90, 400)


def test_a_server_that_failed_has_a_row_with_the_reason() -> None:
    failed = ServerResult("theirs", "", failure="ServerDied: exit status 1\nlong log")
    line = summarize([result("ours", 1), failed], base="ours")[1]
    assert cells(line, "ours") == ["theirs", "-", "-", "-", "-", "-", "-", "ServerDied: exit status 1"]


def test_bad_answers_and_a_disturbed_machine_are_noted() -> None:
    (line,) = summarize([result("ours", 1, 1, bad=3, foreign=0.9)], base="ours")
    note = cells(line, "ours")[-1]
    assert "6 bad answers" in note
    assert "0.90 cores" in note


def test_every_row_has_as_many_cells_as_there_are_headings() -> None:
    (line,) = summarize([result("ours", 1)], base="ours")
    assert len(cells(line, "ours")) == len(headings("ours"))


@pytest.mark.parametrize(("microseconds", "text"), [(170.4, "170 us"), (1300.0, "1.3 ms"), (41000.0, "41.0 ms")])
def test_durations_are_short(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text


def test_a_table_is_aligned_and_no_cell_can_break_it() -> None:
    lines = markdown_table(("a", "long heading"), [("x|y", "1")]).splitlines()
    assert lines == ["| a   | long heading |", "|-----|--------------|", "| x/y | 1            |"]


def test_only_the_text_between_the_markers_is_replaced() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_between_markers(document, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="has no lines"):
        replace_between_markers("nothing here", "new")
