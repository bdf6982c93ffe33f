"""Reads `config.pbtxt` through Triton's own message descriptor, without gRPC. Runs on: loader thread.

The descriptor comes from tritonclient's generated module, loaded by its path: importing it as part of
`tritonclient.grpc` would import grpcio. It is rebuilt under proto2 rules in a pool of its own, because only there a
scalar that was written with its default value (`max_batch_size: 0`) can be told from one that was left out.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from importlib import import_module
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import ConfigError
from .suggest import did_you_mean

_MODULE = "tritonclient"
_STUB = Path("grpc") / "model_config_pb2.py"


def parse_pbtxt(text: str, source: str) -> dict[str, Any]:
    """The fields that `text` sets, as plain data under their proto names; raises ConfigError with line and column."""
    text_format = import_module("google.protobuf.text_format")
    message = _model_config_class()()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise ConfigError(f"{source}{_position(error)}: {_reason(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply") from error
    return _to_plain(message)


@cache
def _model_config_class() -> Any:
    description = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto()
    _load_stub().DESCRIPTOR.CopyToProto(description)
    description.syntax = "proto2"
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    pool.Add(description)
    descriptor = pool.FindMessageTypeByName("inference.ModelConfig")
    return import_module("google.protobuf.message_factory").GetMessageClass(descriptor)


def _load_stub() -> Any:
    package = importlib.util.find_spec(_MODULE)
    folders = [] if package is None else list(package.submodule_search_locations or [])
    for folder in folders:
        path = Path(folder) / _STUB
        if path.is_file():
            spec = importlib.util.spec_from_file_location("kernelport_triton_model_config_pb2", path)
            if spec is not None and spec.loader is not None:
                return _run(spec.loader, importlib.util.module_from_spec(spec))
    raise ConfigError("config.pbtxt needs the package tritonclient (pip install tritonclient); or write model.yaml")


def _run(loader: Loader, module: ModuleType) -> ModuleType:
    try:
        loader.exec_module(module)
    except Exception as error:  # whatever a protobuf release of another age raises
        raise ConfigError(f"tritonclient's description of config.pbtxt does not load: {error}") from error
    return module


def _to_plain(message: Any) -> dict[str, Any]:
    return {field.name: _field_to_plain(field, value) for field, value in message.ListFields()}


def _field_to_plain(field: Any, value: Any) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        value_field = entry.fields_by_name["value"]
        return {key: _value_to_plain(value_field, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_value_to_plain(field, one) for one in value]
    return _value_to_plain(field, value)


def _value_to_plain(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _to_plain(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


def _position(error: Any) -> str:
    line, column = error.GetLine(), error.GetColumn()
    return "" if line is None else f":{line}" + ("" if column is None else f":{column}")


def _reason(error: Any) -> str:
    """The parser's own words without the position it puts first, plus a suggestion for a misspelt field."""
    text = str(error)
    text = re.sub(r"^[0-9]+(:[0-9]+)? : ", "", text)
    text = re.sub(r"^'.*?': (?=\S)", "", text, flags=re.DOTALL)  # the echo of the line
    marker = " has no field named "
    if marker in text:
        wrong = text.split(marker, 1)[1].strip('". ')
        text = f"unknown field {wrong!r}{did_you_mean(wrong, _all_field_names())}"
    return text.strip().rstrip(".")


def _all_field_names() -> set[str]:
    names: set[str] = set()
    todo, seen = [_model_config_class().DESCRIPTOR], set()
    while todo:
        one = todo.pop()
        if one.full_name in seen:
            continue
        seen.add(one.full_name)
        for field in one.fields:
            names.add(field.name)
            if field.message_type is not None:
                todo.append(field.message_type)
    return names
