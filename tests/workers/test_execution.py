"""One batch through merge, execute and split, and what is left of it when the model fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from fakes.batching import Bench, Doubler, request
from kernelport.batcher.policy import BatchPolicy
from kernelport.batcher.target import Batch
from kernelport.core.errors import BackendError, BackendInputError, KernelPortError
from kernelport.core.tensor import Array
from kernelport.workers import execution

MERGING = BatchPolicy(max_rows=8, merges=True)


class Failing(Doubler):
    """Raises `error` for more than `bears` rows, or for a row that holds 13."""

    def __init__(self, error: Exception, bears: int = 8) -> None:
        super().__init__(poison=None)
        self.error = error
        self.bears = bears

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        found = super().execute(inputs, outputs)
        if len(inputs["X"]) > self.bears or np.any(inputs["X"] == 13):
            raise self.error
        return found


def taken(bench: Bench, *values: float) -> Batch:
    for value in values:
        bench.submit(request(value))
    batch = bench.take()
    assert batch is not None
    return batch


def run(batch: Batch) -> None:
    ticks = count(100, 10)
    execution.run(batch, lambda: next(ticks))


def answers(batch: Batch) -> list[list[float] | type[KernelPortError] | type[None]]:
    return [
        result.response.outputs[0].array[0].tolist() if result.response is not None else type(result.error)
        for result in batch.results
    ]


def test_every_entry_gets_its_own_rows_under_the_models_name() -> None:
    batch = taken(Bench(MERGING), 1.0, 2.0, 3.0)
    run(batch)
    assert [result.entry for result in batch.results] == batch.entries
    assert answers(batch) == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert {(result.response.model, result.response.version) for result in batch.results} == {("m", "1")}  # type: ignore[union-attr]
    assert not batch.was_rerun


def test_the_steps_are_stamped_in_their_order() -> None:
    batch = taken(Bench(MERGING), 1.0)
    run(batch)
    timing = batch.timing
    assert (timing.compute_start_ns, timing.compute_end_ns, timing.done_ns) == (100, 110, 120)
    assert batch.executions == [timing]


def test_padding_is_counted_apart_from_rows() -> None:
    batch = taken(Bench(replace(MERGING, allowed_rows=(4, 8))), 1.0, 2.0, 3.0)
    run(batch)
    assert batch.copy.batches == [4]  # type: ignore[attr-defined]
    assert (batch.timing.rows, batch.timing.padded_rows) == (3, 1)
    assert answers(batch)[2] == [6.0, 6.0]


def test_a_request_that_fails_alone_is_not_run_again() -> None:
    bench = Bench(MERGING, copy=Failing(BackendInputError("index 13 is out of range")))
    batch = taken(bench, 13.0)
    run(batch)
    assert answers(batch) == [BackendInputError]
    assert bench.copy.batches == [1]
    assert not batch.was_rerun
    assert batch.executions == []


def test_of_a_batch_that_fails_every_member_is_run_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(MERGING, copy=Failing(BackendInputError("index 13 is out of range")))
    batch = taken(bench, 1.0, 13.0, 3.0)
    run(batch)
    assert answers(batch) == [[2.0, 2.0], BackendInputError, [6.0, 6.0]]
    assert bench.copy.batches == [3, 1, 1, 1]
    assert batch.was_rerun
    assert [(timing.rows, timing.requests, timing.reason) for timing in batch.executions] == [(1, 1, "idle")] * 2
    assert "a batch of 3 requests failed and is run one by one: index 13 is out of range" in caplog.text


def test_what_the_failed_attempt_took_is_waiting_to_those_who_are_run_again() -> None:
    batch = taken(Bench(MERGING, copy=Failing(BackendError("no"), bears=1)), 1.0, 2.0)
    run(batch)
    first, second = (result.timing for result in batch.results)
    assert first.taken_ns > batch.timing.compute_start_ns
    assert second.taken_ns >= first.done_ns


def test_who_has_hung_up_is_not_run_again() -> None:
    bench = Bench(MERGING, copy=Failing(BackendError("no"), bears=1))
    batch = taken(bench, 1.0, 2.0, 3.0)
    batch.entries[1].cancel()
    run(batch)
    assert bench.copy.batches == [3, 1, 1]
    assert answers(batch) == [[2.0, 2.0], BackendError, [6.0, 6.0]]


def test_a_foreign_exception_is_logged_whole_and_told_by_its_kind_only(caplog: pytest.LogCaptureFixture) -> None:
    batch = taken(Bench(MERGING, copy=Failing(RuntimeError("a secret path"), bears=0)), 1.0, 2.0)
    run(batch)
    assert {str(result.error) for result in batch.results} == {"model 'm' version 1: RuntimeError in its backend"}
    assert answers(batch) == [BackendError] * 2
    assert "a secret path" in caplog.text


def test_a_model_that_gives_other_rows_than_it_got_answers_nobody_with_foreign_rows() -> None:
    class Collapsing(Doubler):
        def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
            return {name: array[:1] for name, array in super().execute(inputs, outputs).items()}

    batch = taken(Bench(MERGING, copy=Collapsing()), 1.0, 2.0)
    run(batch)
    assert answers(batch) == [[2.0, 2.0], [4.0, 4.0]]
    assert batch.was_rerun


def test_only_what_somebody_asked_for_is_computed() -> None:
    bench = Bench(MERGING)
    bench.submit(request(1.0, outputs=["Z"]))
    batch = bench.take()
    assert batch is not None
    run(batch)
    assert bench.copy.asked == [("Z",)]
    assert answers(batch) == [[-1.0, -1.0]]
