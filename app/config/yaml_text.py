"""Strict YAML: no duplicate keys, no tags, no alias bombs, and a line for every key. Runs on: loader thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from ..core.errors import ConfigError

KeyPath = tuple[str | int, ...]
_MAX_NODES = 100_000


@dataclass(slots=True, frozen=True)
class YamlDocument:
    """Parsed data, and the line (from 1) on which each key path begins."""

    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line_of(self, path: KeyPath) -> int | None:
        """Line of `path`, or of the nearest block around it that has one."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None and length:
                return line
        return None


def parse_yaml(text: str, source: str) -> YamlDocument:
    """The document in `text`; raises ConfigError with the line. An empty text is an empty mapping."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return YamlDocument({})
            lines: dict[KeyPath, int] = {}
            _index(node, (), lines, source)
            return YamlDocument(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{source}{at}: {error.problem or 'not YAML'}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply") from error


def _index(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], source: str) -> None:
    """Note the line of every key and refuse duplicates; aliases count each time they are used."""
    lines.setdefault(path, node.start_mark.line + 1)
    if len(lines) > _MAX_NODES:
        raise ConfigError(f"{source}: more than {_MAX_NODES} values; is an alias used again and again?")
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{source}:{line}: a key must be a plain word")
            key: str | int = key_node.value
            if key in seen:
                raise ConfigError(f"{source}:{line}: {key!r} is given twice in the same block")
            seen.add(key_node.value)
            lines[(*path, key)] = line
            _index(value_node, (*path, key), lines, source)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            _index(item, (*path, position), lines, source)
