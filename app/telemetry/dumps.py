"""What the process is doing, on demand: SIGUSR1 prints all thread stacks and asyncio tasks. Runs on: event loop."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys
import threading
from types import FrameType
from typing import TextIO


def enable_crash_dumps() -> None:
    """A crash in native code prints the Python stacks of all threads to stderr."""
    faulthandler.enable(sys.stderr, all_threads=True)


def write_tasks(loop: asyncio.AbstractEventLoop, file: TextIO) -> None:
    """Names of the threads, then every unfinished asyncio task of `loop` with its stack."""
    file.write("Threads:\n")
    for thread in threading.enumerate():
        kind = " daemon" if thread.daemon else ""
        file.write(f"  {thread.ident or 0:#018x} {thread.name}{kind}\n")
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    file.write(f"Asyncio tasks: {len(tasks)}\n")
    for task in tasks:
        task.print_stack(limit=20, file=file)
    file.flush()


def install_stack_dump(loop: asyncio.AbstractEventLoop) -> None:
    """SIGUSR1 prints stacks to stderr; call in the main thread.

    The thread stacks come from a C-level handler, which works even while the event loop is stuck; the tasks follow as
    soon as the main thread runs Python code again. Does nothing where the platform has no SIGUSR1.
    """
    if not hasattr(signal, "SIGUSR1"):
        return

    def dump_tasks(_number: int, _frame: FrameType | None) -> None:
        write_tasks(loop, sys.stderr)

    signal.signal(signal.SIGUSR1, dump_tasks)
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True, chain=True)


def remove_stack_dump() -> None:
    """Undo `install_stack_dump`, before its loop is closed."""
    if hasattr(signal, "SIGUSR1"):
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
