import numpy as np
import pytest
from kernelport.core.tensor import BOOL, BYTES, FP32, INT64, DataType, TensorSpec
from kernelport.lifecycle.rowpool import MAX_BYTES, RowPool


def random() -> np.random.Generator:
    return np.random.default_rng(0)


X = TensorSpec("x", FP32, (-1, 2))
STATE = TensorSpec("state", FP32, (3, -1), batch_axis=1)
SHARED = TensorSpec("rate", FP32, (), batch_axis=None)


def test_rows_are_taken_along_each_tensors_own_axis() -> None:
    arrays = {
        "x": np.arange(8, dtype=np.float32).reshape(4, 2),
        "state": np.arange(12, dtype=np.float32).reshape(3, 4),
        "rate": np.array(7, np.float32),
    }
    taken = RowPool([X, STATE, SHARED], arrays).take([2, 0])
    assert taken["x"].tolist() == [[4, 5], [0, 1]]
    assert taken["state"].tolist() == [[2, 0], [6, 4], [10, 8]]
    assert taken["rate"].item() == 7
    assert all(array.flags.c_contiguous for array in taken.values())


@pytest.mark.parametrize("kind", [INT64, BOOL, BYTES])
def test_the_first_two_rows_are_different_even_for_tiny_inputs(kind: DataType) -> None:
    spec = TensorSpec("x", kind, (-1, 1))
    for seed in range(20):
        pool = RowPool.invented([spec], 2, 1, np.random.default_rng(seed))
        assert pool is not None
        assert pool.take([0])["x"].tolist() != pool.take([1])["x"].tolist()


def test_memory_bounds_the_rows() -> None:
    wide = TensorSpec("x", FP32, (-1, MAX_BYTES // 16))
    pool = RowPool.invented([wide], 32, 1, random())
    assert pool is not None
    assert pool.rows == 4


def test_an_unknown_rank_gives_no_pool() -> None:
    assert RowPool.invented([TensorSpec("x", FP32, None), X], 4, 1, random()) is None


def test_samples_are_repeated_to_fill_the_batch() -> None:
    samples = [{"x": np.array([[1, 2]], np.float32)}, {"x": np.array([[3, 4], [5, 6]], np.float32)}]
    pool = RowPool.sampled([X], samples, 5, random())
    assert pool.take(range(5))["x"].tolist() == [[1, 2], [3, 4], [5, 6], [1, 2], [3, 4]]


def test_samples_of_another_shape_are_left_out() -> None:
    spec = TensorSpec("x", FP32, (-1, -1))
    samples = [{"x": np.ones((2, 3), np.float32)}, {"x": np.zeros((2, 4), np.float32)}, {"x": np.zeros((1, 3), "f4")}]
    pool = RowPool.sampled([spec], samples, 3, random())
    assert pool.take([0, 1, 2])["x"].shape == (3, 3)


def test_samples_of_equal_rows_are_replaced_by_values_of_their_shape() -> None:
    spec = TensorSpec("x", FP32, (-1, -1))
    pool = RowPool.sampled([spec], [{"x": np.zeros((1, 5), np.float32)}], 4, random())
    taken = pool.take([0, 1, 2, 3])["x"]
    assert taken.shape == (4, 5)
    assert len(np.unique(taken, axis=0)) == 4
