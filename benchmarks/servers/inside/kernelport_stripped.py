"""KernelPort without what it counts, times, logs and bounds: `kernelport_stripped.py serve ...`, for comparison only.

Metrics, timing headers and limits cannot be switched off in the product, so their cost is found by taking them out of
a running copy. An attribute that is gone raises here, so that the comparison cannot quietly become meaningless.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from kernelport.cli.main import main
from kernelport.http import endpoint
from kernelport.http.deadlines import Deadline
from kernelport.http.gate import Gate
from kernelport.telemetry.http_stats import RouteStats
from kernelport.telemetry.stats import Histogram, ModelStats


def nothing(*arguments: Any) -> None:
    """Instead of counting, timing or bounding."""


def no_timing(*arguments: Any) -> bytes:
    return b""


REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (ModelStats, "executed", nothing),
    (ModelStats, "succeeded", nothing),
    (Histogram, "observe", nothing),
    (RouteStats, "observe", nothing),
    (endpoint, "server_timing", no_timing),
    (Gate, "charge", nothing),
    (Deadline, "set", nothing),
)

if __name__ == "__main__":
    for owner, name, replacement in REPLACED:
        if not hasattr(owner, name):
            raise SystemExit(f"{owner.__name__} has no {name} any more: bring {__file__} up to date")
        setattr(owner, name, replacement)
    logging.disable(logging.WARNING)
    sys.exit(main())
