"""Command line of the benchmarks: `python -m benchmarks list | install | models | run | table`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .console import output, say
from .models import MODELS, model_file
from .report import cells, headings, markdown_table, summarize
from .rounds import RESULTS, Plan, ServerResult, measure
from .servers import SERVERS
from .servers.base import Server
from .servers.kernelport import write_repository
from .servers.url import AnyUrl
from .workloads import WORKLOADS, Workload


def pick_servers(names: str, urls: Sequence[str]) -> list[Server]:
    """The servers behind `--servers a,b` and `--url name=http://...`."""
    servers: list[Server] = []
    for name in filter(None, names.split(",")):
        if name not in SERVERS:
            raise SystemExit(f"unknown server {name!r}; known: {', '.join(SERVERS)}")
        servers.append(SERVERS[name])
    for text in urls:
        name, separator, url = text.partition("=")
        if not separator or not url.startswith("http://"):
            raise SystemExit(f"--url wants NAME=http://HOST:PORT, got {text!r}")
        servers.append(AnyUrl(name, url))
    if not servers:
        raise SystemExit("nothing to measure: give --servers or --url")
    return servers


def pick_workloads(names: Sequence[str]) -> list[Workload]:
    for name in names:
        if name not in WORKLOADS:
            raise SystemExit(f"unknown workload {name!r}; known: {', '.join(WORKLOADS)}")
    return [WORKLOADS[name] for name in names]


def show(workload: Workload, results: Sequence[ServerResult], plan: Plan, base: str) -> None:
    table = markdown_table(headings(base), [cells(line, base) for line in summarize(results, base)])
    output.print(f"{workload.name}: {workload.about}\n{plan.describe()}\n\n{table}\n")


def run(arguments: argparse.Namespace) -> int:
    servers = pick_servers(arguments.servers, arguments.url)
    base = arguments.base or servers[0].name
    plan = Plan(arguments.windows, arguments.seconds, arguments.warmup_seconds, not arguments.unpinned)
    is_clean = True
    for workload in pick_workloads(arguments.workload):
        results = measure(workload, servers, plan, say)
        show(workload, results, plan, base)
        is_clean &= not any(result.failure or sum(w.bad_answers for w in result.windows) for result in results)
    return 0 if is_clean else 1


def install(arguments: argparse.Namespace) -> int:
    for name in arguments.servers or SERVERS:
        if name not in SERVERS:
            raise SystemExit(f"unknown server {name!r}; known: {', '.join(SERVERS)}")
        server = SERVERS[name]
        if server.requirements and server.environment.name == name:
            say(f"{name}: {' '.join(server.requirements)}")
            say("  installed" if server.install() else "  is there already")
    return 0


def show_list(arguments: argparse.Namespace) -> int:
    workloads = [(workload.name, workload.about) for workload in WORKLOADS.values()]
    servers = [(server.name, server.about) for server in SERVERS.values()]
    output.print(markdown_table(("workload", "about"), workloads))
    output.print()
    output.print(markdown_table(("server", "about"), servers))
    return 0


def write_models(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    for model in MODELS.values():
        if model.is_built:
            write_repository(folder, model, model_file(model.name, RESULTS / "models"))
    output.print(f"wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder}")
    return 0


def table(arguments: argparse.Namespace) -> int:
    from .table import write_table

    plan = Plan(arguments.windows, arguments.seconds)
    return write_table(plan, arguments.only, say)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)

    listing = commands.add_parser("list", help="show workloads and servers")
    listing.set_defaults(call=show_list)

    installing = commands.add_parser("install", help="make the peers' own environments under benchmarks/envs/")
    installing.add_argument("servers", nargs="*", metavar="SERVER", help="default: all")
    installing.set_defaults(call=install)

    modelling = commands.add_parser("models", help="write the models of the workloads as a model repository")
    modelling.add_argument("folder")
    modelling.set_defaults(call=write_models)

    running = commands.add_parser("run", help="measure one or more workloads in alternating windows")
    running.add_argument("--workload", nargs="+", default=["tiny-json"], metavar="NAME")
    running.add_argument("--servers", default="", metavar="A,B,C")
    running.add_argument("--url", action="append", default=[], metavar="NAME=URL", help="a server that already runs")
    running.add_argument("--base", help="the server that the ratios compare with (default: the first)")
    running.add_argument("--windows", type=int, default=5)
    running.add_argument("--seconds", type=float, default=4.0)
    running.add_argument("--warmup-seconds", type=float, default=2.0)
    running.add_argument("--unpinned", action="store_true", help="let server and wrk share all cores")
    running.set_defaults(call=run)

    writing = commands.add_parser("table", help="measure every row of docs/performance.md and write its table")
    writing.add_argument("--windows", type=int, default=5)
    writing.add_argument("--seconds", type=float, default=4.0)
    writing.add_argument("--only", nargs="+", default=[], metavar="SECTION", help="measure only these sections")
    writing.set_defaults(call=table)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = build_parser().parse_args(argv)
    code: int = arguments.call(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
