"""How long it takes to turn the JSON of an image (150,528 numbers, 3 MB) into a float32 array.

    python -m benchmarks.decode [--rounds 15]

The decoders take turns, so that a busy machine slows them alike; medians are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import orjson
from kernelport.core.model import ModelSpec
from kernelport.core.tensor import FP32, TensorSpec
from kernelport.protocol.v2_decode import decode_request

from .console import output
from .models import MODELS, BenchModel
from .report import markdown_table
from .workloads import Array, encode_request, sample_rows

Decoder = Callable[[bytes], Array]
HEAD = ("decoder", "one image", "against orjson + numpy")
BASE = "orjson + numpy"


def with_orjson(content: bytes) -> Array:
    tensor = orjson.loads(content)["inputs"][0]
    return np.array(tensor["data"], np.float32).reshape(tensor["shape"])


def with_orjson_checked(content: bytes) -> Array:
    """The same, refusing what the server refuses: elements that are no numbers, a wrong count, overflow to infinity."""
    tensor = orjson.loads(content)["inputs"][0]
    data, shape = tensor["data"], tensor["shape"]
    if set(map(type, data)) - {float, int} or len(data) != math.prod(shape):
        raise ValueError("not the numbers of that shape")
    with np.errstate(over="ignore"):
        wide = np.array(data, np.float64)
        array = wide.astype(np.float32)
    if np.any(np.isinf(array) & np.isfinite(wide)):
        raise ValueError("out of range for FP32")
    return array.reshape(shape)


def with_standard_library(content: bytes) -> Array:
    tensor = json.loads(content)["inputs"][0]
    return np.array(tensor["data"], np.float32).reshape(tensor["shape"])


def kernelport_decoder(model: BenchModel) -> Decoder:
    """The server's own decoder, with every check that it makes."""
    shape = (-1, *model.row_shape)
    spec = ModelSpec(
        name=model.name,
        version="1",
        platform="onnxruntime_onnx",
        backend="onnxruntime",
        max_batch_size=model.max_batch_size,
        inputs=(TensorSpec(model.input_name, FP32, shape),),
        outputs=(TensorSpec("y", FP32, (-1, *model.output_shape)),),
    )
    return lambda content: np.asarray(decode_request(content, None, spec).inputs[model.input_name].array)


def time_decoders(decoders: dict[str, Decoder], content: bytes, rounds: int) -> dict[str, float]:
    """Median milliseconds of each decoder."""
    times: dict[str, list[float]] = {name: [] for name in decoders}
    for _ in range(rounds):
        for name, decode in decoders.items():
            began = time.perf_counter()
            decode(content)
            times[name].append((time.perf_counter() - began) * 1e3)
    return {name: median(values) for name, values in times.items()}


def rows_of(times: dict[str, float]) -> list[list[str]]:
    return [[name, f"{value:.1f} ms", f"{times[BASE] / value:.2f} x as fast"] for name, value in times.items()]


def measure_decoders(rounds: int) -> dict[str, float]:
    model = MODELS["image"]
    array: Any = sample_rows(model)
    content = encode_request(model, array, "json").content
    decoders: dict[str, Decoder] = {
        "KernelPort, with all checks": kernelport_decoder(model),
        BASE: with_orjson,
        "orjson + numpy, with the same checks": with_orjson_checked,
        "json + numpy": with_standard_library,
    }
    for name, decode in decoders.items():
        if not np.array_equal(decode(content), array):
            raise ValueError(f"the decoder {name!r} gives other numbers")
    return time_decoders(decoders, content, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode")
    parser.add_argument("--rounds", type=int, default=15)
    times = measure_decoders(parser.parse_args().rounds)
    output.print(markdown_table(HEAD, rows_of(times)))


if __name__ == "__main__":
    main()
