"""The check must say yes to models that treat rows alone, and no to every kind that does not."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import zoo
from fakes.clock import FakeClock
from fixture_models import BATCH, Graph
from kernelport.backends.fake import FakeBehaviour, FakeModel
from kernelport.core.errors import BackendError
from kernelport.core.model import Signature
from kernelport.core.tensor import BF16, FP16, FP32, INT64, Array, DataType, TensorSpec
from kernelport.lifecycle.rowcheck import BUDGET_NS, RowCheck, agree, check_rows
from onnx_backend import load_file, load_fixture

INDEPENDENT = [
    *(f"echo_{name}" for name in ("bool", "uint8", "uint64", "int8", "int64", "fp16", "bf16", "fp32", "fp64", "bytes")),
    *("echo_flex", "two_out", "two_in", "sub_ab", "varlen_sum", "nanmaker", "gather_poison", "slow", "weird_names"),
    *("heavy", "optional_input"),
]  # fmt: skip


def check_fixture(folder: Path, name: str, max_rows: int = 32) -> RowCheck:
    model = load_fixture(folder, name)
    return check_rows(model.execute, model.signature, [], max_rows)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_models_that_treat_rows_alone_are_found(tmp_path: Path, name: str) -> None:
    assert check_fixture(tmp_path, name) == RowCheck(True, "", 32)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("batch_collapse", "the first dimension of output Y (FP32 [1,4]) is fixed at 1"),
        ("batch_double", "output 'Y' has shape [4, 4] for a batch of 2 rows"),
        ("batch_mean", "row 1 of output 'Y' differs in a batch of 2 rows"),
        ("state_axis1", "the first dimension of input state (FP32 [2,-1,4]) is fixed at 2"),
        ("fixed_batch1", "the first dimension of input X (FP32 [1,4]) is fixed at 1"),
        ("mixed_out", "the first dimension of output META (FP32 [3]) is fixed at 3"),
        ("scalar_io", "input X (FP32 []) has no batch dimension"),
        ("unknown_rank_out", "the rank of output 'Y' is not known"),
        ("nonzero", "the first dimension of output Y (INT64 [1,-1]) is fixed at 1"),
        ("bigout", "the first dimension of input SIZE (INT64 [1]) is fixed at 1"),
    ],
)
def test_models_that_do_not_are_found_with_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    verdict = check_fixture(tmp_path, name)
    assert not verdict.is_independent
    assert reason in verdict.reason


@pytest.mark.parametrize("name", ["magika", "basic-pitch", "nudenet"])
def test_real_models_that_can_be_batched(name: str) -> None:
    model = load_file(zoo.zoo_model(name))
    verdict = check_rows(model.execute, model.signature, [], 8)
    assert (verdict.is_independent, verdict.reason) == (True, "")


def test_a_real_model_that_carries_state_cannot() -> None:
    model = load_file(zoo.zoo_model("silero-vad"))
    verdict = check_rows(model.execute, model.signature, [], 8)
    assert not verdict.is_independent
    assert "state (FP32 [2,-1,128]) is fixed at 2" in verdict.reason


X, Y = TensorSpec("X", FP32, (-1, 4)), TensorSpec("Y", FP32, (-1, 4))
Answer = Callable[[Mapping[str, Array]], dict[str, Array]]


def check_fake(
    answer: Answer, x: TensorSpec = X, y: TensorSpec = Y, samples: Sequence[Mapping[str, Array]] = ()
) -> RowCheck:
    signature = Signature((x,), (y,), "fake")
    model = FakeModel(signature, FakeBehaviour(answer=answer))
    return check_rows(model.execute, signature, samples, 8)


def test_a_model_that_divides_by_the_batch_size_is_caught() -> None:
    assert "differs" in check_fake(lambda inputs: {"Y": inputs["X"] / len(inputs["X"])}).reason


def test_a_model_that_leaks_only_into_later_rows_is_caught() -> None:
    assert "differs" in check_fake(lambda inputs: {"Y": np.cumsum(inputs["X"], axis=0)}).reason


def test_a_model_that_goes_wrong_only_in_large_batches_is_caught() -> None:
    def answer(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {"Y": inputs["X"] if len(inputs["X"]) < 5 else inputs["X"][::-1]}

    assert "row 7 of output 'Y' differs in a batch of 8 rows" in check_fake(answer).reason


def test_a_model_that_sorts_its_rows_is_caught() -> None:
    assert "differs" in check_fake(lambda inputs: {"Y": np.sort(inputs["X"], axis=0)}).reason


def test_a_run_that_raises_means_no_with_the_reason() -> None:
    def answer(inputs: Mapping[str, Array]) -> dict[str, Array]:
        if len(inputs["X"]) > 1:
            raise BackendError("only one row at a time")
        return {"Y": inputs["X"]}

    verdict = check_fake(answer)
    assert verdict.reason == "a run with X [2, 4] failed: only one row at a time"


def test_a_shape_that_changes_with_the_batch_is_caught() -> None:
    square = TensorSpec("Y", FP32, (-1, -1))
    verdict = check_fake(lambda inputs: {"Y": np.ones((len(inputs["X"]),) * 2, np.float32)}, y=square)
    assert "row 1 of output 'Y' has shape [2] in a batch of 2 rows and [1] by itself" in verdict.reason


def unstable(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Another kernel for one row than for many, and an amplified difference for few distinct values."""
    x = inputs["X"].astype(np.float32)
    error = 0.01 if len(x) > 1 and x.max() <= 1 else 0.0
    return {"Y": x + error}


