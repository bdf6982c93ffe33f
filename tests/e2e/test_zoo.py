"""Real models through HTTP equal direct ONNX Runtime, alone and 32 at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pytest
import tritonclient.http as triton
from server_process import ServerProcess
from zoo import zoo_model

MODELS = ("magika", "silero-vad", "basic-pitch", "nudenet")
BATCHED_SILERO = """
max_batch_size: 16
input:
  - {name: input, data_type: TYPE_FP32, dims: [-1]}
  - {name: state, data_type: TYPE_FP32, dims: [2, 128], batch_axis: 1}
  - {name: sr, data_type: TYPE_INT64, dims: [], batch_axis: null}
output:
  - {name: output, data_type: TYPE_FP32, dims: [1]}
  - {name: stateN, data_type: TYPE_FP32, dims: [-1, -1], batch_axis: 1}
dynamic_batching: {max_queue_delay_microseconds: 2000}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("models")
    for name in MODELS:
        folder = root / name / "1"
        folder.mkdir(parents=True)
        shutil.copy(zoo_model(name), folder / "model.onnx")
    shutil.copytree(root / "silero-vad", root / "silero-batched")
    (root / "silero-batched" / "model.yaml").write_text(BATCHED_SILERO)
    return root


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[ServerProcess]:
    with ServerProcess(repository, "--host", "127.0.0.1", "--max-batch-size", "8") as running:
        yield running


def feeds(name: str, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    if name == "magika":
        return {"bytes": rng.integers(0, 256, (1, 2048)).astype(np.int32)}
    if name.startswith("silero"):
        return {
            "input": rng.uniform(-1, 1, (1, 512)).astype(np.float32),
            "state": rng.standard_normal((2, 1, 128)).astype(np.float32),
            "sr": np.array(16000, np.int64),
        }
    if name == "basic-pitch":
        return {"serving_default_input_2:0": rng.uniform(-1, 1, (1, 43844, 1)).astype(np.float32)}
    return {"images": rng.uniform(0, 1, (1, 3, 96, 96)).astype(np.float32)}


def ask(address: str, name: str, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    client = triton.InferenceServerClient(address)
    sent = []
    for key, array in inputs.items():
        one = triton.InferInput(key, list(array.shape), triton.np_to_triton_dtype(array.dtype))
        one.set_data_from_numpy(array)
        sent.append(one)
    result = client.infer(name, sent)
    found = {one["name"]: result.as_numpy(one["name"]) for one in result.get_response()["outputs"]}
    client.close()
    return found


@pytest.mark.parametrize("name", [*MODELS, "silero-batched"])
def test_a_real_model_answers_as_onnxruntime_does_alone_and_among_32(
    server: ServerProcess, repository: Path, name: str
) -> None:
    session = onnxruntime.InferenceSession(repository / name / "1" / "model.onnx")
    names = [one.name for one in session.get_outputs()]
    inputs = [feeds(name, seed) for seed in range(32)]
    wanted = [dict(zip(names, session.run(names, one), strict=True)) for one in inputs]
    address = server.url.removeprefix("http://")
    with ThreadPoolExecutor(32) as pool:
        found = [ask(address, name, inputs[0]), *pool.map(lambda one: ask(address, name, one), inputs)]
    for got, want in zip(found, [wanted[0], *wanted], strict=True):
        assert set(got) == set(want)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=1e-3, atol=1e-5, err_msg=key)


def test_which_models_are_batched_is_found_out_by_the_server(server: ServerProcess) -> None:
    def most_rows(name: str) -> int:
        return int(httpx.get(f"{server.url}/v2/models/{name}/config").raise_for_status().json()["max_batch_size"])

    assert {name: most_rows(name) for name in MODELS} == {
        "magika": 8, "silero-vad": 0, "basic-pitch": 8, "nudenet": 8,
    }  # fmt: skip


def test_silero_is_batched_right_once_every_tensor_names_its_axis(server: ServerProcess, repository: Path) -> None:
    address = server.url.removeprefix("http://")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda seed: ask(address, "silero-batched", feeds("silero", seed)), range(64)))
    (found,) = httpx.get(f"{server.url}/v2/models/silero-batched/stats").json()["model_stats"]
    assert found["execution_count"] < found["inference_count"]
