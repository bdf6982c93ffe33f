"""Measures every section of docs/performance.md in one go, and writes its table: `python -m benchmarks table`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from . import compute_bound, decode, models200, overhead
from .console import Say
from .goals import Goal, verdicts
from .report import Line, cells, headings, markdown_table, replace_between_markers, summarize
from .rounds import RESULTS, Plan, measure
from .servers import SERVERS
from .workloads import WORKLOADS

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
STORE = RESULTS / "table.json"
COMMAND = "python -m benchmarks table"
BASE = "kernelport"
BARE_SHARE = 0.95
PEERS = ("triton", "mlserver", "kserve", "litserve", "fastapi")


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the document and what is measured under it."""

    name: str
    title: str
    render: Callable[[Plan, Say], str]


def _lines_as_markdown(lines: Sequence[Line], base: str) -> str:
    return markdown_table(headings(base), [cells(line, base) for line in lines])


def _goals_as_markdown(goals: Sequence[Goal], lines: Sequence[Line]) -> str:
    return markdown_table(("goal", "reached", "verdict"), verdicts(goals, lines))


def served(workload: str, servers: Sequence[str], goals: Sequence[Goal] = (), pinned: bool = True) -> Section:
    """A section that measures servers side by side."""

    def render(plan: Plan, say: Say) -> str:
        plan = replace(plan, pinned=pinned)
        results = measure(WORKLOADS[workload], [SERVERS[name] for name in servers], plan, say)
        lines = summarize(results, BASE)
        parts = [plan.describe() + ".", _lines_as_markdown(lines, BASE)]
        if goals:
            parts.append(_goals_as_markdown(goals, lines))
        return "\n\n".join(parts)

    name = workload if pinned else f"{workload}-unpinned"
    title = WORKLOADS[workload].about + ("" if pinned else ", both cores shared with wrk")
    return Section(name, title, render)


def render_compute_bound(plan: Plan, say: Say) -> str:
    bounds = [
        bound
        for name in ("slow-binary", "magika-binary")
        for bound in compute_bound.compare(WORKLOADS[name], ["kernelport", "floor"], plan, say)
    ]
    rows = []
    for bound in bounds:
        if bound.server == BASE:
            verdict = "met" if bound.share >= BARE_SHARE else "**missed**"
            rows.append([f"{BARE_SHARE} x the bare loop ({bound.model})", f"{bound.share:.3f} x", verdict])
    table = markdown_table(compute_bound.HEAD, [bound.cells() for bound in bounds])
    return "\n\n".join([plan.describe() + ".", table, markdown_table(("goal", "reached", "verdict"), rows)])


def render_decode(plan: Plan, say: Say) -> str:
    say("decoding")
    return markdown_table(decode.HEAD, decode.rows_of(decode.measure_decoders(25)))


def render_overhead(plan: Plan, say: Say) -> str:
    goal = Goal(0.9, overhead.BARE, overhead.USUAL)
    parts = [plan.describe() + "."]
    for _, lines in overhead.compare(["tiny-json"], plan, say):
        parts += [_lines_as_markdown(lines, overhead.BARE), _goals_as_markdown([goal], lines)]
    return "\n\n".join(parts)


def render_models200(plan: Plan, say: Say) -> str:
    parts = [plan.describe() + "."]
    for name, lines in models200.compare(200, ["tiny-json", "tiny-json-1"], plan, say):
        goal = Goal(0.97, models200.ALONE, "200 models")
        about = f"{WORKLOADS[name].about}:"
        parts += [about, _lines_as_markdown(lines, models200.ALONE), _goals_as_markdown([goal], lines)]
    return "\n\n".join(parts)


SECTIONS: tuple[Section, ...] = (
    served(
        "tiny-json",
        ("kernelport", "floor", *PEERS),
        [Goal(10, "mlserver"), Goal(10, "kserve"), Goal(10, "litserve"), Goal(2, "triton"), Goal(0.55, "floor")],
    ),
    served("tiny-json", ("kernelport", "floor", "triton"), pinned=False),
    served(
        "tiny-json-1",
        ("kernelport", "floor", "triton-unbatched", "mlserver-unbatched", "kserve", "litserve-unbatched", "fastapi"),
        [Goal(1, "triton-unbatched", measure="p50")],
    ),
    served("mlp-json", ("kernelport", "floor", *PEERS), [Goal(1.4, "triton")]),
    served("mlp-binary", ("kernelport", "floor", "triton", "kserve"), [Goal(1.4, "triton")]),
    served(
        "image-json",
        ("kernelport", "floor", "floor-orjson", *PEERS),
        [Goal(4, "floor-orjson"), Goal(5, "triton")],
    ),
    Section("decode", "reading an image from JSON", render_decode),
    served("image-binary", ("kernelport", "floor", "triton", "kserve"), [Goal(0.9, "floor"), Goal(1.2, "triton")]),
    Section("compute-bound", "models of over 5 ms a call, against onnxruntime in a bare loop", render_compute_bound),
    Section("overhead", "what metrics, logs and limits cost", render_overhead),
    Section("models200", "200 loaded models", render_models200),
)


def machine() -> str:
    """One line about where the numbers come from."""
    processor = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    distributions = ("onnxruntime", "numpy", "uvicorn", "uvloop", "orjson", "pysimdjson")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in distributions)
    system = f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    return f"{processor}, {system}, {versions}"


def compose(stored: dict[str, dict[str, str]], about_machine: str, peers: str) -> str:
    """The text between the markers, sections in their order; pure."""
    parts = [f"`{COMMAND}` on {about_machine}.", f"Servers: {peers}."]
    for section in SECTIONS:
        entry = stored.get(section.name)
        if entry is not None:
            parts.append(f"### {section.title}\n\nSection `{section.name}`, {entry['date']}.\n\n{entry['text']}")
    return "\n\n".join(parts)


def write_table(plan: Plan, only: Sequence[str], say: Say) -> int:
    """Measures the sections (or `only` some of them) and rewrites the document's table from all that are stored."""
    known = [section.name for section in SECTIONS]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"unknown section {unknown[0]!r}; known: {', '.join(known)}")
    stored: dict[str, dict[str, str]] = json.loads(STORE.read_text()) if STORE.exists() and only else {}
    is_complete = True
    for section in SECTIONS:
        if only and section.name not in only:
            continue
        say(f"=== {section.name}")
        try:
            text = section.render(plan, say)
        except Exception as error:  # one section must not cost the results of an hour
            say(f"{section.name} failed: {type(error).__name__}: {error}")
            text = f"Not measured: {type(error).__name__}."
            is_complete = False
        stored[section.name] = {"date": time.strftime("%Y-%m-%d"), "text": text}
        STORE.parent.mkdir(parents=True, exist_ok=True)
        STORE.write_text(json.dumps(stored, indent=1))
        content = compose(stored, machine(), peer_versions())
        DOCUMENT.write_text(replace_between_markers(DOCUMENT.read_text(), content))
    say(f"wrote {DOCUMENT}")
    return 0 if is_complete else 1


def peer_versions() -> str:
    wrk = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    first = (wrk.stdout + wrk.stderr).split("\n", 1)[0].split("[")[0].strip()
    peers = [f"{SERVERS[name].requirements[0].split('==')[0]} {SERVERS[name].version()}" for name in PEERS]
    return ", ".join([*peers, first])
