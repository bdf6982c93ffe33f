"""One shared session under many threads: every reply must be made of its own request."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kernelport.core.errors import BackendInputError
from onnx_backend import load_fixture

THREADS, ROUNDS = 16, 150


def hammer(work: Callable[[np.random.Generator], None], threads: int = THREADS) -> None:
    """Run `work` from many threads that start together."""
    start = threading.Barrier(threads)

    def one(seed: int) -> None:
        random = np.random.default_rng(seed)
        start.wait(30)
        for _ in range(ROUNDS):
            work(random)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(one, seed) for seed in range(threads)]:
            future.result(100)


@pytest.mark.parametrize("fixture", ["echo_flex", "echo_bf16", "echo_bytes"])
def test_echoes_never_mix(tmp_path: Path, fixture: str) -> None:
    model = load_fixture(tmp_path, fixture)
    assert model.is_thread_safe
    dtype = model.signature.inputs[0].datatype.dtype
    is_flexible = fixture == "echo_flex"

    def work(random: np.random.Generator) -> None:
        shape = (int(random.integers(1, 9)), int(random.integers(1, 65)) if is_flexible else 4)
        numbers = random.integers(0, 2**16, shape)
        sent = np.array([str(number).encode() for number in numbers.flat], object).reshape(shape)
        sent = sent if dtype.kind == "O" else numbers.astype(dtype)
        np.testing.assert_array_equal(model.execute({"X": sent}, None)["Y"], sent)

    hammer(work)


def test_differences_never_mix(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "sub_ab", threads=2)

    def work(random: np.random.Generator) -> None:
        rows = int(random.integers(1, 33))
        a, b = random.random((2, rows, 4), np.float32)
        np.testing.assert_array_equal(model.execute({"A": a, "B": b}, None)["Y"], a - b)

    hammer(work)


def test_a_failing_neighbour_changes_nothing(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "gather_poison")

    def work(random: np.random.Generator) -> None:
        index = int(random.integers(0, 7))
        if index > 4:
            with pytest.raises(BackendInputError):
                model.execute({"IDX": np.array([[index]])}, None)
        else:
            assert model.execute({"IDX": np.array([[index]])}, None)["Y"].tolist() == [[index * 10]]

    hammer(work)


def test_results_outlive_later_runs_and_the_model(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "echo_flex")
    kept = [(value, model.execute({"X": np.full((2, value), value, np.float32)}, None)["Y"]) for value in range(1, 50)]
    model.close()
    for value, array in kept:
        assert array.shape == (2, value)
        assert (array == value).all()
