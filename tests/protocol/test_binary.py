"""The binary layout of tensors, both ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from infer_bodies import array_of, bytes_content, same_bits
from kernelport.core.errors import TensorMismatch
from kernelport.core.tensor import BF16, BOOL, BYTES, DATATYPES, FP32, FP64, INT32, UINT8, DataType
from kernelport.protocol.binary import read_elements, read_tensor, write_tensor

FIXED = [one for one in DATATYPES.values() if one is not BYTES]


@pytest.mark.parametrize("datatype", FIXED, ids=repr)
def test_bytes_of_every_datatype_survive_the_round_trip(datatype: DataType) -> None:
    content = bytes(range(1, 1 + 6 * datatype.item_size)) if datatype is not BOOL else b"\0\1\1\0\0\1"
    array = read_tensor("x", datatype, [2, 3], 6, content, 0, len(content))
    assert array.shape == (2, 3)
    assert array.dtype == datatype.dtype
    assert bytes(write_tensor(datatype, array)) == content


def test_nan_bits_are_kept() -> None:
    content = bytes.fromhex("0100c07fffffff7f000080ff00000080")
    array = read_tensor("x", FP32, [4], 4, content, 0, 16)
    assert bytes(write_tensor(FP32, array)) == content
    assert bytes(write_tensor(BF16, read_tensor("x", BF16, [2], 2, b"\xc1\x7f\x00\xff", 0, 4))) == b"\xc1\x7f\x00\xff"


def test_numbers_are_views_on_the_body() -> None:
    body = b"head" + np.arange(4, dtype="<f4").tobytes()
    array = read_tensor("x", FP32, [4], 4, body, 4, 16)
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert array.tolist() == [0, 1, 2, 3]


def test_a_misaligned_view_is_copied() -> None:
    body = b"a" + np.arange(2, dtype="<f8").tobytes()
    array = read_tensor("x", FP64, [2], 2, body, 1, 16)
    assert array.flags.aligned
    assert array.tolist() == [0, 1]
    assert not read_tensor("x", UINT8, [16], 16, body, 1, 16).flags.owndata


def test_any_non_zero_byte_is_true_and_becomes_one() -> None:
    array = read_tensor("x", BOOL, [4], 4, b"\x00\x01\x02\xff", 0, 4)
    assert array.view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("size", [0, 15, 17, 32])
def test_a_size_other_than_the_shapes_is_refused_with_both(size: int) -> None:
    with pytest.raises(TensorMismatch, match=rf"input 'x': shape \[4\] of INT32 takes 16 bytes, .* is {size}"):
        read_tensor("x", INT32, [4], 4, b"\0" * 64, 0, size)


@pytest.mark.parametrize("datatype", FIXED, ids=repr)
def test_empty_tensors_take_no_bytes(datatype: DataType) -> None:
    array = read_tensor("x", datatype, [2, 0], 0, b"abc", 3, 0)
    assert array.shape == (2, 0)
    assert bytes(write_tensor(datatype, array)) == b""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xff\xff\xff" + b"a" * 12, "element 0 does not fit: it should have 4294967295 bytes, 12 are left"),
        (
            bytes_content(b"aa", b"b", b"c") + b"\5\0\0\0abc",
            "element 3 does not fit: it should have 5 bytes, 3 are left",
        ),
        (bytes_content(b"a", b"b", b"c") + b"\0", "element 3 does not fit: its 4-byte length is cut off after 1 bytes"),
        (bytes_content(b"aaaa", b"b", b"c"), "needs 4 elements, the binary data has 3"),
        (bytes_content(b"a", b"b", b"c", b"d") + b"x", "1 bytes are left over after its 4 elements"),
        (bytes_content(b"a", b"b", b"c", b"d", b"e"), "5 bytes are left over"),
        (b"\0\0\0", "takes at least 16 bytes .* got 3"),
        (b"", "takes at least 16 bytes .* got 0"),
    ],
)
def test_lying_lengths_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(TensorMismatch, match=rf"input 'x'.*{reason}"):
        read_elements("x", [1, 4], 4, content, 0, len(content))


def test_a_declared_size_allocates_nothing() -> None:
    with pytest.raises(TensorMismatch, match="takes at least"):
        read_elements("x", [2**40], 2**40, bytes_content(b"a"), 0, 5)


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_elements_survive_the_round_trip(elements: list[bytes]) -> None:
    array = array_of(BYTES, elements)
    content = write_tensor(BYTES, array)
    assert content == bytes_content(*elements)
    assert same_bits(read_elements("x", [len(elements)], len(elements), content, 0, len(content)), array)


def test_elements_get_the_shape_of_the_tensor() -> None:
    content = bytes_content(b"a\0", b"", b"\xff\xfe", b"d")
    assert read_elements("x", [2, 2], 4, content, 0, len(content)).tolist() == [[b"a\0", b""], [b"\xff\xfe", b"d"]]
    assert read_elements("x", [], 1, bytes_content(b"one"), 0, 7).shape == ()


def test_big_outputs_are_views_and_small_ones_copies() -> None:
    big = np.arange(5000, dtype="<f4").reshape(2, 2500)
    view = write_tensor(FP32, big)
    assert isinstance(view, memoryview)
    assert np.shares_memory(np.frombuffer(view, np.uint8), big)
    assert len(view) == big.nbytes
    assert isinstance(write_tensor(FP32, big[:, :10]), bytes)


def test_strided_outputs_are_written_in_row_major_order() -> None:
    array = np.arange(20_000, dtype="<i4").reshape(100, 200).T
    assert bytes(write_tensor(INT32, array)) == array.tobytes()
    assert (
        bytes(write_tensor(INT32, np.arange(10_000, dtype="<i4")[::2]))
        == np.arange(0, 10_000, 2, dtype="<i4").tobytes()
    )


@pytest.mark.parametrize("datatype", [one for one in DATATYPES.values() if one.name != "BYTES"], ids=str)
def test_a_scalar_is_an_array_without_dimensions(datatype: DataType) -> None:
    found = read_tensor("x", datatype, [], 1, b"\1" + b"\0" * (datatype.item_size - 1), 0, datatype.item_size)
    assert isinstance(found, np.ndarray)
    assert found.shape == ()
    assert found.dtype == datatype.dtype
