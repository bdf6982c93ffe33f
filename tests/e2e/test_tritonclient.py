"""Triton's own Python clients, blocking and asyncio, against a server in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from server_process import ServerProcess
from tritonclient.utils import InferenceServerException

ARRAYS = {
    "bool": np.array([[True, False, True, True]]),
    "uint8": np.array([[0, 1, 254, 255]], np.uint8),
    "uint16": np.array([[0, 1, 2, 65535]], np.uint16),
    "uint32": np.array([[0, 1, 2, 2**32 - 1]], np.uint32),
    "uint64": np.array([[0, 1, 2**53 + 1, 2**64 - 1]], np.uint64),
    "int8": np.array([[-128, -1, 0, 127]], np.int8),
    "int16": np.array([[-32768, -1, 0, 32767]], np.int16),
    "int32": np.array([[-(2**31), -1, 0, 2**31 - 1]], np.int32),
    "int64": np.array([[-(2**63), -1, 2**53 + 1, 2**63 - 1]], np.int64),
    "fp16": np.array([[1.5, 65504, 6e-8, -0.0]], np.float16),
    "fp32": np.array([[0.1, -1e-30, 3e38, 2]], np.float32),
    "fp64": np.array([[0.1, -1e-300, 1e308, 2]], np.float64),
    "bytes": np.array([[b"", "größe".encode(), b"a\x00b", b"plain"]], np.object_),
}


def _input(array: np.ndarray[Any, Any], name: str = "X", binary: bool = True) -> triton.InferInput:
    tensor = triton.InferInput(name, list(array.shape), triton.np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor


def _row(value: float) -> np.ndarray[Any, Any]:
    return np.full((1, 4), value, np.float32)


def _address(server: ServerProcess) -> str:
    return server.url.partition("://")[2]


@pytest.fixture
def client(server) -> Iterator[triton.InferenceServerClient]:
    """The blocking client."""
    with triton.InferenceServerClient(_address(server), concurrency=32) as one:
        yield one


def test_health_and_metadata_are_as_the_client_expects_them(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("echo_fp32")
    assert client.is_model_ready("versions", "3")
    assert not client.is_model_ready("versions", "2")
    assert not client.is_model_ready("nope")
    assert "statistics" in client.get_server_metadata()["extensions"]
    assert client.get_model_metadata("versions")["versions"] == ["1", "3"]
    config = client.get_model_config("echo_fp32")
    assert (config["name"], config["max_batch_size"] > 0) == ("echo_fp32", True)
    assert {one["name"] for one in config["input"]} == {"X"}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_every_datatype_comes_back_as_it_went(client, name, binary_in, binary_out):
    array = ARRAYS[name]
    result = client.infer(
        f"echo_{name}",
        [_input(array, binary=binary_in)],
        outputs=[triton.InferRequestedOutput("Y", binary_data=binary_out)],
        request_id="seven",
    )
    back = result.as_numpy("Y")
    if name == "bytes":
        back = np.array([[one if isinstance(one, bytes) else one.encode() for one in back.ravel()]], np.object_)
    np.testing.assert_array_equal(back, array)
    assert result.get_response()["id"] == "seven"


def test_without_named_outputs_all_come_back_in_binary(client):
    result = client.infer("two_out", [_input(_row(2))])
    np.testing.assert_array_equal(result.as_numpy("Y0"), _row(2))
    np.testing.assert_array_equal(result.as_numpy("Y1"), _row(-2))
    assert "binary_data_size" in result.get_output("Y0")["parameters"]


@pytest.mark.parametrize("sent", [None, "gzip", "deflate"])
@pytest.mark.parametrize("wanted", [None, "gzip", "deflate"])
def test_compression_in_both_directions(client, sent, wanted):
    array = np.arange(4096, dtype=np.float32).reshape(1, -1)
    result = client.infer(
        "echo_flex",
        [_input(array)],
        request_compression_algorithm=sent,
        response_compression_algorithm=wanted,
    )
    np.testing.assert_array_equal(result.as_numpy("Y"), array)


def test_classification_gives_the_highest_values_with_their_index(client):
    result = client.infer(
        "echo_fp32",
        [_input(np.array([[1, 9, 5, 7]], np.float32))],
        outputs=[triton.InferRequestedOutput("Y", class_count=2)],
    )
    assert result.as_numpy("Y").tolist() == [[b"9.000000:1", b"7.000000:3"]]


def test_not_a_number_goes_in_as_json_and_comes_out_as_null(client):
    array = np.array([[np.nan, np.inf, -np.inf, 1]], np.float32)
    outputs = [triton.InferRequestedOutput("Y", binary_data=False)]
    result = client.infer("echo_fp32", [_input(array, binary=False)], outputs=outputs)
    assert result.get_output("Y")["data"] == [None, None, None, 1]
    result = client.infer("echo_fp32", [_input(array, binary=False)])
    np.testing.assert_array_equal(result.as_numpy("Y"), array)


def test_a_chosen_version_answers(client):
    for version in ("1", "3"):
        response = client.infer("versions", [_input(_row(1))], model_version=version).get_response()
        assert response["model_version"] == version
    assert client.infer("versions", [_input(_row(1))]).get_response()["model_version"] == "3"


@pytest.mark.parametrize(
    ("model", "array", "status", "text"),
    [
        ("nope", _row(1), "404", "nope"),
        ("echo_fp32", np.zeros((1, 5), np.float32), "400", "echo_fp32"),
        ("echo_fp32", np.zeros((1, 4), np.int32), "400", "INT32"),
        ("sub_ab", _row(1), "400", "X"),
    ],
)
def test_errors_have_a_status_and_a_text_that_helps(client, model, array, status, text):
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, [_input(array)])
    assert caught.value.status() == status
    assert text in caught.value.message()


def test_32_callers_at_once_each_get_their_own_row(client):
    pending = [client.async_infer("echo_fp32", [_input(_row(value))]) for value in range(256)]
    for value, call in enumerate(pending):
        np.testing.assert_array_equal(call.get_result().as_numpy("Y"), _row(value))


def test_statistics_grow_by_what_was_asked(client):
    def counts() -> tuple[int, int, int]:
        [entry] = client.get_inference_statistics("two_out")["model_stats"]
        inner = entry["inference_stats"]
        return entry["inference_count"], inner["success"]["count"], inner["queue"]["count"]

    before = counts()
    for _ in range(3):
        client.infer("two_out", [_input(np.zeros((2, 4), np.float32))])
    assert counts() == (before[0] + 6, before[1] + 3, before[2] + 3)
    assert len(client.get_inference_statistics()["model_stats"]) > 10


def test_what_perf_analyzer_does_first_works(client):
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    assert client.get_system_shared_memory_status() == []
    assert client.get_cuda_shared_memory_status() == []
    with pytest.raises(InferenceServerException, match="501"):
        client.register_system_shared_memory("region", "/key", 64)


def test_models_are_loaded_and_unloaded_on_request(serve, models):
    server = serve(models, "--model-control-mode", "explicit", "--load-model", "echo_fp32")
    with triton.InferenceServerClient(_address(server)) as client:
        states = {one["name"]: one.get("state") for one in client.get_model_repository_index()}
        assert (states["echo_fp32"], states["two_out"]) == ("READY", None)
        client.load_model("two_out")
        assert client.is_model_ready("two_out")
        client.unload_model("two_out")
        client.unload_model("never-heard-of")
        assert not client.is_model_ready("two_out")
        assert client.is_server_ready(), "an unloaded model is no fault"
        with pytest.raises(InferenceServerException, match="404"):
            client.load_model("nope")
        states = {one["name"]: one.get("reason") for one in client.get_model_repository_index()}
        assert states["two_out"] == "unloaded"


def test_load_and_unload_are_refused_in_other_modes(client):
    for refused in (client.load_model, client.unload_model):
        with pytest.raises(InferenceServerException, match="503"):
            refused("echo_fp32")


def test_the_asyncio_client_reads_everything_the_blocking_one_does(server):
    async def session() -> None:
        async with triton_aio.InferenceServerClient(_address(server)) as client:
            assert await client.is_server_ready()
            assert await client.is_model_ready("echo_fp32")
            assert (await client.get_model_metadata("echo_fp32"))["name"] == "echo_fp32"
            assert any(one["name"] == "echo_fp32" for one in await client.get_model_repository_index())
            await client.unregister_system_shared_memory()
            answers = await asyncio.gather(
                *(client.infer("echo_fp32", [_input(_row(value), binary=value % 2 == 0)]) for value in range(64))
            )
            for value, answer in enumerate(answers):
                np.testing.assert_array_equal(answer.as_numpy("Y"), _row(value))
            wide = np.arange(4096, dtype=np.float32).reshape(1, -1)
            plain = [triton_aio.InferRequestedOutput("Y", binary_data=False)]
            for coding in (None, "gzip", "deflate"):
                answer = await client.infer(
                    "echo_flex", [_input(wide)], outputs=plain, response_compression_algorithm=coding
                )
                np.testing.assert_array_equal(answer.as_numpy("Y"), wide)
            with pytest.raises(InferenceServerException, match="nope"):
                await client.infer("nope", [_input(_row(1))])

    asyncio.run(session())


def test_clients_on_many_threads_do_not_mix_up_their_answers(server):
    def ask(worker: int) -> None:
        with triton.InferenceServerClient(_address(server)) as client:
            for turn in range(25):
                value = worker * 100 + turn
                a, b = _input(_row(value), "A"), _input(_row(turn), "B")
                np.testing.assert_array_equal(client.infer("sub_ab", [a, b]).as_numpy("Y"), _row(value - turn))

    with ThreadPoolExecutor(16) as threads:
        for done in [threads.submit(ask, worker) for worker in range(16)]:
            done.result()
