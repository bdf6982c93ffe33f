"""Served throughput of a model that takes over 5 ms a call, against onnxruntime in a bare loop at the same batch size.

    python -m benchmarks.compute_bound [--models slow magika] [--servers kernelport floor] [--windows 5 --seconds 4]

Both run on core 0, one window each in turn; wrk keeps twice the maximum batch in flight from core 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .console import Say, output, say
from .models import MODELS, model_file
from .report import markdown_table
from .rounds import RESULTS, SERVER_CORE, Plan, measure_window, started
from .servers import SERVERS
from .workloads import WORKLOADS, Workload, encode_request, sample_rows
from .wrk import write_script

HEAD = ("model", "batch", "one call", "bare loop, rows/s", "server", "served, rows/s", "served / bare")


@dataclass(frozen=True, slots=True)
class Bound:
    """One server against the bare loop for one model."""

    model: str
    server: str
    batch: int
    call_ms: float
    bare_rows_per_s: float
    served_rows_per_s: float

    @property
    def share(self) -> float:
        return self.served_rows_per_s / self.bare_rows_per_s

    def cells(self) -> list[str]:
        rates = [f"{self.bare_rows_per_s:,.0f}", self.server, f"{self.served_rows_per_s:,.0f}"]
        return [self.model, str(self.batch), f"{self.call_ms:.1f} ms", *rates, f"{self.share:.3f}"]


def run_bare(workload: Workload, batch: int, seconds: float) -> dict[str, float]:
    file = model_file(workload.model, RESULTS / "models")
    command = ["taskset", "-c", str(SERVER_CORE), sys.executable, "-m", "benchmarks.bare_loop", str(file)]
    options = ["--name", workload.model, "--batch", str(batch), "--seconds", str(seconds)]
    root = Path(__file__).resolve().parent.parent
    finished = subprocess.run([*command, *options], capture_output=True, text=True, check=True, cwd=root)
    fields: dict[str, float] = json.loads(finished.stdout)
    return fields


def compare(workload: Workload, names: Sequence[str], plan: Plan, say: Say) -> list[Bound]:
    """Alternates the bare loop with each server."""
    model = MODELS[workload.model]
    body = encode_request(model, sample_rows(model), workload.encoding)
    bare: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="kernelport-bench-") as scratch, ExitStack() as stack:
        script = write_script(body, Path(scratch), workload.name)
        fleet = [
            stack.enter_context(started(SERVERS[name], workload, plan, body, Path(scratch)))
            for name in names
            if not SERVERS[name].refuses(model, workload.encoding)
        ]
        for running in fleet:
            measure_window(running, workload, script, plan, plan.warmup_seconds)
        for number in range(plan.windows):
            bare.append(run_bare(workload, model.max_batch_size, plan.seconds))
            say(f"{workload.name} {number + 1}/{plan.windows} bare loop: {bare[-1]['rows_per_s']:,.0f} rows/s")
            for running in fleet:
                window = measure_window(running, workload, script, plan, plan.seconds)
                running.result.windows.append(window)
                say(
                    f"{workload.name} {number + 1}/{plan.windows} {running.server.name}: {window.requests_per_s:,.0f}/s"
                )
    return [
        Bound(
            model=workload.model,
            server=running.server.name,
            batch=model.max_batch_size,
            call_ms=median(fields["call_ms"] for fields in bare),
            bare_rows_per_s=median(fields["rows_per_s"] for fields in bare),
            served_rows_per_s=median(window.requests_per_s for window in running.result.windows),
        )
        for running in fleet
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compute_bound")
    parser.add_argument("--models", nargs="+", default=["slow", "magika"])
    parser.add_argument("--servers", nargs="+", default=["kernelport"])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    plan = Plan(arguments.windows, arguments.seconds)
    bounds = [
        bound
        for name in arguments.models
        for bound in compare(WORKLOADS[f"{name}-binary"], arguments.servers, plan, say)
    ]
    output.print(markdown_table(HEAD, [bound.cells() for bound in bounds]))


if __name__ == "__main__":
    main()
