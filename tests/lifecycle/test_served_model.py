"""One version between its first request and its last: queueing, retiring, handing over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.batching import MS, Bench, request, spec, values
from fakes.models import GatedCopy, loaded
from kernelport.batcher.oversized import Oversized
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import Entry
from kernelport.core.errors import QueueFull
from kernelport.core.model import ModelSpec
from kernelport.core.request import InferenceRequest
from kernelport.core.tensor import FP32, INT64, Array, Tensor, TensorSpec
from kernelport.lifecycle.served_model import ServedModel, takes_same_inputs
from kernelport.telemetry.stats import ModelStats

MERGING = BatchPolicy(max_rows=8, merges=True)
WITH_RATE = replace(
    spec(8),
    inputs=(TensorSpec("X", FP32, (-1, -1)), TensorSpec("rate", INT64, (), batch_axis=None)),
    outputs=(TensorSpec("Y", FP32, (-1, -1)),),
)


class Scaler(GatedCopy):
    """Y = X * rate, where all rows of a run share one rate."""

    def execute(self, inputs: Mapping[str, Array], outputs: tuple[str, ...] | None) -> dict[str, Array]:
        self.batches.append(len(inputs["X"]))
        return {"Y": inputs["X"] * np.float32(inputs["rate"])}


def rated(value: float, rate: int) -> InferenceRequest:
    wanted = request(value)
    wanted.inputs["rate"] = Tensor("rate", INT64, np.array(rate))
    return wanted


class Shop:
    """Versions of one model on a dispatcher whose lane the test drives."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.queue = self.bench.target.queue

    def serve(
        self, copy: Any = None, *, version: str = "1", model: ModelSpec | None = None, **more: Any
    ) -> ServedModel:
        model = replace(model or spec(0), version=version)
        return ServedModel(loaded(copy, model=model, **more), self.bench.dispatcher, self.queue, ModelStats())

    def submit(self, model: Any, wanted: InferenceRequest, rows: int = 1) -> Any:
        call = model.submit(wanted, rows, self.bench.clock.now_ns())
        self.bench.clock.run_soon()
        return call


@pytest.fixture
def shop() -> Shop:
    return Shop()


def in_loop(scenario: Callable[[], Any]) -> None:
    """`retire` makes a future, so it needs a running loop; nothing here waits for real."""

    async def main() -> None:
        scenario()

    asyncio.run(main())


def test_a_request_is_counted_when_it_comes_and_when_it_is_answered(shop: Shop) -> None:
    model = shop.serve()
    entry = shop.submit(model, request(3.0))
    assert (model.stats.received, model.stats.pending) == (1, 1)
    shop.bench.work()
    assert values(entry).tolist() == [[6.0, 6.0]]
    assert model.stats.outcomes["success"] == 1
    assert entry.response.version == "1"


def test_a_full_queue_comes_back_as_a_finished_call(shop: Shop) -> None:
    model = shop.serve(queue_policy=QueuePolicy(max_queue_size=1))
    calls = [shop.submit(model, request(1.0)) for _ in range(3)]
    assert [isinstance(call.error, QueueFull) for call in calls] == [False, False, True]
    assert model.stats.received == 3


def test_what_was_refused_before_the_queue_is_counted_too(shop: Shop) -> None:
    model = shop.serve()
    model.reject("invalid", 40)
    model.pinned.reject("invalid", 2)
    model.encoded(90)
    model.pinned.encoded(10)
    assert model.stats.received == 2
    assert model.stats.outcomes["invalid"] == 2
    assert model.stats.fail_ns == 42
    assert (model.stats.encode_time.count, model.stats.encode_time.total) == (2, 100)


def test_inputs_are_padded_to_their_bucket_before_they_wait(shop: Shop) -> None:
    policy = replace(MERGING, shape_buckets=(("X", 1, (4,)),))
    model = shop.serve(model=spec(8), policy=policy)
    short, long = shop.submit(model, request(1.0, width=2)), shop.submit(model, request(2.0, width=3))
    assert len(shop.bench.work()) == 1
    assert values(short).shape == (1, 2)
    assert values(long).shape == (1, 3)


def test_only_a_model_that_splits_cuts_up_what_is_too_large(shop: Shop) -> None:
    model = shop.serve(model=spec(4), policy=replace(MERGING, max_rows=4, split_oversized=True))
    assert model.splits_oversized
    assert model.pinned.splits_oversized
    large, small = shop.submit(model, request(1.0, rows=9), 9), shop.submit(model, request(1.0, rows=4), 4)
    assert isinstance(large, Oversized)
    assert isinstance(small, Entry)
    assert model.stats.received == 2
    shop.bench.work()
    assert values(large).shape == (9, 2)
    assert not shop.serve().splits_oversized


def test_requests_for_a_named_version_carry_a_pin(shop: Shop) -> None:
    model = shop.serve()
    assert not shop.submit(model, request(1.0)).is_pinned
    assert shop.submit(model.pinned, request(1.0)).is_pinned
    assert (model.pinned.spec, model.pinned.json_nonfinite) == (model.spec, model.json_nonfinite)


def test_an_idle_model_has_retired_at_once(shop: Shop) -> None:
    model = shop.serve()
    retirements: list[asyncio.Future[None]] = []
    in_loop(lambda: retirements.append(model.retire()))
    assert retirements[0].done()


def test_a_model_has_retired_when_its_last_answer_is_out_and_its_permit_back(shop: Shop) -> None:
    copy = GatedCopy()
    model = shop.serve(copy)

    def scenario() -> None:
        running = shop.submit(model, request(1.0))
        batch = shop.bench.take()
        waiting = shop.submit(model, request(2.0))
        drained = model.retire()
        assert batch is not None
        shop.bench.run(batch)
        assert running.response is not None
        following = shop.bench.take(batch)
        assert following is not None
        shop.bench.run(following)
        assert waiting.response is not None
        assert not drained.done()
        shop.bench.take(following)
        assert drained.done()
        model.close()
        assert copy.is_closed
        assert not model.target.idle_copies

    in_loop(scenario)


