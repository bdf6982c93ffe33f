"""Bodies that are one tensor and nothing else."""

import numpy as np
import pytest
from infer_bodies import model
from kernelport.core.errors import InvalidRequest, TensorMismatch
from kernelport.core.tensor import BYTES, FP32, INT32, Shape, TensorSpec
from kernelport.protocol.raw_request import decode_raw
from kernelport.protocol.v2_decode import decode_request

FOUR = np.arange(4, dtype="<f4").tobytes()


def _shape(body: bytes, shape: Shape | None, max_batch_size: int = 0, batch_axis: int | None = 0) -> Shape:
    spec = model([TensorSpec("x", FP32, shape, batch_axis=batch_axis)], max_batch_size=max_batch_size)
    return decode_raw(body, spec).inputs["x"].shape


def test_the_free_dimension_follows_from_the_size() -> None:
    assert _shape(FOUR, (-1,)) == (4,)
    assert _shape(FOUR * 2, (-1, 4)) == (2, 4)
    assert _shape(FOUR, (2, 2)) == (2, 2)
    assert _shape(b"", (-1,)) == (0,)


def test_a_batching_model_gets_one_row() -> None:
    assert _shape(FOUR, (-1, 4), 8) == (1, 4)
    assert _shape(FOUR, (-1, -1), 8) == (1, 4)
    assert _shape(FOUR, (4, -1), 8, 1) == (4, 1)


def test_all_outputs_come_back_as_binary() -> None:
    request = decode_request(FOUR, 0, model([TensorSpec("x", FP32, (-1,))]))
    assert request.binary_output
    assert request.outputs is None
    assert request.inputs["x"].array.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("body", "shape"), [(b"abc", (-1,)), (FOUR, (3,)), (FOUR, (-1, 3)), (b"", (4,)), (FOUR, (-1, 0)), (FOUR, (0,))]
)
def test_sizes_that_no_shape_fits_are_refused(body: bytes, shape: Shape) -> None:
    with pytest.raises(TensorMismatch, match=f"the raw body has {len(body)}"):
        _shape(body, shape)


def test_shapes_that_cannot_be_told_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="more than one free dimension"):
        _shape(FOUR, (-1, -1))
    with pytest.raises(InvalidRequest, match="known rank"):
        _shape(FOUR, None)
    with pytest.raises(InvalidRequest, match="exactly 1 input, this one has 2"):
        decode_raw(FOUR, model([TensorSpec("a", INT32, (1,)), TensorSpec("b", INT32, (1,))]))


def test_a_bytes_input_takes_the_body_as_its_only_element() -> None:
    request = decode_raw(b"\x01hello", model([TensorSpec("x", BYTES, (1,))]))
    assert request.inputs["x"].array.tolist() == [b"\x01hello"]
    request = decode_raw(memoryview(b"hello"), model([TensorSpec("x", BYTES, (-1, 1))], max_batch_size=4))
    assert request.inputs["x"].array.tolist() == [[b"hello"]]
    for shape in ((-1,), (2,), (1, 1)):
        with pytest.raises(InvalidRequest, match=r"needs the input shape \[1\]"):
            decode_raw(b"hello", model([TensorSpec("x", BYTES, shape)]))
