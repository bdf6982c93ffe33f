"""The door for one request: found, admitted or refused, and counted either way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.batching import Bench, request, spec, values
from fakes.models import loaded
from kernelport.batcher.policy import BatchPolicy, QueuePolicy
from kernelport.batcher.queue import ModelQueue
from kernelport.core.errors import MalformedBody, ModelNotFound, QueueFull, TensorMismatch
from kernelport.core.model import ModelSpec
from kernelport.core.request import InferenceRequest
from kernelport.core.tensor import FP32, FP64, Tensor, TensorSpec
from kernelport.lifecycle.catalog import Catalog, CatalogEntry
from kernelport.lifecycle.loaded import LoadedVersion
from kernelport.lifecycle.served_model import ServedModel
from kernelport.serving.dataplane import DataPlane
from kernelport.telemetry.stats import ModelStats


class Door:
    """A data plane before one model `m`; the test drives the lane."""

    def __init__(self, version: LoadedVersion) -> None:
        self.bench = Bench()
        self.model = ServedModel(version, self.bench.dispatcher, ModelQueue("m"), ModelStats())
        catalog = Catalog()
        catalog.publish("m", CatalogEntry.of({"1": self.model}))
        self.plane = DataPlane(catalog, self.bench.clock.now_ns)

    def infer(self, wanted: InferenceRequest, version: str | None = None) -> Any:
        received_ns = self.bench.clock.now_ns()
        self.bench.clock.advance(30)
        return self.plane.infer(self.plane.find("m", version), wanted, received_ns)

    def counted(self) -> dict[str, int]:
        return {outcome: count for outcome, count in self.model.stats.outcomes.items() if count}


@pytest.fixture
def door() -> Door:
    return Door(loaded(model=spec(4), policy=BatchPolicy(max_rows=4, merges=True)))


def test_a_request_goes_in_and_its_answer_comes_out(door: Door) -> None:
    call = door.infer(request(3.0, rows=2))
    door.bench.work()
    assert values(call).tolist() == [[6.0, 6.0]] * 2
    assert door.counted() == {"success": 1}
    assert door.model.stats.rows == 2


def test_the_version_that_was_named_is_pinned(door: Door) -> None:
    assert door.infer(request(1.0), "1").is_pinned
    assert not door.infer(request(1.0)).is_pinned


@pytest.mark.parametrize(("model", "version"), [("m", "2"), ("other", None), ("m", "01"), ("m", "+1")])
def test_what_is_not_served_is_not_found(door: Door, model: str, version: str | None) -> None:
    with pytest.raises(ModelNotFound):
        door.plane.find(model, version)


def test_a_request_that_does_not_fit_comes_back_refused_and_counted(door: Door) -> None:
    wrong = InferenceRequest({"X": Tensor("X", FP64, np.zeros((1, 2)))})
    for wanted in (wrong, InferenceRequest({}), request(1.0, rows=5)):
        call = door.infer(wanted)
        assert isinstance(call.error, TensorMismatch)
        assert call.is_done
    assert door.counted() == {"invalid": 3}
    assert door.model.stats.received == 3
    assert door.model.stats.fail_ns == 90


def test_a_large_request_is_let_in_only_where_it_can_be_split() -> None:
    door = Door(loaded(model=spec(4), policy=BatchPolicy(max_rows=4, merges=True, split_oversized=True)))
    call = door.infer(request(1.0, rows=9))
    door.bench.work()
    assert values(call).shape == (9, 2)


def test_a_full_queue_comes_back_as_a_finished_call_not_as_an_exception() -> None:
    door = Door(loaded(model=spec(4), queue_policy=QueuePolicy(max_queue_size=1)))
    errors = [door.infer(request(1.0)).error for _ in range(3)]
    assert [type(error) for error in errors] == [type(None), type(None), QueueFull]


def test_a_body_that_could_not_be_read_is_counted_for_its_model(door: Door) -> None:
    received_ns = door.bench.clock.now_ns()
    door.bench.clock.advance(40)
    door.plane.reject(door.plane.find("m", None), MalformedBody("no JSON"), received_ns)
    assert door.counted() == {"invalid": 1}
    assert (door.model.stats.received, door.model.stats.fail_ns) == (1, 40)


# -- forms that were admitted before -----------------------------------------------------------------------------------


def test_a_form_that_was_admitted_before_is_served_alike_and_batched_with_the_first(door: Door) -> None:
    calls = [door.infer(request(float(number))) for number in range(3)]
    assert list(door.model.forms) == [("X", FP32, (1, 2))]
    calls.append(door.infer(request(3.0, outputs=["Y", "Z"])))
    assert len(door.bench.work()) == 1
    assert [values(call).tolist() for call in calls] == [[[2.0 * number] * 2] for number in range(4)]
    assert door.counted() == {"success": 4}


def test_a_known_form_keeps_different_shapes_and_pinned_requests_apart(door: Door) -> None:
    for _ in range(2):
        for width in (2, 3):
            door.infer(request(1.0, width=width))
            door.infer(request(1.0, width=width), "1")
    assert sorted(len(batch.entries) for batch in door.bench.work()) == [2, 2, 2, 2]


def test_what_was_refused_is_refused_again(door: Door) -> None:
    for _ in range(2):
        assert isinstance(door.infer(request(1.0, rows=5)).error, TensorMismatch)
        assert isinstance(door.infer(request(1.0, outputs=["NOPE"])).error, TensorMismatch)
        assert door.infer(request(1.0)).error is None
    assert door.counted() == {"invalid": 4}


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        (spec(4), BatchPolicy(max_rows=4, merges=True, shape_buckets=(("X", 1, (4, 8)),))),
        (
            replace(spec(4), inputs=(*spec(4).inputs, TensorSpec("rate", FP32, (), optional=True, batch_axis=None))),
            BatchPolicy(max_rows=4, merges=True),
        ),
    ],
    ids=["padded to a shape bucket", "values that all rows share"],
)
def test_forms_are_not_remembered_where_they_do_not_say_who_may_share_a_batch(
    model: ModelSpec, policy: BatchPolicy
) -> None:
    door = Door(loaded(model=model, policy=policy))
    calls = [door.infer(request(float(number))) for number in range(2)]
    door.bench.work()
    assert door.model.forms == {}
    assert [values(call).tolist() for call in calls] == [[[0.0, 0.0]], [[2.0, 2.0]]]


def test_forms_of_a_model_that_runs_requests_alone_have_no_key() -> None:
    door = Door(loaded(model=spec(4), policy=BatchPolicy(max_rows=4)))
    calls = [door.infer(request(float(number))) for number in range(2)]
    door.bench.work()
    assert set(door.model.forms.values()) == {(1, None)}
    assert [values(call).tolist() for call in calls] == [[[0.0, 0.0]], [[2.0, 2.0]]]


def test_the_memory_of_forms_is_bounded(door: Door) -> None:
    for width in range(1, 600):
        door.infer(request(1.0, width=width))
    assert 0 < len(door.model.forms) <= 256