def test_nobody_waiting_for_the_end_of_a_retirement_does_not_keep_it_from_ending(shop: Shop) -> None:
    model = shop.serve()

    def scenario() -> None:
        entry = shop.submit(model, request(1.0))
        model.retire().cancel()
        shop.bench.work()
        assert entry.response is not None
        assert model.target.is_drained

    in_loop(scenario)


def test_waiting_requests_move_to_the_successor_and_pinned_ones_do_not(shop: Shop) -> None:
    old, new = shop.serve(), shop.serve(version="2")

    def scenario() -> None:
        free, pinned = shop.submit(old, request(1.0)), shop.submit(old.pinned, request(2.0))
        drained = old.retire(new)
        shop.bench.work()
        assert (free.response.version, pinned.response.version) == ("2", "1")
        assert drained.done()
        assert (old.stats.received, new.stats.received) == (1, 1)
        assert (old.stats.outcomes["success"], new.stats.outcomes["success"]) == (1, 1)

    in_loop(scenario)


def test_requests_stay_where_they_are_when_the_successor_takes_other_inputs(shop: Shop) -> None:
    old, new = shop.serve(), shop.serve(version="2", model=spec(0, width=3))

    def scenario() -> None:
        entry = shop.submit(old, request(1.0))
        drained = old.retire(new)
        shop.bench.work()
        assert entry.response.version == "1"
        assert drained.done()

    in_loop(scenario)


def test_a_successor_that_merges_never_mixes_what_its_predecessor_ran_one_by_one(shop: Shop) -> None:
    old = shop.serve(Scaler(), model=WITH_RATE, policy=BatchPolicy(max_rows=8))
    copy = Scaler()
    new = shop.serve(copy, model=WITH_RATE, version="2", policy=MERGING)

    def scenario() -> None:
        entries = [shop.submit(old, rated(1.0, rate)) for rate in (8, 16, 8)]
        old.retire(new)
        shop.bench.work()
        assert [float(values(entry)[0, 0]) for entry in entries] == [8.0, 16.0, 8.0]
        assert sorted(copy.batches) == [1, 2]

    in_loop(scenario)


def test_moved_requests_keep_their_order_and_their_place_in_the_queue_limit(shop: Shop) -> None:
    ordered = replace(MERGING, preserve_ordering=True)
    old = shop.serve(model=spec(8), policy=ordered)
    new = shop.serve(model=spec(8), version="2", policy=ordered)

    def scenario() -> None:
        done: list[Entry] = []
        entries = []
        for width in (2, 3, 2, 4):
            entries.append(shop.submit(old, request(1.0, width=width)))
            entries[-1].add_done_callback(lambda call, entry=entries[-1]: done.append(entry))
            shop.bench.clock.advance(10)
        old.retire(new)
        assert (old.target.open_calls, new.target.open_calls) == (0, 4)
        assert (old.stats.pending, new.stats.pending, shop.queue.waiting) == (0, 4, 4)
        assert list(new.target.order) == entries
        shop.bench.work()
        assert done == entries

    in_loop(scenario)


def test_an_expired_request_is_no_longer_late_at_the_successor(shop: Shop) -> None:
    patient = QueuePolicy(default_timeout_ns=5 * MS, rejects=False)
    old, new = shop.serve(queue_policy=patient), shop.serve(version="2", queue_policy=patient)

    def scenario() -> None:
        shop.submit(old, request(0.0))
        shop.bench.take()
        late = shop.submit(old, request(1.0))
        shop.bench.clock.advance(6 * MS)
        assert late.is_late
        old.retire(new)
        assert not late.is_late
        batch = shop.bench.take()
        assert batch is not None
        shop.bench.run(batch)
        assert late.response.version == "2"

    in_loop(scenario)


def test_one_answer_never_comes_from_two_versions(shop: Shop) -> None:
    splitting = replace(MERGING, max_rows=4, split_oversized=True)
    old = shop.serve(model=spec(4), policy=splitting)
    new = shop.serve(model=spec(4), version="2", policy=splitting)

    def scenario() -> None:
        whole, single = shop.submit(old, request(1.0, rows=10), 10), shop.submit(old, request(1.0))
        running = shop.bench.take()
        old.retire(new)
        assert running is not None
        shop.bench.run(running)
        batch = shop.bench.take(running)
        while batch is not None:
            shop.bench.run(batch)
            batch = shop.bench.take(batch)
        assert whole.response.version == "1"
        assert values(whole).shape == (10, 2)
        assert single.response.version == "2"
        for model in (old, new):
            stats = model.stats
            assert (stats.received, stats.outcomes["success"], stats.pending, stats.in_flight) == (1, 1, 0, 0)
        assert old.target.is_drained

    in_loop(scenario)


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        (spec(8), True),
        (replace(spec(8), version="9", platform="other"), True),
        (spec(16), True),
        (spec(4), False),
        (spec(0), False),
        (spec(8, width=3), False),
        (replace(spec(8), inputs=(TensorSpec("X", FP32, (-1, -1), batch_axis=1),)), False),
        (replace(spec(8), outputs=spec(8).outputs[:1]), False),
        (replace(spec(8), outputs=(*spec(8).outputs, TensorSpec("MORE", FP32, (-1,)))), True),
    ],
)  # fmt: skip
def test_a_successor_takes_over_only_what_it_would_have_admitted_itself(other: ModelSpec, fits: bool) -> None:
    assert takes_same_inputs(spec(8), other) is fits
