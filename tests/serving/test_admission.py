"""Requests against the signature of the model."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.errors import TensorMismatch
from kernelport.core.model import ModelSpec
from kernelport.core.request import InferenceRequest, RequestedOutput
from kernelport.core.tensor import BYTES, FP32, INT32, INT64, DataType, Tensor, TensorSpec
from kernelport.serving.admission import check


def model(*inputs: TensorSpec, max_batch_size: int = 8) -> ModelSpec:
    outputs = (TensorSpec("y", FP32, (-1, 3)), TensorSpec("z", FP32, (-1,)))
    return ModelSpec("m", "1", "onnxruntime_onnx", "onnxruntime", max_batch_size, inputs, outputs)


def tensor(name: str, shape: Sequence[int], datatype: DataType = FP32) -> Tensor:
    return Tensor(name, datatype, np.zeros(tuple(shape), datatype.dtype))


def request(*tensors: Tensor, outputs: Sequence[str] | None = None) -> InferenceRequest:
    wanted = None if outputs is None else tuple(RequestedOutput(name) for name in outputs)
    return InferenceRequest({one.name: one for one in tensors}, wanted)


X = TensorSpec("x", FP32, (-1, 4))
TWO = model(X, TensorSpec("k", INT32, (-1, 2)))


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_a_fitting_request_has_its_rows_counted(rows: int) -> None:
    assert check(request(tensor("x", [rows, 4]), tensor("k", [rows, 2], INT32)), TWO) == rows


def test_the_order_of_inputs_does_not_matter() -> None:
    assert check(request(tensor("k", [2, 2], INT32), tensor("x", [2, 4])), TWO) == 2


def test_a_model_without_batching_has_one_row_whatever_the_shape() -> None:
    spec = model(TensorSpec("x", FP32, (-1, 4)), TensorSpec("s", INT64, ()), max_batch_size=0)
    assert check(request(tensor("x", [7, 4]), tensor("s", [], INT64)), spec) == 1
    assert check(request(tensor("x", [0, 4]), tensor("s", [], INT64)), spec) == 1


def test_missing_and_unexpected_inputs_are_listed_with_the_signature() -> None:
    with pytest.raises(TensorMismatch) as failure:
        check(request(tensor("X", [1, 4]), tensor("q", [1])), TWO)
    assert str(failure.value) == (
        "model 'm': missing input 'x', 'k' and unexpected input 'X', 'q'; "
        "the model takes x (FP32 [-1,4]), k (INT32 [-1,2])"
    )
    with pytest.raises(TensorMismatch, match="unexpected input 'q'; the model takes"):
        check(request(tensor("x", [1, 4]), tensor("k", [1, 2], INT32), tensor("q", [1])), TWO)
    with pytest.raises(TensorMismatch, match="missing input 'k'; the model takes"):
        check(request(tensor("x", [1, 4])), TWO)


def test_optional_inputs_may_be_absent_and_are_checked_when_present() -> None:
    spec = model(X, TensorSpec("o", INT32, (-1, 2), optional=True))
    assert check(request(tensor("x", [2, 4])), spec) == 2
    assert check(request(tensor("x", [2, 4]), tensor("o", [2, 2], INT32)), spec) == 2
    with pytest.raises(TensorMismatch, match=r"input 'o' has shape \[2,3\], the model expects \[-1,2\]"):
        check(request(tensor("x", [2, 4]), tensor("o", [2, 3], INT32)), spec)
    with pytest.raises(TensorMismatch, match=r"missing input 'x'.*o \(INT32 \[-1,2\]\) optional"):
        check(request(tensor("o", [2, 2], INT32)), spec)


def test_the_datatype_must_be_the_models() -> None:
    for wrong in (INT64, BYTES):
        with pytest.raises(TensorMismatch, match=f"input 'x' has datatype {wrong}, the model expects FP32"):
            check(request(tensor("x", [1, 4], wrong)), model(X))


@pytest.mark.parametrize("shape", [[1, 5], [4], [], [1, 1, 4], [1, 0]])
def test_the_shape_must_be_the_models(shape: list[int]) -> None:
    with pytest.raises(TensorMismatch, match=r"model 'm': input 'x' has shape \[[\d,]*\], the model expects \[-1,4\]"):
        check(request(tensor("x", shape)), model(X))


def test_a_forgotten_batch_dimension_is_hinted_at() -> None:
    with pytest.raises(TensorMismatch, match="the first dimension is the batch"):
        check(request(tensor("x", [4])), model(X))


def test_free_dimensions_are_shown_by_the_names_in_the_artifact() -> None:
    spec = model(TensorSpec("x", FP32, (-1, 3, -1), symbols=("batch", "", "width")))
    with pytest.raises(TensorMismatch, match=r"the model expects \[batch,3,width\]"):
        check(request(tensor("x", [1, 2, 5])), spec)


def test_batch_sizes_must_agree_and_be_positive() -> None:
    with pytest.raises(TensorMismatch, match=r"same batch size of at least 1, got 'x' 1, 'k' 2"):
        check(request(tensor("x", [1, 4]), tensor("k", [2, 2], INT32)), TWO)
    with pytest.raises(TensorMismatch, match=r"the batch size is 0, it must be 1 to 8"):
        check(request(tensor("x", [0, 4]), tensor("k", [0, 2], INT32)), TWO)
    with pytest.raises(TensorMismatch, match=r"got 'x' 0, 'k' 2"):
        check(request(tensor("x", [0, 4]), tensor("k", [2, 2], INT32)), TWO)


def test_too_many_rows_are_refused_with_both_numbers_unless_the_caller_splits() -> None:
    nine = request(tensor("x", [9, 4]))
    with pytest.raises(TensorMismatch, match="model 'm': the batch size is 9, the model takes at most 8"):
        check(nine, model(X))
    assert check(nine, model(X), allow_oversized=True) == 9


def test_each_tensor_has_its_own_batch_axis() -> None:
    spec = model(
        TensorSpec("x", FP32, (-1, 576)),
        TensorSpec("state", FP32, (2, -1, 128), batch_axis=1),
        TensorSpec("rate", INT64, (), batch_axis=None),
    )
    inputs = (tensor("x", [3, 576]), tensor("state", [2, 3, 128]), tensor("rate", [], INT64))
    assert check(request(*inputs), spec) == 3
    with pytest.raises(TensorMismatch, match="got 'x' 3, 'state' 4"):
        check(request(inputs[0], tensor("state", [2, 4, 128]), inputs[2]), spec)


def test_a_batching_model_whose_inputs_have_no_batch_axis_has_one_row() -> None:
    assert check(request(tensor("x", [5])), model(TensorSpec("x", FP32, (-1,), batch_axis=None))) == 1


def test_an_unknown_rank_takes_any_shape_that_has_the_batch() -> None:
    spec = model(TensorSpec("x", FP32, None), max_batch_size=0)
    for shape in ([], [3], [1, 2, 3]):
        assert check(request(tensor("x", shape)), spec) == 1
    spec = model(TensorSpec("x", FP32, None, batch_axis=1))
    assert check(request(tensor("x", [5, 3])), spec) == 3
    with pytest.raises(TensorMismatch, match="at least 2 dimensions"):
        check(request(tensor("x", [5])), spec)


def test_unknown_outputs_are_refused_with_the_known_ones() -> None:
    assert check(request(tensor("x", [1, 4]), outputs=["z"]), model(X)) == 1
    with pytest.raises(TensorMismatch, match="unexpected output 'NOPE'; the model has 'y', 'z'"):
        check(request(tensor("x", [1, 4]), outputs=["y", "NOPE"]), model(X))


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(-1, 3), max_size=4))
def test_a_shape_passes_exactly_when_the_declaration_accepts_it(shape: list[int], declared: list[int]) -> None:
    want = TensorSpec("x", FP32, tuple(declared), batch_axis=None)
    try:
        check(request(tensor("x", shape)), model(want))
        passed = True
    except TensorMismatch:
        passed = False
    assert passed == want.accepts(shape)
