"""Runs wrk for one window and reads its result; the Lua script is generated for each request body."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from .workloads import RequestBody

MARK = "WINDOW "
SCRIPT = """\
local file = assert(io.open({body}, "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()
{headers}
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{mark}{{"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "max_us": %d, "bad_status": %d, "socket_errors": %d}}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""  # noqa: E501 (one Lua string)


class WrkMissing(Exception):
    """wrk is not installed."""


@dataclass(frozen=True, slots=True)
class Window:
    """What one window of load measured."""

    requests_per_s: float
    p50_us: float
    p99_us: float
    bad_answers: int
    load_cpu_s: float = 0.0  # CPU time of the generator itself
    server_cpu_us: float = 0.0  # CPU time of the server per request, which a busy machine hardly changes
    seconds: float = 0.0

    @property
    def requests(self) -> float:
        return self.requests_per_s * self.seconds


def write_script(body: RequestBody, directory: Path, name: str) -> Path:
    """The Lua script for one request body, which is kept in a file beside it because it may be binary."""
    directory.mkdir(parents=True, exist_ok=True)
    content = directory / f"{name}.body"
    content.write_bytes(body.content)
    # A JSON string without non-ASCII characters is a valid Lua string as well.
    headers = "\n".join(
        f"wrk.headers[{json.dumps(header)}] = {json.dumps(value)}" for header, value in body.headers.items()
    )
    script = directory / f"{name}.lua"
    script.write_text(SCRIPT.format(body=json.dumps(str(content)), headers=headers, mark=MARK))
    return script


def parse_output(text: str) -> Window:
    """Reads the line that the script's `done` wrote."""
    lines = [line.removeprefix(MARK) for line in text.splitlines() if line.startswith(MARK)]
    if not lines:
        raise ValueError(f"wrk printed no result:\n{text}")
    fields: dict[str, int] = json.loads(lines[-1])
    return Window(
        requests_per_s=fields["requests"] / (fields["duration_us"] / 1e6),
        p50_us=float(fields["p50_us"]),
        p99_us=float(fields["p99_us"]),
        bad_answers=fields["bad_status"] + fields["socket_errors"],
        seconds=fields["duration_us"] / 1e6,
    )


def run_window(url: str, script: Path, connections: int, seconds: float, core: int | None) -> Window:
    """One window of closed-loop load; `core` pins the generator, None leaves it to the kernel."""
    if shutil.which("wrk") is None:
        raise WrkMissing("wrk is not installed: apt-get install wrk")
    pin = [] if core is None else ["taskset", "-c", str(core)]
    command = [*pin, "wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(
        [*command, "-s", str(script), url], capture_output=True, text=True, timeout=seconds + 60, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return replace(parse_output(finished.stdout), load_cpu_s=cpu_s)
