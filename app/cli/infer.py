"""`infer`: send inputs from the command line or from files to a model and print what it answers. Runs on: anywhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import orjson

from ..core.tensor import BYTES, DATATYPES, DataType
from .client import ServerClient, model_path, server_options
from .console import complain, messages
from .payload import Body, Payload, read_payloads
from .wire import HEADER_LENGTH, Output, decode_answer, encode_binary, encode_json, json_ready


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option("--version", "version", help="Version of the model; the server chooses when absent.")
@click.option("--output", "wanted", multiple=True, metavar="NAME", help="Only this output. Repeatable.")
@click.option("--binary", is_flag=True, help="Send and receive tensors as raw bytes.")
@click.option("--json", "as_json", is_flag=True, help="Print each answer as one line of JSON.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the outputs to this .npz file.")
@server_options
def infer(
    model: str,
    data: tuple[str, ...],
    version: str | None,
    wanted: tuple[str, ...],
    binary: bool,
    as_json: bool,
    save: Path | None,
    client: ServerClient,
) -> int:
    """Run MODEL on DATA and print the outputs.

    \b
    DATA is one of
      '{"X": [[1, 2, 3]]}'         inputs by name; shapes are read off the lists
      '{"inputs": [...]}'          a whole request of the Open Inference Protocol
      request.json                 either of them in a file
      many.jsonl                   one request a line
      inputs.npz                   numpy arrays by input name
      -                            lines of JSON from standard input
    """
    datatypes = _input_datatypes(client, model, version)
    stdin = sys.stdin.read() if "-" in data else ""
    payloads = [payload for one in data for payload in read_payloads(one, datatypes, stdin)]
    if save is not None and len(payloads) != 1:
        raise click.UsageError(f"--save takes the outputs of one request; there are {len(payloads)}")
    path = f"{model_path(model, version)}/infer"
    failed = 0
    for payload in payloads:
        try:
            answer, outputs = _ask(client, path, _with_outputs(payload, wanted), binary)
        except click.ClickException as error:
            if len(payloads) == 1:
                raise
            failed += 1
            complain(f"{payload.source}: {error.format_message()}")
            continue
        _show(answer, outputs, as_json, payload.source if len(payloads) > 1 else "")
        if save is not None:
            _save(save, outputs)
    if failed:
        messages().print(f"{failed} of {len(payloads)} requests failed")
    return 1 if failed else 0


def _input_datatypes(client: ServerClient, model: str, version: str | None) -> dict[str, DataType]:
    metadata = client.get(model_path(model, version))
    return {one["name"]: DATATYPES[one["datatype"]] for one in metadata["inputs"] if one["datatype"] in DATATYPES}


def _with_outputs(payload: Payload, wanted: Sequence[str]) -> Body:
    return {**payload.body, "outputs": [{"name": name} for name in wanted]} if wanted else payload.body


def _ask(client: ServerClient, path: str, body: Body, binary: bool) -> tuple[Body, list[Output]]:
    content, headers = encode_binary(body) if binary else encode_json(body)
    response = client.send("POST", path, content, headers)
    return decode_answer(response.content, response.headers.get(HEADER_LENGTH))


def _show(answer: dict[str, Any], outputs: Sequence[Output], as_json: bool, source: str) -> None:
    if as_json:
        click.echo(orjson.dumps({**answer, "outputs": [json_ready(output) for output in outputs]}))
        return
    if source:
        click.echo(f"# {source}")
    for output in outputs:
        click.echo(f"{output.name} {output.datatype.name} {list(output.array.shape)}")
        click.echo(_array_text(output))


def _array_text(output: Output) -> str:
    array = output.array
    if output.datatype is BYTES:
        texts = [
            item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else item for item in array.ravel()
        ]
        shown = np.empty(len(texts), dtype=object)
        shown[:] = texts
        array = shown.reshape(array.shape)
    return np.array2string(array, threshold=200, max_line_width=120)


def _save(path: Path, outputs: Sequence[Output]) -> None:
    texts = [output.name for output in outputs if output.datatype is BYTES]
    if texts:
        raise click.UsageError(f"--save cannot hold BYTES outputs ({', '.join(texts)}); choose others with --output")
    try:
        with path.open("wb") as file:
            np.savez(file, **{output.name: output.array for output in outputs})  # type: ignore[arg-type]
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error
    messages().print(f"saved {len(outputs)} outputs to {path}")
