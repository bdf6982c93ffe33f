"""SIGUSR1 shows what every thread and task is doing, and the process lives on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ASK_FOR_STACKS = """
import asyncio, os, signal, sys, threading
from kernelport.telemetry.dumps import enable_crash_dumps, install_stack_dump, remove_stack_dump

async def waits_for_ever(): await asyncio.Event().wait()

async def main():
    enable_crash_dumps()
    install_stack_dump(asyncio.get_running_loop())
    task = asyncio.create_task(waits_for_ever(), name="the-waiting-task")
    release = threading.Event()
    lane = threading.Thread(target=release.wait, name="the-lane")
    lane.start()
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.sleep(0)
    release.set(); lane.join(); task.cancel()
    remove_stack_dump()
    sys.stdout.write("alive" if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL else "handler left")

RUNNER.run(main())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("runner", ["asyncio", "uvloop"])
def test_signal_prints_threads_and_tasks_and_the_process_lives_on(runner: str) -> None:
    if runner == "uvloop":
        pytest.importorskip("uvloop")
    result = run(f"import {runner} as RUNNER\n{ASK_FOR_STACKS}")
    assert (result.returncode, result.stdout) == (0, "alive"), result.stderr
    assert "most recent call first" in result.stderr
    assert "the-lane" in result.stderr
    assert "Asyncio tasks: 2" in result.stderr
    assert "the-waiting-task" in result.stderr
    assert "waits_for_ever" in result.stderr


def test_stacks_come_even_while_the_main_thread_is_stuck_in_native_code(tmp_path: Path) -> None:
    output = tmp_path / "stderr"
    output.touch()
    # system() holds the GIL here; the shell it runs asks for stacks, waits until they are written, then kills.
    command = f"kill -USR1 $PPID; until grep -q stuck_here {output}; do sleep 0.02; done; kill -KILL $PPID"
    code = f"""
import asyncio, ctypes
from kernelport.telemetry.dumps import install_stack_dump

def stuck_here():
    ctypes.PyDLL(None).system({command!r}.encode())

async def main():
    install_stack_dump(asyncio.get_running_loop())
    stuck_here()

asyncio.run(main())
"""
    with output.open("w") as file:
        result = subprocess.run([sys.executable, "-c", code], stderr=file, check=False, timeout=60)
    assert result.returncode == -signal.SIGKILL
    assert "stuck_here" in output.read_text()
    assert "Asyncio tasks" not in output.read_text()  # Python code never ran again


def test_a_crash_in_native_code_leaves_python_stacks() -> None:
    result = run(
        "import faulthandler\nfrom kernelport.telemetry.dumps import enable_crash_dumps\n"
        "enable_crash_dumps()\ndef crashing(): faulthandler._sigsegv()\ncrashing()"
    )
    assert result.returncode != 0
    assert "Fatal Python error: Segmentation fault" in result.stderr
    assert "crashing" in result.stderr
