"""Small real objects for batcher tests: specs, requests, targets, a lane without a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from fakes.clock import FakeClock
from kernelport.batcher.dispatcher import Dispatcher
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry, ModelQueue
from kernelport.batcher.target import Batch, Target
from kernelport.core.model import ModelSpec
from kernelport.core.request import Call, InferenceRequest, RequestedOutput
from kernelport.core.tensor import FP32, Array, Tensor, TensorSpec
from kernelport.telemetry.stats import ModelStats
from kernelport.workers import execution

MS = 1_000_000


class Doubler:
    """Y = 2 X, Z = -X; fails on a row that holds `poison`; remembers the batch sizes it saw."""

    def __init__(self, poison: float | None = None) -> None:
        self.poison = poison
        self.batches: list[int] = []
        self.asked: list[tuple[str, ...] | None] = []

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        x = inputs["X"]
        self.batches.append(len(x))
        self.asked.append(outputs)
        if self.poison is not None and np.any(x == self.poison):
            raise ValueError("poisoned")
        return {name: value for name, value in (("Y", x * 2), ("Z", -x)) if outputs is None or name in outputs}


def spec(max_batch_size: int = 8, width: int = -1, inputs: Sequence[TensorSpec] = ()) -> ModelSpec:
    batch = (-1,) if max_batch_size else ()
    return ModelSpec(
        name="m", version="1", platform="test", backend="test", max_batch_size=max_batch_size,
        inputs=tuple(inputs) or (TensorSpec("X", FP32, (*batch, width), symbols=(*("",) * len(batch), "L")),),
        outputs=(
            TensorSpec("Y", FP32, (*batch, width), symbols=(*("",) * len(batch), "L")),
            TensorSpec("Z", FP32, (*batch, width), symbols=(*("",) * len(batch), "L")),
        ),
    )  # fmt: skip


def request(
    value: float, rows: int = 1, width: int = 2, outputs: Sequence[str] | None = None, **more: Any
) -> InferenceRequest:
    array = np.full((rows, width), value, np.float32)
    wanted = None if outputs is None else tuple(RequestedOutput(name) for name in outputs)
    return InferenceRequest({"X": Tensor("X", FP32, array)}, wanted, **more)


class Bench:
    """One dispatcher, one target, and a lane driven by hand."""

    def __init__(
        self,
        policy: BatchPolicy | None = None,
        queue_policy: QueuePolicy | None = None,
        copy: Any = None,
        permits: int = 1,
        model: ModelSpec | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.dispatcher = Dispatcher(self.clock)
        self.copy = copy or Doubler()
        self.policy = policy or BatchPolicy(max_rows=8, merges=True)
        self.target = self.new_target(model or spec(), queue_policy or QueuePolicy(), permits, ModelQueue("m"))
        self.done: list[Entry] = []
        self.woken = 0

    def new_target(self, model: ModelSpec, queue_policy: QueuePolicy, permits: int, queue: ModelQueue) -> Target:
        return Target(model, self.policy, queue_policy, queue, ModelStats(), {"cpu": [self.copy] * permits})

    def wake(self) -> None:
        self.woken += 1

    def submit(
        self, wanted: InferenceRequest, rows: int = 1, target: Target | None = None, pinned: bool = False
    ) -> Entry:
        target = target or self.target
        entry = Entry(wanted, rows, self.clock.now_ns(), target, pinned)
        target.stats.received += 1
        entry.add_done_callback(lambda call: self.done.append(entry))
        self.dispatcher.submit(entry)
        self.clock.run_soon()
        return entry

    def take(self, finished: Batch | None = None) -> Batch | None:
        batch = self.dispatcher.take(self, "cpu", finished)
        self.clock.run_soon()
        return batch

    def run(self, batch: Batch) -> None:
        execution.run(batch, self.clock.now_ns)
        self.dispatcher.finish(batch)

    def work(self, before: Callable[[Batch], None] | None = None) -> list[Batch]:
        """Take and run until nothing is ready."""
        batches: list[Batch] = []
        finished: Batch | None = None
        while (batch := self.take(finished)) is not None:
            if before is not None:
                before(batch)
            self.run(batch)
            batches.append(batch)
            finished = batch
        return batches


def values(entry: Call, output: str = "Y") -> Array:
    assert entry.response is not None, entry.error
    return next(tensor.array for tensor in entry.response.outputs if tensor.name == output)
