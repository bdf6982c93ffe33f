"""onnxruntime in a bare loop: the most that any server of this model and batch size could deliver on one core.

python -m benchmarks.bare_loop MODEL.onnx --name slow --batch 8 --seconds 4
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

from .models import MODELS
from .workloads import sample_rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare_loop")
    parser.add_argument("file")
    parser.add_argument("--name", required=True, choices=list(MODELS))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.file, options, providers=["CPUExecutionProvider"])
    model = MODELS[arguments.name]
    feed = {model.input_name: sample_rows(model, arguments.batch)}
    for _ in range(3):
        session.run(None, feed)
    calls = 0
    began = time.perf_counter()
    while time.perf_counter() - began < arguments.seconds:
        session.run(None, feed)
        calls += 1
    elapsed = time.perf_counter() - began
    sys.stdout.write(json.dumps({"rows_per_s": calls * arguments.batch / elapsed, "call_ms": elapsed / calls * 1e3}))


if __name__ == "__main__":
    main()
