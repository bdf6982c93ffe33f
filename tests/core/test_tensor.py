"""Datatypes of the protocol, and which tensors fit a declaration."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.tensor import BF16, BYTES, DATATYPES, FP32, INT8, Tensor, TensorSpec, datatype

PROTOCOL = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
SHAPES = st.lists(st.integers(0, 9), max_size=5)


def test_every_datatype_of_the_protocol_is_there() -> None:
    assert set(DATATYPES) == {*PROTOCOL, "BF16", "BYTES"}
    with pytest.raises(KeyError):
        datatype("FP8")


@pytest.mark.parametrize("name", sorted(DATATYPES))
def test_the_carrier_has_the_size_on_the_wire_and_its_least_byte_first(name: str) -> None:
    one = datatype(name)
    if one is not BYTES:
        assert one.dtype.itemsize == one.item_size
        assert one.dtype == one.dtype.newbyteorder("<")
    assert one.config_name == ("TYPE_STRING" if one is BYTES else f"TYPE_{name}")


@pytest.mark.parametrize("name", sorted(DATATYPES))
def test_a_datatype_stays_itself_through_pickle(name: str) -> None:
    assert pickle.loads(pickle.dumps(datatype(name))) is datatype(name)
    assert repr(datatype(name)) == name


def test_integers_know_their_range() -> None:
    assert (INT8.minimum, INT8.maximum) == (-128, 127)
    assert (BF16.minimum, BF16.maximum) == (0, 0)


@given(SHAPES)
def test_a_tensor_has_the_shape_of_its_array(shape: list[int]) -> None:
    tensor = Tensor("x", FP32, np.zeros(shape, np.float32))
    assert tensor.shape == tuple(shape)
    assert repr(tensor) == f"Tensor('x', FP32, {shape})"


@given(SHAPES, st.data())
def test_free_dimensions_take_any_size_and_fixed_ones_only_theirs(shape: list[int], data: st.DataObject) -> None:
    free = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    declared = tuple(-1 if is_free else size for size, is_free in zip(shape, free, strict=True))
    spec = TensorSpec("x", FP32, declared)
    assert spec.accepts(shape)
    assert not spec.accepts([*shape, 1])
    for axis, is_free in enumerate(free):
        other = [*shape[:axis], shape[axis] + 1, *shape[axis + 1 :]]
        assert spec.accepts(other) == is_free


@given(SHAPES)
def test_an_unknown_rank_takes_every_shape(shape: list[int]) -> None:
    assert TensorSpec("x", FP32, None).accepts(shape)


def test_declarations_read_well_in_messages() -> None:
    assert TensorSpec("x", FP32, (-1, 4)).describe() == "x (FP32 [-1,4])"
    assert TensorSpec("n", INT8, ()).describe() == "n (INT8 [])"
    assert TensorSpec("u", BYTES, None).describe() == "u (BYTES [?])"
