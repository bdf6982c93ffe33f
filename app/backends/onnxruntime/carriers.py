"""How tensors cross into the runtime's types and back: BYTES, BF16, memory layout. Runs on: worker thread."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...core.errors import BackendInputError
from ...core.tensor import Array
from .runtime import ort

_ONNX_BFLOAT16 = 16


def plain_array(array: Array) -> Array:
    """The array in native byte order, contiguous and aligned; itself when it already is.

    The runtime reads big-endian data as little-endian without a word, so the order is not left to luck.
    """
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.require(array, array.dtype.newbyteorder("="), ("C", "A"))


def decode_strings(name: str, array: Array) -> Array:
    """BYTES elements as `str`, the only form the runtime takes unchanged; BackendInputError when one is no UTF-8."""
    elements = array.ravel().tolist()
    texts = np.empty(len(elements), object)
    try:
        texts[:] = [element.decode() for element in elements]
    except UnicodeDecodeError as error:
        index = elements.index(error.object)
        raise BackendInputError(
            f"input {name!r}: element {index} is not valid UTF-8 (byte {error.start} is "
            f"0x{error.object[error.start]:02x}); onnxruntime takes text only"
        ) from error
    return texts.reshape(array.shape)


def encode_strings(array: Array) -> Array:
    """The runtime's strings as BYTES elements."""
    elements = array.ravel().tolist()
    encoded = np.empty(len(elements), object)
    encoded[:] = [element.encode() for element in elements]
    return encoded.reshape(array.shape)


def bf16_value(_name: str, array: Array) -> Any:
    """An OrtValue of type bfloat16 over the uint16 bit patterns; the value keeps the array alive."""
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _ONNX_BFLOAT16)


def as_value(feed: Any) -> Any:
    """An OrtValue over an array that is not one yet."""
    return ort.OrtValue.ortvalue_from_numpy(feed) if isinstance(feed, np.ndarray) else feed


def bf16_array(value: Any) -> Array:
    """A copy of a bfloat16 OrtValue's bit patterns."""
    bits = np.empty(value.shape(), np.uint16)
    if bits.size:  # a tensor without elements has no address
        ctypes.memmove(bits.ctypes.data, value.data_ptr(), bits.nbytes)
    return bits
