"""Memory must not ratchet: loading and unloading, and ever new shapes."""

import gc
from pathlib import Path

import numpy as np
import pytest
from fixture_models import heavy
from kernelport.devices.memory import return_freed_memory
from onnx_backend import load_file, load_fixture

MIB = 1 << 20


def resident_mib() -> float:
    """Resident memory after everything free has been given back."""
    gc.collect()
    return_freed_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / MIB


def write_heavy(folder: Path, megabytes: int) -> Path:
    path = folder / "heavy" / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(heavy(megabytes).SerializeToString())
    return path


def test_a_closed_model_gives_its_memory_back(tmp_path: Path) -> None:
    path = write_heavy(tmp_path, 64)
    load_file(path).close()
    before = resident_mib()
    model = load_file(path)
    model.execute({"X": np.ones((1, 4), np.float32)}, None)
    loaded = resident_mib()
    model.close()
    assert loaded - before > 48
    assert resident_mib() - before < 16


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loading_and_unloading_again_and_again_does_not_grow(tmp_path: Path) -> None:
    path = write_heavy(tmp_path, 100)

    def cycle() -> None:
        model = load_file(path)
        for _ in range(10):
            model.execute({"X": np.ones((2, 4), np.float32)}, None)
        model.close()

    for _ in range(5):
        cycle()
    before = resident_mib()
    for _ in range(30):
        cycle()
    assert resident_mib() - before < 30


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ever_new_shapes_do_not_grow(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "varlen_sum")
    random = np.random.default_rng(0)

    def run(times: int) -> None:
        for _ in range(times):
            shape = (int(random.integers(1, 9)), int(random.integers(1, 4097)))
            model.execute({"X": np.ones(shape, np.float32)}, None)

    run(1000)
    before = resident_mib()
    run(4000)
    assert resident_mib() < before * 1.05


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_unique_strings_do_not_grow(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "echo_bytes")

    def run(first: int, last: int) -> None:
        for number in range(first, last):
            sent = np.array([[str(number).encode() * 100, b"", b"a", b"b"]], object)
            model.execute({"X": sent}, None)

    run(0, 20_000)
    before = resident_mib()
    run(20_000, 120_000)
    assert resident_mib() - before < 8
