"""The server's options from flags, environment and file, in that order of strength. Runs on: anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..core.errors import ConfigError
from .explain import reason
from .server import ServerSettings
from .suggest import did_you_mean
from .text_file import read_text_file
from .yaml_text import YamlDocument, parse_yaml

PREFIX = "KERNELPORT_"
# What Kubernetes and Docker links inject for a service that is called kernelport.
_SERVICE_LINK = re.compile(r"KERNELPORT_(SERVICE_(HOST|PORT(_\w+)?)|PORT_[0-9]+_(TCP|UDP)(_\w+)?)", re.ASCII)
_LINK_URL = re.compile(r"(tcp|udp)://", re.ASCII)


def load_settings(
    flags: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None, file: Path | str | None = None
) -> ServerSettings:
    """Merge `flags` over `env` (default: the process's) over `file` over the defaults; raises ConfigError.

    Flags are keyed by field name; None counts as not given. The file is `file`, else the option `config`.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    _refuse_unknown_flags(given)
    variables = _from_environment(os.environ if env is None else env)
    path = file or given.get("config") or variables.get("config")
    document = _from_file(Path(path)) if path else YamlDocument({})
    merged = {**document.data, **variables, **given}
    if path:
        merged["config"] = str(path)
    try:
        return ServerSettings.model_validate(merged)
    except ValidationError as error:
        findings = [_explain(one, given, variables, document, path) for one in error.errors(include_url=False)]
        raise ConfigError("\n".join(findings)) from error


def _refuse_unknown_flags(flags: Mapping[str, Any]) -> None:
    for name in flags:
        if name not in ServerSettings.model_fields:
            raise ConfigError(f"unknown option {_flag(name)}{did_you_mean(name, ServerSettings.model_fields)}")


def _from_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Options among the variables; a misspelt one is refused, an empty one counts as not set."""
    values: dict[str, str] = {}
    names = {_variable(name): name for name in ServerSettings.model_fields}
    for variable, value in env.items():
        if not variable.startswith(PREFIX) or _SERVICE_LINK.fullmatch(variable):
            continue
        if variable == "KERNELPORT_PORT" and _LINK_URL.match(value):
            continue
        name = names.get(variable)
        if name is None:
            raise ConfigError(f"unknown environment variable {variable}{did_you_mean(variable, names)}")
        if value != "":
            values[name] = value
    return values


def _from_file(path: Path) -> YamlDocument:
    document = parse_yaml(read_text_file(path), str(path))
    if not isinstance(document.data, dict):
        raise ConfigError(f"{path}: a mapping of options is expected")
    known = [name for name in ServerSettings.model_fields if name != "config"]
    for key, value in document.data.items():
        place = f"{path}:{document.line_of((key,))}"
        if key not in known:
            raise ConfigError(f"{place}: unknown option {key!r}{did_you_mean(str(key), known)}")
        if value is None:
            raise ConfigError(f"{place}: {key!r} is empty; give it a value or remove the line")
    return document


def _explain(
    finding: Any, flags: Mapping[str, Any], variables: Mapping[str, str], document: YamlDocument, path: Any
) -> str:
    location = finding["loc"]
    name = str(location[0]) if location else ""
    if not name:
        return reason(finding)
    if name in flags:
        place = "argument" if name == "models" else _flag(name)
    elif name in variables:
        place = _variable(name)
    else:
        place = f"{path}:{document.line_of((name,))}: {name}"
    return f"{place}: {reason(finding)}"


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return PREFIX + name.upper()
