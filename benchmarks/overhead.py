"""What metrics, logs and limits cost together: KernelPort as it is against a copy without them, and with more of them.

python -m benchmarks.overhead [--workload tiny-json] [--windows 5 --seconds 4]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .console import Say, output, say
from .report import Line, cells, headings, markdown_table, summarize
from .rounds import Plan, measure
from .servers.base import INSIDE, Command, Launch
from .servers.kernelport import KernelPort
from .workloads import WORKLOADS

BARE = "without"
USUAL = "as shipped"


class Stripped(KernelPort):
    """KernelPort with its counters, timing headers, logs and limits taken out."""

    def command(self, launch: Launch) -> Command:
        command = super().command(launch)
        start = command.arguments.index("serve")
        return Command([self.python, str(INSIDE / "kernelport_stripped.py"), *command.arguments[start:]], command.env)


def variants() -> list[KernelPort]:
    return [
        KernelPort(USUAL),
        Stripped(BARE),
        KernelPort("with access log", ("--access-log",)),
        KernelPort("with JSON access log", ("--access-log", "--log-format", "json")),
    ]


def compare(workloads: Sequence[str], plan: Plan, say: Say) -> list[tuple[str, list[Line]]]:
    return [(name, summarize(measure(WORKLOADS[name], variants(), plan, say), BARE)) for name in workloads]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead")
    parser.add_argument("--workload", nargs="+", default=["tiny-json"])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    plan = Plan(arguments.windows, arguments.seconds)
    for name, lines in compare(arguments.workload, plan, say):
        table = markdown_table(headings(BARE), [cells(line, BARE) for line in lines])
        output.print(f"{name}\n{table}")


if __name__ == "__main__":
    main()
