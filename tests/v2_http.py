"""A small v2 client for tests that speak to a real server: one request, or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import httpx
import numpy as np

NUMPY = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32}


def tensor(name: str, array: Any, datatype: str = "FP32") -> dict[str, Any]:
    """A JSON input."""
    values = np.asarray(array)
    return {"name": name, "shape": list(values.shape), "datatype": datatype, "data": values.ravel().tolist()}


def body(*inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"inputs": list(inputs), **more}


def outputs(response: httpx.Response) -> dict[str, Any]:
    """Outputs by name as arrays; fails with the body's text unless the status is 200."""
    assert response.status_code == 200, (response.status_code, response.text)
    return {
        one["name"]: np.array(one["data"], NUMPY.get(one["datatype"], object)).reshape(one["shape"])
        for one in response.json()["outputs"]
    }


def infer(url: str, model: str, *inputs: dict[str, Any], **more: Any) -> httpx.Response:
    """One inference."""
    return httpx.post(f"{url}/v2/models/{model}/infer", json=body(*inputs, **more), timeout=60)


def infer_many(
    url: str, model: str, bodies: Iterable[dict[str, Any]], gap_s: float = 0.0, concurrency: int = 1000
) -> list[httpx.Response]:
    """All at once (or `gap_s` seconds apart), each on a connection of its own; responses in the order of `bodies`."""

    async def main() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        async with httpx.AsyncClient(timeout=120, limits=limits) as client:
            jobs = []
            for one in bodies:
                jobs.append(asyncio.ensure_future(client.post(f"{url}/v2/models/{model}/infer", json=one)))
                if gap_s:
                    await asyncio.sleep(gap_s)
            return list(await asyncio.gather(*jobs))

    return asyncio.run(main())


def stats(url: str, model: str) -> dict[str, Any]:
    """The statistics of a model's one version."""
    (only,) = httpx.get(f"{url}/v2/models/{model}/stats").raise_for_status().json()["model_stats"]
    return dict(only)


def metric(url: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that carry these labels."""
    total = 0.0
    for line in httpx.get(f"{url}/metrics").raise_for_status().text.splitlines():
        if line.startswith((name + "{", name + " ")) and all(
            f'{key}="{value}"' in line for key, value in labels.items()
        ):
            total += float(line.rsplit(" ", 1)[1])
    return total


def statuses(responses: Sequence[httpx.Response]) -> list[int]:
    """Their status codes."""
    return [response.status_code for response in responses]
