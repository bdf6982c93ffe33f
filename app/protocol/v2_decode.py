"""The body of an infer request to an InferenceRequest, from JSON, binary and mixed forms. Runs on: event loop.

Every array that comes out is well-formed for its datatype and shape; whether it fits the model is decided at
admission. This runs for every request, so the common case is kept free of loops and formatting it does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simdjson import Array as JsonArray
from simdjson import Object as JsonObject

from ..core.errors import InvalidRequest, KernelPortError, MalformedBody, PayloadTooLarge
from ..core.model import ModelSpec
from ..core.request import InferenceRequest
from ..core.tensor import BYTES, DATATYPES, Array, DataType, Tensor
from .binary import Body, read_tensor
from .json_depth import count_is, count_is_at_most, depth_of
from .json_document import OBJECTS, parse_document
from .json_tensor import count_arrays, read_numbers, read_values
from .json_values import tensor_from_values
from .limits import DECODE_DEFAULTS, MAX_NAME_LENGTH, MAX_TENSORS, DecodeLimits
from .parameters import decode_parameters, is_unsigned
from .raw_request import decode_raw
from .requested_outputs import decode_outputs
from .shape import element_count


def decode_request(
    body: Body, json_length: int | None, spec: ModelSpec, limits: DecodeLimits = DECODE_DEFAULTS
) -> InferenceRequest:
    """Decode an infer body for the model `spec`.

    `json_length` is the Inference-Header-Content-Length: None when absent (the whole body is JSON), 0 for a raw
    binary request. Raises InvalidRequest (a subclass as a rule), PayloadTooLarge or Unsupported.
    """
    try:
        if json_length == 0:
            return decode_raw(body, spec)
        return _RequestReader(body, json_length, limits).read()
    except KernelPortError as error:
        failure = type(error)(f"model '{spec.name}': {error}")
    # Raised outside the handler: the old traceback would hold simdjson's proxies, and with them its buffers.
    raise failure


class _RequestReader:
    """One pass over a body: the JSON document, and the binary part behind it as a cursor in input order."""

    __slots__ = ("body", "limits", "offset", "squares", "text")

    def __init__(self, body: Body, json_length: int | None, limits: DecodeLimits) -> None:
        size = len(body)
        self.text: bytes | bytearray
        if json_length is None:
            json_length = size
            self.text = body if body.__class__ is not memoryview else bytes(body)  # type: ignore[assignment]
        elif 0 < json_length <= size:
            self.text = body[:json_length] if body.__class__ is bytes else bytes(memoryview(body)[:json_length])
        else:
            raise MalformedBody(
                f"Inference-Header-Content-Length is {json_length}, it must be from 0 to the body's {size} bytes"
            )
        self.body = body
        self.limits = limits
        self.offset = json_length
        self.squares = 1  # "[" in the text, if it holds nothing but what the protocol knows and all data is flat

    def read(self) -> InferenceRequest:
        document = parse_document(self.text, self.limits)
        if not isinstance(document, OBJECTS):
            raise MalformedBody("the body must be a JSON object with a member 'inputs'")
        members = list(document)
        inputs = self._read_inputs(document["inputs"] if "inputs" in members else None)
        if self.offset != len(self.body):
            raise MalformedBody(
                f"{len(self.body) - self.offset} bytes are left over after the binary data of the last input"
            )
        request = InferenceRequest(inputs, None, "", {})
        if len(members) > 1:
            self._read_options(document, members, request)
        if document.__class__ is JsonObject:
            self._check_depth(document, inputs)
        return request

    def _read_options(self, document: Any, members: list[str], request: InferenceRequest) -> None:
        if "id" in members:
            request_id = document["id"]
            if request_id.__class__ is not str:
                raise MalformedBody("id must be a string")
            request.id = request_id
        if "parameters" in members:
            decode_parameters(document["parameters"], request)
        if "outputs" in members:
            request.outputs = decode_outputs(document["outputs"])
            self.squares += 1

    def _read_inputs(self, entries: Any) -> dict[str, Tensor]:
        if entries.__class__ is not JsonArray and entries.__class__ is not list:
            raise MalformedBody("inputs must be an array of objects with name, shape, datatype and data")
        if len(entries) == 1:
            tensor = self._read_input(entries[0], 0)
            return {tensor.name: tensor}
        if len(entries) > MAX_TENSORS:
            raise MalformedBody(f"there are {len(entries)} inputs, this server takes at most {MAX_TENSORS}")
        tensors: dict[str, Tensor] = {}
        for entry in entries:
            tensor = self._read_input(entry, len(tensors))
            if tensor.name in tensors:
                raise InvalidRequest(f"input '{tensor.name}' appears twice")
            tensors[tensor.name] = tensor
        return tensors

    def _read_input(self, entry: Any, position: int) -> Tensor:
        name, shape, datatype_name, data, parameters = _input_members(entry, self.offset < len(self.body))
        if name.__class__ is not str or len(name) > MAX_NAME_LENGTH:
            raise MalformedBody(
                f"inputs[{position}] must be an object with a name (a string of at most {MAX_NAME_LENGTH} characters)"
            )
        dims: Any
        if shape.__class__ is JsonArray:
            dims = shape.as_list() if len(shape) <= self.limits.tensor_rank else [0] * len(shape)  # refused below
        elif shape.__class__ is list:
            dims = shape
        else:
            raise MalformedBody(f"input '{name}': shape must be an array of non-negative integers")
        count = element_count(name, dims, self.limits)
        datatype = DATATYPES.get(datatype_name) if datatype_name.__class__ is str else None
        if datatype is None:
            raise MalformedBody(f"input '{name}': datatype must be one of {', '.join(DATATYPES)}")
        if datatype is BYTES and count > self.limits.max_strings:
            raise PayloadTooLarge(
                f"input '{name}' has {count} BYTES elements, this server takes at most {self.limits.max_strings}"
            )
        if parameters is not None and isinstance(parameters, OBJECTS):
            size = _binary_size(name, data, parameters)
            if size is not None:
                return Tensor(name, datatype, self._take_binary(name, datatype, dims, count, size))
        if data is None:
            raise MalformedBody(f"input '{name}' has neither data nor the parameter binary_data_size")
        return Tensor(name, datatype, self._read_data(name, datatype, dims, count, data))

    def _read_data(self, name: str, datatype: DataType, dims: Sequence[int], count: int, data: Any) -> Array:
        self.squares += 2  # those of shape and data
        if data.__class__ is JsonArray:
            array = read_numbers(name, datatype, dims, count, data)
            if array is not None:
                return array
            return read_values(name, datatype, dims, count, data, self.limits, len(self.text))
        if data.__class__ is not list:
            raise MalformedBody(f"input '{name}': data must be an array")
        return tensor_from_values(name, datatype, dims, count, data)

    def _take_binary(self, name: str, datatype: DataType, dims: Sequence[int], count: int, size: int) -> Array:
        self.squares += 1  # that of shape
        offset = self.offset
        left = len(self.body) - offset
        if size > left:
            hint = (
                " (the header Inference-Header-Content-Length is missing)" if len(self.text) == len(self.body) else ""
            )
            raise MalformedBody(
                f"input '{name}': binary_data_size is {size}, only {left} bytes are left in the binary part{hint}"
            )
        self.offset = offset + size
        return read_tensor(name, datatype, dims, count, self.body, offset, size)

    def _check_depth(self, document: Any, tensors: dict[str, Tensor]) -> None:
        """Refuse documents too deep; counting brackets settles it where data is flat or nested like its shape."""
        text = self.text
        squares = self.squares
        if count_is_at_most(text, b"{", self.limits.most_braces):
            if count_is(text, b"[", squares):
                return
            for entry, tensor in zip(document["inputs"], tensors.values(), strict=True):
                data = entry["data"] if "data" in list(entry) else None
                if data.__class__ is JsonArray:
                    squares += count_arrays(tensor.shape, data) - 1
            if count_is(text, b"[", squares):
                return
        depth = depth_of(text)
        if depth > self.limits.json_depth:
            raise MalformedBody(
                f"the JSON is nested {depth} levels deep, this server takes at most {self.limits.json_depth}"
            )


def _input_members(entry: Any, may_be_binary: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Name, shape, datatype, data and parameters of an input; None for what is absent."""
    if entry.__class__ is not JsonObject or len(entry) != 4:
        return _unusual_members(entry)
    try:
        if may_be_binary:
            return entry["name"], entry["shape"], entry["datatype"], None, entry["parameters"]
        return entry["name"], entry["shape"], entry["datatype"], entry["data"], None
    except KeyError:  # slow, since it was a C++ exception, and rare
        return _unusual_members(entry)


def _unusual_members(entry: Any) -> tuple[Any, Any, Any, Any, Any]:
    members = list(entry) if isinstance(entry, OBJECTS) else []
    return (
        entry["name"] if "name" in members else None,
        entry["shape"] if "shape" in members else None,
        entry["datatype"] if "datatype" in members else None,
        entry["data"] if "data" in members else None,
        entry["parameters"] if "parameters" in members else None,
    )


def _binary_size(name: str, data: Any, parameters: Any) -> int | None:
    """The input's binary_data_size, None if it has none; exactly one source of data is allowed."""
    members = list(parameters)
    if "shared_memory_region" in members:
        raise InvalidRequest(
            f"input '{name}': shared memory is not offered by this server; send the data or binary_data_size"
        )
    if "binary_data_size" not in members:
        return None
    if data is not None:
        raise MalformedBody(f"input '{name}' has both data and the parameter binary_data_size; send one of them")
    size = parameters["binary_data_size"]
    if not is_unsigned(size):
        raise MalformedBody(f"input '{name}': parameter 'binary_data_size' must be a non-negative integer")
    return int(size)