def test_rounding_that_depends_only_on_the_kernel_gets_a_second_opinion() -> None:
    assert check_fake(unstable, TensorSpec("X", INT64, (-1, 4))).is_independent


def test_a_second_opinion_needs_values_that_the_model_takes() -> None:
    def answer(inputs: Mapping[str, Array]) -> dict[str, Array]:
        if inputs["X"].max() > 1:
            raise BackendError("index out of range")
        return unstable(inputs)

    assert "differs in a batch of 2" in check_fake(answer, TensorSpec("X", INT64, (-1, 4))).reason


def test_samples_are_used_and_get_no_second_opinion() -> None:
    seen: list[Array] = []

    def answer(inputs: Mapping[str, Array]) -> dict[str, Array]:
        seen.append(inputs["X"])
        return {"Y": inputs["X"] + (len(inputs["X"]) > 1)}

    rows = np.array([[5, 5, 5, 5], [6, 6, 6, 6]], np.float32)
    assert not check_fake(answer, samples=[{"X": rows}]).is_independent
    assert all(np.isin(one, [5, 6]).all() for one in seen)


def test_batch_axes_and_shared_inputs_of_a_configuration_are_honoured(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "state_axis1")
    inputs = (
        TensorSpec("x", FP32, (-1, 4)),
        TensorSpec("state", FP32, (2, -1, 4), batch_axis=1),
        TensorSpec("rate", FP32, (), batch_axis=None),
    )
    outputs = (TensorSpec("y", FP32, (-1, 4)), TensorSpec("state_out", FP32, (2, -1, 4), batch_axis=1))
    assert check_rows(model.execute, Signature(inputs, outputs, ""), [], 8) == RowCheck(True, "", 8)


def test_a_shared_output_must_come_out_equal(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "mixed_out")
    inputs = (TensorSpec("X", FP32, (-1, 4)),)
    outputs = (TensorSpec("Y", FP32, (-1, 4)), TensorSpec("META", FP32, (3,), batch_axis=None))
    assert check_rows(model.execute, Signature(inputs, outputs, ""), [], 8).is_independent
    wrong = (TensorSpec("Y", FP32, (-1, 4), batch_axis=None),)
    assert not check_rows(model.execute, Signature(inputs, wrong, ""), [], 8).is_independent


def test_a_model_that_wants_bigger_inputs_gets_them(tmp_path: Path) -> None:
    graph = (
        Graph().takes("X", [BATCH, 1, "h", "w"]).gives("Y", [BATCH, 1, "a", "b"]).constant("W", np.ones((1, 1, 20, 20)))
    )
    path = tmp_path / "conv" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(graph.op("Conv", "X,W", "Y").model().SerializeToString())
    model = load_file(path)
    assert check_rows(model.execute, model.signature, [], 8) == RowCheck(True, "", 8)


def test_a_model_that_takes_no_invented_input_is_not_batched() -> None:
    def answer(_: Mapping[str, Array]) -> dict[str, Array]:
        raise BackendError("wrong magic number")

    verdict = check_fake(answer, TensorSpec("X", FP32, (-1, -1)))
    assert verdict.reason == "a run with X [1, 512] failed: wrong magic number"


def test_one_row_is_no_batch(tmp_path: Path) -> None:
    assert check_fixture(tmp_path, "echo_fp32", max_rows=1).reason == "the largest batch is one row"


def test_a_slow_model_gets_a_smaller_batch_and_fewer_comparisons() -> None:
    clock = FakeClock()
    signature = Signature((X,), (Y,), "fake")

    def answer(inputs: Mapping[str, Array]) -> dict[str, Array]:
        clock.time_ns += len(inputs["X"]) * BUDGET_NS // 10
        return {"Y": inputs["X"]}

    model = FakeModel(signature, FakeBehaviour(answer=answer))
    assert check_rows(model.execute, signature, [], 32, clock.now_ns) == RowCheck(True, "", 10)
    assert [shape[0] for shape in model.calls] == [1, 1, 1, 2, 10, 1, 1]


@pytest.mark.parametrize(
    ("one", "other", "kind", "is_equal"),
    [
        ([1.0, 2.0], [1.00005, 2.0], FP32, True),
        ([1.0, 2.0], [1.001, 2.0], FP32, False),
        ([1000.0, 0.0], [1000.0, 0.001], FP32, True),
        ([np.nan, np.inf], [np.nan, np.inf], FP32, True),
        ([np.nan, 1.0], [0.0, 1.0], FP32, False),
        ([np.inf], [-np.inf], FP32, False),
        ([0.0], [1e-9], FP32, False),
        ([1.0], [1.003], FP16, True),
        ([1.0], [1.03], FP16, False),
        ([1], [2], INT64, False),
        ([0x3F80], [0x3F82], BF16, True),
        ([0x3F80], [0x3F90], BF16, False),
        ([], [], FP32, True),
    ],
)
def test_agreement_is_equality_within_rounding(
    one: list[float], other: list[float], kind: DataType, is_equal: bool
) -> None:
    assert agree(np.array(one, kind.dtype), np.array(other, kind.dtype), kind) is is_equal
