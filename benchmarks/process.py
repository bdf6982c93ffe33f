"""Starts one server in its own session, waits for its first right answer, and ends the whole session afterwards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_S = 15.0


class ServerDied(Exception):
    """The server process ended before it answered."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stat_fields(pid: str) -> list[str] | None:
    """The fields of /proc/PID/stat after the command name, or None when the process is gone."""
    try:
        text = Path("/proc", pid, "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def session_members(session: int) -> list[int]:
    members = []
    for entry in os.listdir("/proc"):
        fields = _stat_fields(entry) if entry.isdigit() else None
        if fields is not None and int(fields[3]) == session:
            members.append(int(entry))
    return members


def session_cpu_s(session: int) -> float:
    """CPU seconds that the living processes of a session have used so far."""
    ticks = 0
    for pid in session_members(session):
        fields = _stat_fields(str(pid))
        if fields is not None:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / CLOCK_TICKS


def machine_busy_s() -> float:
    """CPU seconds that all cores together have been busy since boot."""
    values = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = values[:8]
    return (user + nice + system + irq + softirq + steal) / CLOCK_TICKS


class ServerProcess:
    """A server under test: its own session, so that its helpers can be found, measured and ended with it."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path, directory: Path, core: int | None
    ) -> None:
        pin = [] if core is None else ["taskset", "-c", str(core)]
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*pin, *command],
                env={**os.environ, **env},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.session = self._process.pid

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-2000:]
            raise ServerDied(f"exit status {self._process.returncode}; end of {self.log}:\n{tail}")

    def cpu_s(self) -> float:
        return session_cpu_s(self.session)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Asks the main process to end, then ends whatever is left of the session."""
        self.resume()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._signal(signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)

    def _signal(self, number: signal.Signals) -> None:
        for pid in session_members(self.session):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # it ended between the listing and the signal, which is what was wanted


def wait_until(attempt: Callable[[], None], process: ServerProcess | None, timeout_s: float) -> None:
    """Calls `attempt()` until it stops raising OSError or ValueError."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            attempt()
        except (OSError, ValueError) as error:
            if process is not None:
                process.check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"no right answer within {timeout_s:.0f} s: {error}") from error
            time.sleep(0.2)
        else:
            return
