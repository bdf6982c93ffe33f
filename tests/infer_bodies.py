"""Building blocks for tests of the wire format: model signatures, infer bodies, tensors of every datatype."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from kernelport.core.model import ModelSpec
from kernelport.core.request import InferenceRequest, InferenceResponse, RequestedOutput
from kernelport.core.tensor import DATATYPES, FP32, Array, DataType, Tensor, TensorSpec
from kernelport.protocol.limits import DECODE_DEFAULTS, DecodeLimits
from kernelport.protocol.v2_decode import decode_request

NUMERIC = [one for one in DATATYPES.values() if one.kind not in ("bool", "bytes")]
INTEGERS = [one for one in DATATYPES.values() if one.kind in ("int", "uint")]
FLOATS = [one for one in DATATYPES.values() if one.kind == "float"]


def model(
    inputs: Sequence[TensorSpec] = (TensorSpec("x", FP32, (-1, 4)),),
    outputs: Sequence[TensorSpec] = (TensorSpec("y", FP32, (-1, 3)),),
    max_batch_size: int = 0,
) -> ModelSpec:
    """A model called "m"."""
    return ModelSpec("m", "1", "onnxruntime_onnx", "onnxruntime", max_batch_size, tuple(inputs), tuple(outputs))


MODEL = model()


def entry(data: Any, shape: Any, datatype: str = "FP32", name: str = "x", **more: Any) -> dict[str, Any]:
    """One member of `inputs`."""
    return {"name": name, "shape": shape, "datatype": datatype, "data": data, **more}


def body(*inputs: Any, **members: Any) -> bytes:
    """A JSON infer body."""
    return json.dumps({"inputs": list(inputs), **members}).encode()


def decode(text: bytes, limits: DecodeLimits = DECODE_DEFAULTS) -> InferenceRequest:
    """Decode a body that is JSON only."""
    return decode_request(text, None, MODEL, limits)


def decode_one(data: Any, shape: Any, datatype: str = "FP32", limits: DecodeLimits = DECODE_DEFAULTS) -> Array:
    """The array of the only input of a JSON body; `data` may be JSON text for what Python cannot write."""
    text = data if isinstance(data, str) else json.dumps(data)
    raw = f'{{"inputs":[{{"name":"x","shape":{json.dumps(shape)},"datatype":"{datatype}","data":{text}}}]}}'
    return decode(raw.encode(), limits).inputs["x"].array


def binary_body(
    *tensors: tuple[str, str, Sequence[int], bytes], members: Mapping[str, Any] | None = None
) -> tuple[bytes, int]:
    """A body with binary inputs (name, datatype, shape, content), and the length of its JSON part."""
    inputs = [
        {"name": name, "shape": list(shape), "datatype": datatype, "parameters": {"binary_data_size": len(content)}}
        for name, datatype, shape, content in tensors
    ]
    head = body(*inputs, **(members or {}))
    return head + b"".join(content for *_, content in tensors), len(head)


def bytes_content(*elements: bytes) -> bytes:
    """BYTES elements as the binary extension has them."""
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


def array_of(datatype: DataType, values: Sequence[Any], shape: Sequence[int] | None = None) -> Array:
    """`values` as the server carries them inside; of BF16 the bit patterns."""
    array = np.empty(len(values), datatype.dtype)
    if len(values):
        array[:] = values
    return array.reshape(len(values) if shape is None else tuple(shape))


def response(*tensors: Tensor, **parameters: Any) -> InferenceResponse:
    """What model "m" answered."""
    return InferenceResponse("m", "1", list(tensors), parameters)


def request(*outputs: RequestedOutput, **members: Any) -> InferenceRequest:
    """A request for these outputs, all of them if none is named."""
    return InferenceRequest({}, outputs or None, **members)


def same_bits(one: Array, other: Array) -> bool:
    """Equal datatype, shape and content, NaN equal to itself and -0.0 not to 0.0."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == object:
        return bool((one == other).all())
    return one.tobytes() == other.tobytes()
