"""A session with the kserve SDK's REST client; prints what it saw as JSON.

usage: PYTHON kserve_session.py URL     (PYTHON has the package kserve; nothing of KernelPort is imported)
"""

import asyncio
import json
import sys
from typing import Any

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput


def _request(array: Any, datatype: str = "FP32", binary: bool = False, **more: Any) -> InferRequest:
    tensor = InferInput("X", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(model_name="", infer_inputs=[tensor], **more)


async def session(url: str) -> dict[str, Any]:
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    old_client = InferenceRESTClient(RESTConfig(protocol="v1"))
    row = np.array([[1, 2.5, -3, 4]], np.float32)
    seen: dict[str, Any] = {
        "live": await client.is_server_live(url),
        "live_v1": await old_client.is_server_live(url),
        "ready": await client.is_server_ready(url),
        "model_ready": await client.is_model_ready(url, "echo_fp32"),
        "unknown_ready": await client.is_model_ready(url, "nope"),
    }

    async def infer(name: str, model: str, request: InferRequest) -> None:
        answer = await client.infer(url, request, model_name=model)
        seen[name] = [answer.model_name, answer.outputs[0].as_numpy().tolist()]

    await infer("json", "echo_fp32", _request(row))
    await infer("binary_in", "echo_fp32", _request(row, binary=True))
    await infer("binary_both", "echo_fp32", _request(row, binary=True, parameters={"binary_data_output": True}))
    wanted = [RequestedOutput("Y", {"binary_data": True})]
    await infer("binary_out", "echo_fp32", _request(row, request_outputs=wanted))
    await infer("empty", "echo_flex", _request(row[:, :0], binary=True))
    await infer("texts", "echo_bytes", _request(np.array([["a", "größe", "", "d"]], np.object_), "BYTES"))
    many = [client.infer(url, _request(np.full((1, 4), i, np.float32)), model_name="echo_fp32") for i in range(32)]
    seen["many"] = [answer.outputs[0].as_numpy()[0, 0].item() for answer in await asyncio.gather(*many)]
    with_nan = np.array([[np.nan, 1, 2, 3]], np.float32)
    answer = await client.infer(url, _request(with_nan), model_name="echo_fp32")
    seen["nan"] = answer.outputs[0].data
    try:
        await client.infer(url, _request(row), model_name="nope")
    except httpx.HTTPStatusError as error:
        seen["error"] = [error.response.status_code, str(error)]
    return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(session(sys.argv[1]))))
