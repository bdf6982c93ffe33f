"""The one import of onnxruntime, with the environment it needs. Runs on: loader thread.

Version 1.31 and later write a telemetry spool unless told not to before the first import.
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort

# Severity 4 (fatal): everything the runtime would print about a failing run also comes as an exception, and a
# client that keeps sending bad indices must not be able to fill the server's log past its own formatter.
LOG_SEVERITY = 4
ort.set_default_logger_severity(LOG_SEVERITY)

__all__ = ["LOG_SEVERITY", "ort"]
