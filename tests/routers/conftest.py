"""An application over planes that are small and in memory, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from kernelport.asgi import create_app
from kernelport.core.errors import InvalidRequest, KernelPortError, LoadError, ModelNotFound, Unavailable
from kernelport.core.model import ModelSpec, ModelState, ModelStatus
from kernelport.core.request import Call, InferenceRequest, InferenceResponse
from kernelport.core.servable import Admitted, Form
from kernelport.core.tensor import FP32, Tensor, TensorSpec
from kernelport.http.endpoint import InferEndpoint
from kernelport.http.gate import Gate
from kernelport.http.limits import HttpLimits
from kernelport.protocol.v2_decode import DecodeLimits
from kernelport.protocol.v2_encode import EncodeLimits
from kernelport.telemetry.metrics import Metrics
from kernelport.telemetry.stats import ModelStats


def echo_spec(name: str = "echo", version: str = "1") -> ModelSpec:
    """A model that gives its input back."""
    return ModelSpec(
        name=name,
        version=version,
        platform="onnxruntime_onnx",
        backend="onnxruntime",
        max_batch_size=8,
        inputs=(TensorSpec("X", FP32, (-1, 4)),),
        outputs=(TensorSpec("Y", FP32, (-1, 4)),),
    )


class MemoryControl:
    """A control plane whose state tests set by hand."""

    def __init__(self) -> None:
        self.mode = "explicit"
        self.reason = ""
        self.live = True
        self.specs: dict[str, dict[str, ModelSpec]] = {"echo": {"1": echo_spec(), "3": echo_spec(version="3")}}
        self.failed: dict[str, str] = {}
        self.loads: list[tuple[str, dict[str, Any] | None, dict[str, bytes] | None]] = []

    def serve(self, name: str) -> None:
        """Have another ready model."""
        self.specs[name] = {"1": echo_spec(name)}

    def is_live(self) -> bool:
        return self.live

    def is_ready(self) -> bool:
        return not self.reason

    def why_not_ready(self) -> str:
        return self.reason

    def model_names(self) -> list[str]:
        return sorted(self.specs)

    def metadata(self, name: str, version: str | None) -> tuple[ModelSpec, list[str]]:
        versions = self.specs.get(name, {})
        if not versions or (version is not None and version not in versions):
            raise ModelNotFound(f"Request for unknown model: '{name}' is not found")
        if version is not None:
            return versions[version], [version]
        return versions[max(versions)], sorted(versions)

    def sample_shapes(self, name: str) -> dict[str, tuple[int, ...]]:
        return {"X": (2, 4)}

    def is_model_ready(self, name: str, version: str | None) -> bool:
        return name in self.specs and (version is None or version in self.specs[name])

    def config(self, name: str, version: str | None) -> dict[str, Any]:
        spec, _ = self.metadata(name, version)
        return {"name": spec.name, "max_batch_size": spec.max_batch_size, "input": [], "output": []}

    def index(self, ready_only: bool = False) -> list[ModelStatus]:
        ready = [ModelStatus(name, version, ModelState.READY) for name, all in self.specs.items() for version in all]
        if ready_only:
            return ready
        failed = [ModelStatus(name, "1", ModelState.UNAVAILABLE, why) for name, why in self.failed.items()]
        return [*ready, *failed, ModelStatus("sleeping", "", ModelState.UNKNOWN)]

    async def load(
        self, name: str, config: dict[str, Any] | None = None, files: dict[str, bytes] | None = None
    ) -> None:
        self._require_explicit()
        self.loads.append((name, config, files))
        if name == "broken":
            raise LoadError("load failed for model 'broken': version 1: not an ONNX file")
        if name == "missing":
            raise ModelNotFound("model 'missing' is in no repository")
        self.serve(name)

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        self._require_explicit()
        self.specs.pop(name, None)

    def _require_explicit(self) -> None:
        if self.mode != "explicit":
            raise Unavailable("start the server with --model-control-mode explicit")

    def statistics(self, name: str | None = None, version: str | None = None) -> list[tuple[ModelSpec, ModelStats]]:
        if name is not None and name not in self.specs:
            raise InvalidRequest(f"requested model '{name}' is not available")
        return [
            (spec, ModelStats())
            for versions in self.specs.values()
            for spec in versions.values()
            if name in (None, spec.name) and version in (None, spec.version)
        ]


@dataclass
class Echo:
    """A served model that answers at once, or never when `is_stuck`."""

    spec: ModelSpec
    json_nonfinite: str = "null"
    splits_oversized: bool = False
    forms: dict[Form, Admitted] = field(default_factory=dict)

    def submit(self, request: InferenceRequest, rows: int, received_ns: int, key: Hashable = None) -> Call:
        call = Call(request, received_ns)
        outputs = [Tensor("Y", FP32, request.inputs["X"].array)]
        call.finish(InferenceResponse(self.spec.name, self.spec.version, outputs), None)
        return call

    def remember(self, form: Form, request: InferenceRequest, rows: int) -> None:
        raise AssertionError("the plane admits")

    def reject(self, error_outcome: str, elapsed_ns: int) -> None:
        raise AssertionError("the plane counts")

    def encoded(self, elapsed_ns: int) -> None:
        assert elapsed_ns >= 0


@dataclass
class MemoryData:
    """A data plane over the same models; `stuck` collects calls that it leaves unanswered on purpose."""

    control: MemoryControl
    holds: bool = False
    held: list[Call] = field(default_factory=list)
    failure: Exception | None = None
    rejected: list[KernelPortError] = field(default_factory=list)

    def find(self, model: str, version: str | None, /) -> Echo:
        if self.failure is not None:
            raise self.failure
        return Echo(self.control.metadata(model, version)[0])

    def infer(self, servable: Any, request: InferenceRequest, received_ns: int) -> Call:
        if self.holds:
            call = Call(request, received_ns)
            self.held.append(call)
            return call
        answer: Call = servable.submit(request, 1, received_ns)
        return answer

    def reject(self, servable: Any, error: KernelPortError, received_ns: int) -> None:
        self.rejected.append(error)


@pytest.fixture
def control() -> MemoryControl:
    """The control plane behind `client`."""
    return MemoryControl()


@pytest.fixture
def data(control: MemoryControl) -> MemoryData:
    """The data plane behind `client`."""
    return MemoryData(control)


@pytest.fixture
def gate() -> Gate:
    """The gate of `client`."""
    return Gate(HttpLimits())


@pytest.fixture
def app(control: MemoryControl, data: MemoryData, gate: Gate) -> Any:
    """The whole application, middleware included."""
    endpoint = InferEndpoint(data, gate, DecodeLimits(), EncodeLimits())
    return create_app(endpoint, control, Metrics(list, gate=gate), gate)  # type: ignore[arg-type]


Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(app: Any) -> Ask:
    """Sends one request to the application without a socket: `ask("GET", "/v2")`."""

    async def send(method: str, path: str, **more: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as client:
            return await client.request(method, path, **more)

    def send_now(method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(send(method, path, **more))

    return send_now
