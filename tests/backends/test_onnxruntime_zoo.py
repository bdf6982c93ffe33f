"""Real models: the backend's answers are the runtime's own, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import zoo
from kernelport.backends.onnxruntime.runtime import ort
from kernelport.core.tensor import Array
from onnx_backend import load_file

Inputs = dict[str, Array]
RANDOM = np.random.default_rng(7)
MAKERS: dict[str, Callable[[int], Inputs]] = {
    "magika": lambda rows: {"bytes": RANDOM.integers(0, 257, (rows, 2048), np.int32)},
    "silero-vad": lambda rows: {
        "input": RANDOM.standard_normal((rows, 512), np.float32),
        "state": RANDOM.standard_normal((2, rows, 128), np.float32),
        "sr": np.array(16000, np.int64),
    },
    "basic-pitch": lambda rows: {"serving_default_input_2:0": RANDOM.standard_normal((rows, 43844, 1), np.float32)},
    "nudenet": lambda rows: {"images": RANDOM.random((rows, 3, 320, 320), np.float32)},
}


def runtime_alone(name: str, inputs: Inputs) -> dict[str, Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(zoo.zoo_model(name)), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def test_every_real_model_has_inputs_here() -> None:
    assert set(MAKERS) == set(zoo.NAMES)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_answers_are_the_runtimes_own(name: str, rows: int) -> None:
    inputs = MAKERS[name](rows)
    model = load_file(zoo.zoo_model(name))
    ours, theirs = model.execute(inputs, None), runtime_alone(name, inputs)
    assert list(ours) == list(theirs)
    for output, array in theirs.items():
        np.testing.assert_array_equal(ours[output], array)
    model.close()


def test_names_and_dimension_expressions_survive() -> None:
    pitch = load_file(zoo.zoo_model("basic-pitch")).signature
    assert {one.name for one in pitch.outputs} == {f"StatefulPartitionedCall:{number}" for number in range(3)}
    (boxes,) = load_file(zoo.zoo_model("nudenet")).signature.outputs
    assert boxes.shape == (-1, 22, -1)
    assert "height" in boxes.symbols[2]


def test_speech_state_carried_by_the_caller_gives_the_runtimes_sequence() -> None:
    path = zoo.zoo_model("silero-vad")
    model = load_file(path)
    state = {"ours": np.zeros((2, 1, 128), np.float32), "theirs": np.zeros((2, 1, 128), np.float32)}
    for _ in range(5):
        chunk = MAKERS["silero-vad"](1)
        ours = model.execute({**chunk, "state": state["ours"]}, None)
        theirs = runtime_alone("silero-vad", {**chunk, "state": state["theirs"]})
        np.testing.assert_array_equal(ours["output"], theirs["output"])
        state = {"ours": ours["stateN"], "theirs": theirs["stateN"]}
