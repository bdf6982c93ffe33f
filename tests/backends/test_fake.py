import json
import threading
from pathlib import Path

import numpy as np
import pytest
from kernelport.backends.base import BackendOptions
from kernelport.backends.fake import FakeBehaviour, FakeModel
from kernelport.core.errors import BackendError, BackendInputError, LoadError
from kernelport.core.model import ModelArtifact, Signature
from kernelport.core.tensor import FP32, TensorSpec
from kernelport.devices.device import CPU

SIGNATURE = Signature((TensorSpec("X", FP32, (-1, 2)),), (TensorSpec("Y", FP32, (-1, 2)),), "fake")
ROWS = np.array([[1, 2], [3, 4]], np.float32)


def test_values_can_blame_the_input_or_the_framework() -> None:
    model = FakeModel(SIGNATURE, FakeBehaviour(fail_on=3, break_on=9))
    with pytest.raises(BackendInputError, match="'X' holds 3"):
        model.execute({"X": ROWS}, None)
    with pytest.raises(BackendError, match="broken by 9"):
        model.execute({"X": np.full((1, 2), 9, np.float32)}, None)
    np.testing.assert_array_equal(model.execute({"X": ROWS[:1]}, None)["Y"], ROWS[:1])


@pytest.mark.parametrize(("extra", "rows"), [(2, 4), (-1, 1), (0, 2)])
def test_it_can_answer_a_wrong_number_of_rows(extra: int, rows: int) -> None:
    model = FakeModel(SIGNATURE, FakeBehaviour(extra_rows=extra))
    assert model.execute({"X": ROWS}, None)["Y"].shape == (rows, 2)


def test_a_gate_holds_runs_and_counts_them() -> None:
    gate = threading.Event()
    model = FakeModel(SIGNATURE, FakeBehaviour(gate=gate))
    threads = [threading.Thread(target=model.execute, args=({"X": ROWS}, None)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert model.entered.acquire(timeout=10)
    assert model.most_at_once == 3
    gate.set()
    for thread in threads:
        thread.join(10)
    assert model.calls == [(2, 2)] * 3


def test_an_answer_function_replaces_the_echo() -> None:
    model = FakeModel(SIGNATURE, FakeBehaviour(answer=lambda inputs: {"Y": inputs["X"] * 2}))
    np.testing.assert_array_equal(model.execute({"X": ROWS}, ("Y",))["Y"], ROWS * 2)


def test_the_artifact_can_ask_for_its_own_failure(tmp_path: Path) -> None:
    path = tmp_path / "model.fake"
    path.write_text(json.dumps({"inputs": [], "outputs": [], "load_error": "no luck"}))
    with pytest.raises(LoadError, match="'m': no luck"):
        FakeModel.load(ModelArtifact("m", "1", tmp_path, path), CPU, BackendOptions())
