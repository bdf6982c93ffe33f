"""Writes the option references from the models themselves: `python -m kernelport.config.docs docs/reference`.

Runs on: anywhere (from the command line).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from .model import ModelConfig
from .server import ServerSettings
from .sizes import format_bytes

_MADE_BY = (
    "<!-- Made by `python -m kernelport.config.docs docs/reference`; change the models in app/config instead. -->"
)
# The field that opens each group of server options.
_GROUPS = {
    "host": "Where it listens",
    "models": "What it serves",
    "device": "How it computes",
    "infer_lane": "What it accepts",
    "drain_delay_s": "How it stops and what it tells",
}


def references() -> dict[str, str]:
    """File name to content of everything that is generated."""
    return {
        "server-options.md": server_options(),
        "model-config.md": model_reference(),
        "model-config.schema.json": json.dumps(model_schema(), indent=2, ensure_ascii=False) + "\n",
    }


def model_schema() -> dict[str, Any]:
    """The JSON Schema of `model.yaml`, for editors."""
    schema = _without_null(ModelConfig.model_json_schema())
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "KernelPort model.yaml"}
    return head | {key: value for key, value in schema.items() if key != "title"}


def _without_null(schema: Any, key: str = "") -> Any:
    """The loader refuses empty values, so `null` is only right for batch_axis."""
    if isinstance(schema, list):
        return [_without_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: _without_null(value, name) for name, value in schema.items()}
    if key != "batch_axis" and isinstance(result.get("anyOf"), list):
        choices = [one for one in result.pop("anyOf") if one != {"type": "null"}]
        result = {**result, "anyOf": choices} if len(choices) > 1 else {**choices[0], **result}
        if result.get("default", ...) is None:
            del result["default"]
    return result


def server_options() -> str:
    """Markdown tables of every server option."""
    lines = [
        "# Server options",
        "",
        _MADE_BY,
        "",
        "Every option is a flag of `kernelport serve`, an environment variable and a key of the file given with",
        "`--config`. A flag wins over a variable, a variable over the file, the file over the default. Lists take",
        "commas in a variable; sizes take units (`64MiB`, `1GB`). Unknown options are refused.",
    ]
    properties = ServerSettings.model_json_schema()["properties"]
    for name, field in ServerSettings.model_fields.items():
        if name in _GROUPS:
            lines += [
                "",
                f"## {_GROUPS[name]}",
                "",
                "| flag | variable | default | what it does |",
                "|---|---|---|---|",
            ]
        flag = "`PATH...`" if name == "models" else f"`--{name.replace('_', '-')}`"
        text = f"{field.description} {_choices(properties[name])}".strip()
        lines.append(f"| {flag} | `KERNELPORT_{name.upper()}` | {_default(name, field.default)} | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def model_reference() -> str:
    """Markdown tables of every key of `model.yaml`, block by block."""
    schema = model_schema()
    lines = [
        "# Model configuration",
        "",
        _MADE_BY,
        "",
        "These keys go into `model.yaml` in a model's folder (Triton's names, plus KernelPort's own), or, as far as",
        "they are Triton's, into a `config.pbtxt`; never both. Every key is optional: what is absent is read from the",
        "model. `model-config.schema.json` beside this page lets an editor check and complete the file; begin it with",
        "`# yaml-language-server: $schema=<path or URL of model-config.schema.json>`.",
    ]
    for title, block in _blocks(schema):
        lines += ["", f"## {title}", "", block.get("description", "").split("\n")[0], ""]
        properties = block.get("properties", {})
        if properties:
            lines += ["| key | type | default | what it means |", "|---|---|---|---|"]
        for name, one in properties.items():
            lines.append(f"| `{name}` | {_cell(_type(one))} | {_value(one)} | {_cell(one.get('description', ''))} |")
    return "\n".join(lines) + "\n"


def _blocks(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "model.yaml", schema
    yield from sorted(schema.get("$defs", {}).items())


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    return str({"object": "map", "boolean": "true or false"}.get(kind, kind))


def _value(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    if default in (None, "", [], {}) or isinstance(default, dict):
        return ""
    return f"`{json.dumps(default)}`"


def _choices(schema: dict[str, Any]) -> str:
    return f"One of {_type(schema)}." if "enum" in schema else ""


def _default(name: str, default: Any) -> str:
    if default in ("", (), None):
        return ""
    if name.endswith("_bytes"):
        return f"`{format_bytes(default)}`"
    return f"`{json.dumps(default) if isinstance(default, bool) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write(folder: Path) -> list[Path]:
    """Write every reference into `folder`; returns the files that were changed."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = []
    for name, content in references().items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != content:
            path.write_text(content, "utf-8")
            changed.append(path)
    return changed


def check_described(model: type[BaseModel]) -> list[str]:
    """Fields of a model that lack a one-line description."""
    return [name for name, field in model.model_fields.items() if not field.description or "\n" in field.description]


if __name__ == "__main__":
    for path in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")):
        sys.stdout.write(f"{path}\n")
