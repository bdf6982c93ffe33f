"""`stats`: what the models of a running server have done so far. Runs on: anywhere."""

from __future__ import annotations

from typing import Any

import click
import orjson
from rich import box
from rich.markup import escape
from rich.table import Table

from .client import ServerClient, model_path, server_options
from .console import messages, output

_COLUMNS = ("Model", "Version", "OK", "Failed", "Rows", "Executions", "Rows/exec", "Queue", "Compute", "Total")


@click.command()
@click.argument("model", required=False)
@click.option("--version", "version", help="Only this version of MODEL.")
@click.option("--json", "as_json", is_flag=True, help="Print the server's answer as JSON.")
@server_options
def stats(model: str | None, version: str | None, as_json: bool, client: ServerClient) -> None:
    """Show counts and mean times of MODEL, or of all models.

    Queue, Compute and Total are means over the successful requests.
    """
    if version is not None and model is None:
        raise click.UsageError("--version needs a MODEL")
    path = "/v2/models/stats" if model is None else f"{model_path(model, version)}/stats"
    answer = client.get(path)
    if as_json:
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2))
        return
    entries = answer["model_stats"]
    if not entries:
        messages().print("no model has statistics yet")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(_COLUMNS):
        table.add_column(header, justify="left" if index < 2 else "right", overflow="fold")
    for entry in entries:
        table.add_row(*_cells(entry))
    output().print(table)


def _cells(entry: dict[str, Any]) -> list[str]:
    times = entry["inference_stats"]
    rows, executions = int(entry["inference_count"]), int(entry["execution_count"])
    compute = {
        "count": times["compute_infer"]["count"],
        "ns": sum(int(times[part]["ns"]) for part in ("compute_input", "compute_infer", "compute_output")),
    }
    return [
        escape(str(entry["name"])),
        escape(str(entry["version"])),
        str(times["success"]["count"]),
        str(times["fail"]["count"]),
        str(rows),
        str(executions),
        f"{rows / executions:.1f}" if executions else "-",
        _mean(times["queue"]),
        _mean(compute),
        _mean(times["success"]),
    ]


def _mean(duration: dict[str, Any]) -> str:
    count = int(duration["count"])
    if not count:
        return "-"
    micros = int(duration["ns"]) / count / 1000
    return f"{micros:.0f} us" if micros < 1000 else f"{micros / 1000:.2f} ms"
