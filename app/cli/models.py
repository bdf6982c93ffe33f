"""`models`, `load`, `unload`: the repository of a running server. Runs on: anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from ..serving.overview import ModelRow
from .client import ServerClient, model_path, server_options
from .console import messages, output
from .table import models_table


@click.command()
@server_options
@click.option("--ready", is_flag=True, help="Only versions that are ready.")
@click.option("--json", "as_json", is_flag=True, help="Print the server's answer as JSON.")
def models(client: ServerClient, ready: bool, as_json: bool) -> None:
    """List the models of a running server, with state and reason."""
    index = client.post("/v2/repository/index", {"ready": ready})
    if as_json:
        click.echo(orjson.dumps(index, option=orjson.OPT_INDENT_2))
        return
    rows = [_row(client, entry) for entry in index]
    if not rows:
        messages().print("no models" + (" are ready" if ready else " in the repository"))
        return
    output().print(models_table(rows, show_device=False))


def _row(client: ServerClient, entry: dict[str, Any]) -> ModelRow:
    name, version = str(entry["name"]), str(entry.get("version", ""))
    backend = ""
    if entry.get("state") == "READY":
        metadata = client.get(model_path(name, version or None))
        backend = str(metadata.get("platform", ""))
    return ModelRow(
        name=name,
        version=version,
        backend=backend,
        state=str(entry.get("state", "")),
        reason=str(entry.get("reason", "")),
    )


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--config", metavar="JSON|FILE", help="A model configuration to use instead of the one in the repository."
)
@server_options
def load(names: tuple[str, ...], config: str | None, client: ServerClient) -> None:
    """Load models, or load them again if their files changed."""
    body: dict[str, Any] = {}
    if config is not None:
        body["parameters"] = {"config": _config_text(config)}
    for name in names:
        client.post(_repository_path(name, "load"), body)
        messages().print(f"loaded {name}")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@server_options
def unload(names: tuple[str, ...], client: ServerClient) -> None:
    """Unload models; what they have accepted is finished first."""
    for name in names:
        client.post(_repository_path(name, "unload"))
        messages().print(f"unloaded {name}")


def _repository_path(name: str, verb: str) -> str:
    return model_path(name).replace("/v2/models/", "/v2/repository/models/", 1) + f"/{verb}"


def _config_text(config: str) -> str:
    """The JSON text of `--config`, given inline or as a file."""
    text = config
    if not config.lstrip().startswith("{"):
        path = Path(config)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--config is neither JSON nor a readable file: {path}: {error.strerror}") from error
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.UsageError(f"--config is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise click.UsageError("--config must be a JSON object with fields of the model configuration")
    return text
