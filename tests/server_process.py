"""A real server in a process of its own, for tests that look at it from outside."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_URL = re.compile(r"https?://\S+?:\d+")
_START_TIMEOUT_S = 90


class ServerProcess:
    """`python -m kernelport serve ARGUMENTS` on a free port; a context manager that is entered when it serves."""

    def __init__(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        command: tuple[str, ...] = (sys.executable, "-m", "kernelport", "serve"),
    ) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KERNELPORT_")}
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            env={"PYTHONUNBUFFERED": "1", "KERNELPORT_PORT": "0", **clean, **(environment or {})},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.lines: list[str] = []
        self.url = ""
        self._changed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            found = _URL.search(line) if line.startswith("infer ") else None
            if found:
                self.url = found.group().replace("//0.0.0.0:", "//127.0.0.1:")
                self._changed.set()
        self._changed.set()

    @property
    def output(self) -> str:
        """All it has printed so far."""
        return "\n".join(self.lines)

    def __enter__(self) -> "ServerProcess":
        arrived = self._changed.wait(_START_TIMEOUT_S)
        if not arrived or not self.url:
            self.stop(signal.SIGKILL)
            raise AssertionError(f"the server did not start:\n{self.output}")
        return self

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send the signal and return the exit code. SIGINT stops without the drain delay."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the server did not stop:\n{self.output}") from None
        finally:
            self._reader.join(10)
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
