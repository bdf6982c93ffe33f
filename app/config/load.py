"""Files, environment and flags to checked configurations. Runs on: loader thread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..core.errors import ConfigError
from .explain import LineOf, explain
from .model import ModelConfig
from .pbtxt import parse_pbtxt
from .support import review
from .text_file import read_text_file
from .yaml_text import parse_yaml

MODEL_YAML = "model.yaml"
MODEL_PBTXT = "config.pbtxt"
# Spellings that people try; each is an error that names the right one.
_WRONG_NAMES = {
    "model.yml": MODEL_YAML,
    "config.yaml": MODEL_YAML,
    "config.yml": MODEL_YAML,
    "config.pbtext": MODEL_PBTXT,
    "config.prototxt": MODEL_PBTXT,
}


def load_model_config(model_dir: Path) -> ModelConfig:
    """The configuration in a model's folder, an empty one if there is none; raises ConfigError."""
    path = find_model_config(model_dir)
    if path is None:
        return ModelConfig()
    text = read_text_file(path)
    if path.name == MODEL_PBTXT:
        return parse_model_config(parse_pbtxt(text, str(path)), str(path))
    document = parse_yaml(text, str(path))
    return parse_model_config(document.data, str(path), document.line_of)


def find_model_config(model_dir: Path) -> Path | None:
    """The configuration file of a model's folder; raises ConfigError when there are two, or one is misnamed."""
    found = [model_dir / name for name in (MODEL_YAML, MODEL_PBTXT) if (model_dir / name).exists()]
    if len(found) == 2:
        raise ConfigError(f"{model_dir}: has both {MODEL_YAML} and {MODEL_PBTXT}; keep one of them")
    if found:
        return found[0]
    for wrong, right in _WRONG_NAMES.items():
        if (model_dir / wrong).exists():
            raise ConfigError(f"{model_dir / wrong}: a file of this name is not read; rename it to {right}")
    return None


def parse_model_config(data: Any, source: str, line_of: LineOf | None = None) -> ModelConfig:
    """Plain data (of YAML, JSON or pbtxt) to a ModelConfig; raises ConfigError listing every finding with its place."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{source}: a mapping of configuration keys is expected, not {type(data).__name__}")
    try:
        config = ModelConfig.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError("\n".join(explain(error, source, line_of))) from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply") from error
    refused = review(config).refused
    if refused:
        raise ConfigError("\n".join(f"{source}: {one}" for one in refused))
    return config
