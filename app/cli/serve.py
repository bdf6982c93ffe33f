"""`serve`: run the server until it is told to stop. Runs on: anywhere (before the event loop begins)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from ..config.server import ServerSettings
from ..core.errors import ConfigError
from ..process import run
from .console import messages, output
from .options import settings_from, settings_options
from .start_screen import StartScreen

# Resolved, because an editable install links the files one by one, and links that lead out of a repository are refused.
BUILT_IN_MODELS = Path(__file__).resolve().parent.parent / "builtin"
MOUNTED_MODELS = Path("/models")  # where the container images expect a repository
_FLAG_WITH_VALUE = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)=(?P<value>true|false)", re.IGNORECASE)


class ServeCommand(click.Command):
    """Accepts Triton's `--some-flag=false` besides `--no-some-flag`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [option for option in self.params if isinstance(option, click.Option)]
        switches = {name for option in options if option.is_bool_flag for name in option.opts}
        return super().parse_args(ctx, [_plain_flag(word, switches) for word in args])


def _plain_flag(word: str, switches: set[str]) -> str:
    match = _FLAG_WITH_VALUE.fullmatch(word)
    if match is None or f"--{match['name']}" not in switches:
        return word
    return f"--{match['name']}" if match["value"].lower() == "true" else f"--no-{match['name']}"


@click.command(cls=ServeCommand)
@settings_options()
def serve(**flags: Any) -> int:
    """Serve the models in MODELS: repositories, or single model files.

    Without MODELS and --model-path: what is in /models, else the built-in tiny model.

    Each option is also a variable (KERNELPORT_PORT) and a key of the file given by --config (port); a flag is stronger
    than a variable, a variable stronger than the file.
    """
    settings = with_default_models(settings_from(flags))
    screen = StartScreen(output())
    try:
        return run(settings, screen)
    finally:
        screen.close()


def with_default_models(settings: ServerSettings) -> ServerSettings:
    """The settings, told what to serve: a missing folder is refused, no folder at all means the default."""
    for text in (*settings.models, settings.model_path):
        if text and not Path(text).exists():
            raise ConfigError(f"{text}: no such file or folder; give a model repository or a model file")
    if settings.models or settings.model_path:
        return settings
    if MOUNTED_MODELS.is_dir() and any(MOUNTED_MODELS.iterdir()):
        return settings.model_copy(update={"models": (str(MOUNTED_MODELS),)})
    messages().print("no models given: serving the built-in tiny model")
    return settings.model_copy(update={"models": (str(BUILT_IN_MODELS),)})
