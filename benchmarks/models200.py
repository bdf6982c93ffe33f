"""Whether 200 loaded models slow the requests to one of them.

    python -m benchmarks.models200 [--count 200] [--windows 5 --seconds 4]

Two KernelPort servers take turns: one serves the tiny model alone, the other serves it beside `count - 1` copies.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence

from .console import Say, output, say
from .report import Line, cells, headings, markdown_table, summarize
from .rounds import Plan, measure
from .servers.base import Command, Launch
from .servers.kernelport import KernelPort
from .workloads import WORKLOADS

ALONE = "1 model"


class Crowded(KernelPort):
    """KernelPort with copies of the workload's model under other names."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} models")
        self.copies = count - 1

    def command(self, launch: Launch) -> Command:
        command = super().command(launch)
        repository = launch.directory / "repository"
        for number in range(self.copies):
            shutil.copytree(repository / launch.model.name, repository / f"copy-{number:03}", dirs_exist_ok=True)
        return command


def compare(count: int, workloads: Sequence[str], plan: Plan, say: Say) -> list[tuple[str, list[Line]]]:
    servers = [KernelPort(ALONE), Crowded(count)]
    return [(name, summarize(measure(WORKLOADS[name], servers, plan, say), ALONE)) for name in workloads]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models200")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--workload", nargs="+", default=["tiny-json"])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    plan = Plan(arguments.windows, arguments.seconds)
    for name, lines in compare(arguments.count, arguments.workload, plan, say):
        table = markdown_table(headings(ALONE), [cells(line, ALONE) for line in lines])
        output.print(f"{name}\n{table}")


if __name__ == "__main__":
    main()
