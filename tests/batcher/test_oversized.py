"""Requests larger than a batch: cut, run in parts, joined again, and counted as the one request they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from fakes.batching import MS, Bench, Doubler, request, spec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernelport.batcher.oversized import Oversized, cut, join
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry
from kernelport.core.errors import BackendError, Cancelled, QueueFull, QueueTimeout
from kernelport.core.request import Call, InferenceRequest, InferenceResponse
from kernelport.core.tensor import FP32, INT64, Array, Tensor, TensorSpec

POLICY = BatchPolicy(max_rows=4, merges=True, split_oversized=True)
STATE = replace(
    spec(4),
    inputs=(
        TensorSpec("X", FP32, (-1, -1)),
        TensorSpec("state", FP32, (2, -1, 3), batch_axis=1),
        TensorSpec("sr", INT64, (), batch_axis=None),
    ),
    outputs=(
        TensorSpec("Y", FP32, (-1, -1)),
        TensorSpec("stateN", FP32, (2, -1, 3), batch_axis=1),
        TensorSpec("rate", INT64, (), batch_axis=None),
    ),
)
ECHOED = {"X": "Y", "state": "stateN", "sr": "rate"}


def bench_of(policy: BatchPolicy = POLICY, copy: object = None, queue: QueuePolicy | None = None) -> Bench:
    return Bench(policy, queue, copy, model=spec(policy.max_rows))


def submit(bench: Bench, array: Array, is_pinned: bool = False) -> Oversized:
    bench.target.stats.received += 1
    wanted = InferenceRequest({"X": Tensor("X", FP32, array)})
    whole = Oversized(wanted, len(array), bench.clock.now_ns(), bench.target)
    whole.submit(bench.dispatcher, is_pinned)
    bench.clock.run_soon()
    return whole


def rows(count: int, width: int = 2) -> Array:
    return np.arange(count * width, dtype=np.float32).reshape(count, width)


def outcomes(bench: Bench) -> dict[str, int]:
    return {outcome: count for outcome, count in bench.target.stats.outcomes.items() if count}


@given(st.integers(1, 6), st.integers(1, 20), st.data())
def test_what_was_cut_up_joins_to_what_it_was(limit: int, count: int, data: st.DataObject) -> None:
    x = data.draw(hnp.arrays(np.float32, (count, 2), elements=st.floats(-9, 9, width=32)))
    state = np.arange(2 * count * 3, dtype=np.float32).reshape(2, count, 3)
    whole = InferenceRequest(
        {
            "X": Tensor("X", FP32, x),
            "state": Tensor("state", FP32, state),
            "sr": Tensor("sr", INT64, np.array(16000)),
        },
        id="seven",
    )
    target = Bench(replace(POLICY, max_rows=limit), model=STATE).target
    pieces = cut(whole, count, target)
    assert [size for _, size in pieces] == [limit] * (count // limit) + [count % limit] * bool(count % limit)
    parts = []
    for piece, size in pieces:
        assert piece.id == "seven"
        assert piece.inputs["X"].shape == (size, 2)
        assert piece.inputs["state"].shape == (2, size, 3)
        assert piece.inputs["sr"].shape == ()
        part = Entry(piece, size, 0, target)
        outputs = [Tensor(new, piece.inputs[old].datatype, piece.inputs[old].array) for old, new in ECHOED.items()]
        part.finish(InferenceResponse("m", "1", outputs), None)
        parts.append(part)
    joined = {tensor.name: tensor.array for tensor in join(parts, target).outputs}
    assert np.array_equal(joined["Y"], x)
    assert np.array_equal(joined["stateN"], state)
    assert joined["rate"] == 16000


def test_a_large_request_is_answered_whole_and_counted_once() -> None:
    bench = bench_of()
    whole = submit(bench, rows(10))
    heard: list[Call] = []
    whole.add_done_callback(heard.append)
    bench.work()
    assert heard == [whole]
    assert whole.response is not None
    assert np.array_equal(whole.response.outputs[0].array, rows(10) * 2)
    assert np.array_equal(whole.response.outputs[1].array, -rows(10))
    stats = bench.target.stats
    assert outcomes(bench) == {"success": 1}
    assert (stats.received, stats.rows, stats.executed_rows) == (1, 10, 10)
    assert (stats.pending, stats.in_flight) == (0, 0)
    assert bench.target.is_drained
    assert max(bench.copy.batches) == 4


def test_parts_share_batches_with_other_requests() -> None:
    bench = bench_of()
    whole = submit(bench, rows(5))
    bench.submit(request(1.0, rows=3), 3)
    bench.work()
    assert bench.copy.batches == [4, 4]
    assert whole.response is not None


def test_a_part_that_finds_the_queue_full_fails_the_whole_and_takes_the_others_back() -> None:
    bench = bench_of(queue=QueuePolicy(max_queue_size=1))
    whole = submit(bench, rows(20))
    assert isinstance(whole.error, QueueFull)
    assert bench.target.queue.waiting == 0
    assert outcomes(bench) == {"queue_full": 1}
    assert bench.work() == []
    assert bench.target.is_drained


def test_a_part_that_fails_fails_the_whole_and_takes_the_waiting_ones_back() -> None:
    bench = bench_of(copy=Doubler(poison=0.0))
    whole = submit(bench, rows(12))
    batch = bench.take()
    assert batch is not None
    bench.run(batch)
    assert isinstance(whole.error, BackendError)
    assert bench.target.queue.waiting == 0
    assert bench.take(batch) is None
    assert outcomes(bench) == {"backend": 1}
    assert bench.target.is_drained


def test_parts_that_still_run_after_a_failure_change_nothing_any_more() -> None:
    bench = Bench(POLICY, copy=Doubler(poison=0.0), permits=2, model=spec(4))
    whole = submit(bench, rows(8))
    first, second = bench.take(), bench.take()
    assert first is not None
    assert second is not None
    bench.run(first)
    bench.run(second)
    assert isinstance(whole.error, BackendError)
    assert outcomes(bench) == {"backend": 1}
    bench.take(first)
    bench.take(second)
    assert bench.target.is_drained


def test_a_part_that_waits_too_long_fails_the_whole() -> None:
    bench = bench_of(queue=QueuePolicy(default_timeout_ns=10 * MS))
    bench.submit(request(1.0))
    running = bench.take()
    whole = submit(bench, rows(8))
    bench.clock.advance(10 * MS)
    assert isinstance(whole.error, QueueTimeout)
    assert running is not None
    bench.run(running)
    assert outcomes(bench) == {"queue_timeout": 1, "success": 1}


def test_a_hang_up_takes_all_parts_back_and_is_counted_once() -> None:
    bench = bench_of()
    whole = submit(bench, rows(12))
    running = bench.take()
    bench.clock.advance(7)
    whole.cancel()
    assert isinstance(whole.error, Cancelled)
    assert bench.target.queue.waiting == 0
    assert running is not None
    bench.run(running)
    assert bench.take(running) is None
    assert outcomes(bench) == {"cancelled": 1}
    assert bench.target.stats.fail_ns == 7
    assert bench.target.is_drained


def test_a_hang_up_after_the_answer_changes_nothing() -> None:
    bench = bench_of()
    whole = submit(bench, rows(6))
    bench.work()
    whole.cancel()
    assert whole.error is None
    assert outcomes(bench) == {"success": 1}


class Growing(Doubler):
    """The second dimension of Y depends on the values."""

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        found = super().execute(inputs, outputs)
        size = int(inputs["X"].max())
        return {**found, "Y": np.zeros((len(inputs["X"]), size), np.float32)}


def test_parts_that_come_out_in_different_shapes_are_an_error_that_says_so() -> None:
    bench = bench_of(copy=Growing())
    whole = submit(bench, rows(6))
    neighbour = bench.submit(request(1.0))
    bench.work()
    assert isinstance(whole.error, BackendError)
    assert "output 'Y' came out as [4, 7], [2, 11] for the parts of a split request" in str(whole.error)
    assert neighbour.response is not None
    assert outcomes(bench) == {"backend": 1, "success": 1}


def test_a_reply_that_cannot_be_written_costs_the_neighbours_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = bench_of()
    whole = submit(bench, rows(5))

    def explode(call: Call) -> None:
        raise RuntimeError("no")

    whole.add_done_callback(explode)
    neighbour = bench.submit(request(1.0))
    bench.work()
    assert neighbour.response is not None
    assert outcomes(bench) == {"internal": 1, "success": 1}
    assert "writing a reply failed" in caplog.text


def test_parts_are_padded_to_their_shape_bucket_and_cropped_again() -> None:
    seen: list[tuple[int, ...]] = []

    class Looker(Doubler):
        def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
            seen.append(inputs["X"].shape)
            return super().execute(inputs, outputs)

    bench = bench_of(replace(POLICY, shape_buckets=(("X", 1, (4, 8)),)), Looker())
    whole = submit(bench, rows(6, width=3))
    bench.work()
    assert seen == [(4, 4), (2, 4)]
    assert whole.response is not None
    assert np.array_equal(whole.response.outputs[0].array, rows(6, width=3) * 2)


def test_the_parts_of_a_request_for_one_version_stay_with_that_version() -> None:
    bench = bench_of()
    whole = submit(bench, rows(8), is_pinned=True)
    assert {key[1] for key in bench.target.buckets} == {"1"}  # type: ignore[index]
    bench.work()
    assert whole.response is not None
