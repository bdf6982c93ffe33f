"""Turns windows into medians, ratios and tables. Pure: no clock, no processes, no files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from .rounds import ServerResult

BEGIN = "<!-- benchmark table: begin -->"
END = "<!-- benchmark table: end -->"
DISTURBED_CORES = 0.25  # more than this of a core was busy with something else; interrupts alone take about 0.1


@dataclass(frozen=True, slots=True)
class Line:
    """One server's row of a workload's table."""

    server: str
    requests_per_s: float
    lowest: float
    highest: float
    p50_us: float
    p99_us: float
    cpu_us: float
    ratio: float  # the base's median over this server's: above 1, the base is faster
    bad_answers: int
    disturbed: float
    failure: str


def summarize(results: Sequence[ServerResult], base: str) -> list[Line]:
    """Medians over the windows, and the base's median divided by each server's."""
    medians = {
        result.server: median(window.requests_per_s for window in result.windows)
        for result in results
        if result.windows
    }
    lines = []
    for result in results:
        if not result.windows:
            lines.append(Line(result.server, 0, 0, 0, 0, 0, 0, 0, 0, 0, result.failure or "not measured"))
            continue
        rates = [window.requests_per_s for window in result.windows]
        own = medians[result.server]
        lines.append(
            Line(
                server=result.server,
                requests_per_s=own,
                lowest=min(rates),
                highest=max(rates),
                p50_us=median(window.p50_us for window in result.windows),
                p99_us=median(window.p99_us for window in result.windows),
                cpu_us=median(window.server_cpu_us for window in result.windows),
                ratio=medians[base] / own if base in medians and own else 0.0,
                bad_answers=sum(window.bad_answers for window in result.windows),
                disturbed=median(result.foreign_cpu) if result.foreign_cpu else 0.0,
                failure="",
            )
        )
    return lines


def duration(microseconds: float) -> str:
    return f"{microseconds:.0f} us" if microseconds < 1000 else f"{microseconds / 1000:.1f} ms"


def rate(requests_per_s: float) -> str:
    return f"{requests_per_s:,.0f}" if requests_per_s >= 100 else f"{requests_per_s:,.1f}"


def cells(line: Line, base: str) -> list[str]:
    """The printed form of a line: server, rate, range, p50, p99, CPU, ratio, note."""
    if line.failure:
        return [line.server, "-", "-", "-", "-", "-", "-", line.failure.splitlines()[0][:160]]
    notes = []
    if line.bad_answers:
        notes.append(f"{line.bad_answers} bad answers")
    if line.disturbed > DISTURBED_CORES:
        notes.append(f"{line.disturbed:.2f} cores busy with something else")
    ratio = "1" if line.server == base else f"{line.ratio:.2f}"
    spread = f"{rate(line.lowest)} - {rate(line.highest)}"
    times = [duration(line.p50_us), duration(line.p99_us), duration(line.cpu_us) if line.cpu_us else "-"]
    return [line.server, rate(line.requests_per_s), spread, *times, ratio, "; ".join(notes)]


def headings(base: str) -> list[str]:
    return [
        "server",
        "requests/s",
        "lowest - highest",
        "p50",
        "p99",
        "server CPU a request",
        f"{base} is x times faster",
        "note",
    ]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are padded, so that it can be read as plain text too."""
    texts = [list(head)] + [[cell.replace("|", "/") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in texts
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def replace_between_markers(document: str, content: str) -> str:
    """The document with everything between the two marker lines replaced."""
    before, found, rest = document.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise ValueError(f"the document has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{content.strip()}\n\n{END}{after}"
