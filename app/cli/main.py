"""The command `kernelport`: finds the sub-command, turns a user's mistake into one readable line. Runs on: anywhere."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from typing import NoReturn

import click

from .. import __version__
from ..core.errors import ConfigError, KernelPortError
from .console import complain

# Command name -> module that defines it; a module is imported only when one of its commands is wanted.
_COMMANDS = {
    "serve": "serve",
    "check": "check",
    "models": "models",
    "load": "models",
    "unload": "models",
    "infer": "infer",
    "stats": "stats",
}

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class _Commands(click.Group):
    """A group that imports its commands on first use and keeps them in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module_name = _COMMANDS.get(cmd_name)
        if module_name is None:
            return None
        module = importlib.import_module(f".{module_name}", __package__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            self._unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> NoReturn:
        close = difflib.get_close_matches(name, _COMMANDS, n=1)
        cure = f"did you mean '{close[0]}'?" if close else f"commands: {', '.join(_COMMANDS)}"
        ctx.fail(f"no such command '{name}'; {cure}")


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Run 'kernelport COMMAND --help' for the options of a command.",
)
@click.version_option(__version__, "--version", prog_name="kernelport", message="%(prog)s %(version)s")
def kernelport() -> None:
    """Serve ONNX (and other) models over the Open Inference Protocol."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    try:
        result = kernelport.main(arguments, prog_name="kernelport", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except ConfigError as error:
        complain(str(error))
        return EXIT_USAGE
    except KernelPortError as error:
        complain(str(error))
        return EXIT_FAILED
    except BrokenPipeError:  # the reader of our output (head, less) has gone: nothing is left to say to it
        return EXIT_FAILED
    return result if isinstance(result, int) else 0
