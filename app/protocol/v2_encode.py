"""An InferenceResponse to the body of an infer reply: JSON, and a binary part if need be. Runs on: event loop."""

from __future__ import annotations

from typing import Any

import orjson

from ..core.errors import PayloadTooLarge
from ..core.model import ModelSpec
from ..core.request import InferenceRequest, InferenceResponse
from ..core.tensor import BYTES
from .binary import write_tensor
from .classification import classified_axis, classify
from .json_data import has_nonfinite, json_data, literal_data
from .limits import ENCODE_DEFAULTS, EncodeLimits

_MAX_HEADS = 256


class Encoded:
    """A reply body in parts, written one after the other.

    `json_length` is the value of Inference-Header-Content-Length, None when no binary part follows the JSON.
    `nonfinite` names the outputs whose NaN or infinite values became null.
    """

    __slots__ = ("json_length", "nonfinite", "parts")

    def __init__(self, parts: list[bytes | memoryview], json_length: int | None, nonfinite: tuple[str, ...]) -> None:
        self.parts = parts
        self.json_length = json_length
        self.nonfinite = nonfinite


def encode_response(
    response: InferenceResponse,
    request: InferenceRequest,
    spec: ModelSpec,
    nonfinite: str,
    limits: EncodeLimits = ENCODE_DEFAULTS,
) -> Encoded:
    """Encode what a model answered in the form that `request` asks for, outputs in the model's order.

    `nonfinite` is "null" (always valid JSON) or "literal" (Triton's bare NaN and Infinity).
    """
    if (
        request.outputs is None
        and len(response.outputs) == 1
        and not (request.id or request.binary_output or response.parameters)
    ):
        plain = _encode_plain(response, spec, limits)
        if plain is not None:
            return plain
    return _encode_any(response, request, spec, nonfinite, limits)


def _encode_any(
    response: InferenceResponse, request: InferenceRequest, spec: ModelSpec, nonfinite: str, limits: EncodeLimits
) -> Encoded:
    """Any reply, in whatever forms its outputs are wanted."""
    wanted = None if request.outputs is None else {output.name: output for output in request.outputs}
    entries: list[dict[str, Any]] = []
    parts: list[bytes | memoryview] = [b""]
    binary, top_k = request.binary_output, 0
    size = 0
    for tensor in response.outputs:
        name, datatype, array = tensor.name, tensor.datatype, tensor.array
        if wanted is not None:
            output = wanted.get(name)
            if output is None:
                continue
            binary, top_k = output.binary, output.classification
        if top_k:
            declared = spec.outputs_by_name.get(name)
            labels = declared.labels if declared is not None else ()
            array = classify(tensor, top_k, labels, classified_axis(declared, spec.max_batch_size))
            datatype = BYTES
        entry: dict[str, Any] = {"name": name, "datatype": datatype.name, "shape": array.shape}
        if binary:
            data = write_tensor(datatype, array)
            entry["parameters"] = {"binary_data_size": len(data)}
            size += len(data)
            if data:
                parts.append(data)
        else:
            size += 2 * array.size  # at least a digit and a comma
            if size > limits.max_response_bytes:
                raise _too_large(spec, f"more than {size}", limits)
            entry["data"] = json_data(name, datatype, array)
        entries.append(entry)
    head, lossy = _encode_head(response, request.id, entries, nonfinite)
    parts[0] = head
    if len(parts) == 1:
        if len(head) > limits.max_response_bytes:
            raise _too_large(spec, str(len(head)), limits)
        return Encoded(parts, None, lossy)
    size = sum(map(len, parts))
    if size > limits.max_response_bytes:
        raise _too_large(spec, str(size), limits)
    return Encoded(parts, len(head), lossy)


def _encode_plain(response: InferenceResponse, spec: ModelSpec, limits: EncodeLimits) -> Encoded | None:
    """The commonest reply, one output of finite numbers as JSON; None if it is not quite that.

    All that precedes the numbers depends on the version, the output and its shape only, and is written once for each.
    """
    tensor = response.outputs[0]
    datatype, array = tensor.datatype, tensor.array
    if datatype is BYTES or 2 * array.size > limits.max_response_bytes:
        return None
    form = (response.version, tensor.name, datatype, array.shape)
    head = spec.reply_heads.get(form)
    if head is None:
        entry = {"name": tensor.name, "datatype": datatype.name, "shape": array.shape}
        whole, _ = _encode_head(response, "", [entry], "null")
        head = whole[: -len(b"}]}")] + b',"data":'
        if len(spec.reply_heads) >= _MAX_HEADS:
            spec.reply_heads.clear()
        spec.reply_heads[form] = head
    numbers = orjson.dumps(json_data(tensor.name, datatype, array), option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in numbers or len(head) + len(numbers) + 3 > limits.max_response_bytes:
        return None
    return Encoded([b"%b%b}]}" % (head, numbers)], None, ())


def _encode_head(
    response: InferenceResponse, request_id: str, entries: list[dict[str, Any]], nonfinite: str
) -> tuple[bytes, tuple[str, ...]]:
    """The JSON part, and the names of the outputs whose non-finite values became null."""
    document: dict[str, Any] = {"id": request_id} if request_id else {}
    document["model_name"] = response.model
    document["model_version"] = response.version
    if response.parameters:
        document["parameters"] = response.parameters
    document["outputs"] = entries
    head = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" not in head:  # orjson writes null for what is not finite; far cheaper than looking at every array
        return head, ()
    lossy = [entry for entry in entries if "data" in entry and has_nonfinite(entry["data"])]
    if not lossy or nonfinite != "literal":
        return head, tuple(entry["name"] for entry in lossy)
    for entry in lossy:
        entry["data"] = literal_data(entry["data"])
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY), ()


def _too_large(spec: ModelSpec, size: str, limits: EncodeLimits) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"model '{spec.name}': the reply has {size} bytes, this server sends at most {limits.max_response_bytes}; "
        "ask for fewer outputs, or for binary_data, which is smaller than JSON"
    )
