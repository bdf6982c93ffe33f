import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo
from kernelport.backends.fake import FakeBehaviour, FakeModel
from kernelport.core.errors import BackendError, LoadError
from kernelport.core.model import Signature
from kernelport.core.tensor import BYTES, FP32, INT64, Array, TensorSpec
from kernelport.lifecycle.warmup import WarmupSample, samples_from_config, warm_up
from onnx_backend import load_file, load_fixture

X = TensorSpec("X", FP32, (-1, 4))
T = TensorSpec("T", BYTES, (-1, 2))
N = TensorSpec("N", INT64, (3,), batch_axis=None)


def samples(folder: Path, specs: list[TensorSpec], **entry: Any) -> list[WarmupSample]:
    return samples_from_config([{"name": "s", **entry}], specs, folder, "m")


def write(folder: Path, name: str, data: bytes) -> None:
    path = folder / "warmup" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_zero_and_random_data_have_the_batch_dimension_in_front(tmp_path: Path) -> None:
    (sample,) = samples(
        tmp_path,
        [X, T, N],
        batch_size=3,
        count=2,
        inputs={
            "X": {"data_type": "TYPE_FP32", "dims": [4], "random_data": True},
            "T": {"data_type": "TYPE_STRING", "dims": [2], "zero_data": True},
            "N": {"data_type": "TYPE_INT64", "dims": [3], "zero_data": True},
        },
    )
    assert (sample.name, sample.count) == ("s", 2)
    assert sample.inputs["X"].shape == (3, 4)
    assert len(np.unique(sample.inputs["X"])) > 4
    assert sample.inputs["T"].tolist() == [[b"", b""]] * 3
    assert sample.inputs["N"].tolist() == [0, 0, 0]


def test_random_strings_are_empty(tmp_path: Path) -> None:
    (sample,) = samples(tmp_path, [T], inputs={"T": {"dims": [2], "random_data": True}})
    assert sample.inputs["T"].tolist() == [[b"", b""]]
    assert sample.count == 1


def test_a_file_holds_one_row_or_all_rows(tmp_path: Path) -> None:
    write(tmp_path, "one", np.arange(4, dtype="<f4").tobytes())
    write(tmp_path, "two", np.arange(8, dtype="<f4").tobytes())
    for name, rows in (("one", [[0, 1, 2, 3], [0, 1, 2, 3]]), ("two", [[0, 1, 2, 3], [4, 5, 6, 7]])):
        (sample,) = samples(tmp_path, [X], batch_size=2, inputs={"X": {"dims": [4], "input_data_file": name}})
        assert sample.inputs["X"].tolist() == rows


def test_strings_in_a_file_have_their_length_in_front(tmp_path: Path) -> None:
    write(tmp_path, "text", b"".join(struct.pack("<I", len(one)) + one for one in (b"a\0", b"")))
    (sample,) = samples(tmp_path, [T], inputs={"T": {"dims": [2], "input_data_file": "text"}})
    assert sample.inputs["T"].tolist() == [[b"a\0", b""]]


def test_the_batch_axis_and_reshape_of_the_model_are_used(tmp_path: Path) -> None:
    state = TensorSpec("S", FP32, (2, -1, 4), batch_axis=1)
    shaped = TensorSpec("R", FP32, (-1, 4), reshape=(2, 2))
    (sample,) = samples(
        tmp_path,
        [state, shaped],
        batch_size=3,
        inputs={"S": {"zero_data": True}, "R": {"dims": [4], "zero_data": True}},
    )
    assert sample.inputs["S"].shape == (2, 3, 4)
    assert sample.inputs["R"].shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"Q": {"zero_data": True}}, "sample 's': the model has no input 'Q'; it has X, T"),
        ({"X": {"zero_data": True}}, "no data for input 'T'"),
        (
            {"X": {"data_type": "TYPE_FP64", "zero_data": True}},
            "data_type is TYPE_FP64, the model's input is",
        ),
        ({"X": {"data_type": "TYPE_FOO", "zero_data": True}}, "unknown data_type 'TYPE_FOO'"),
        ({"X": {"dims": [5], "zero_data": True}}, r"shape \[1, 5\] does not fit X .FP32 \[-1,4\]."),
        ({"X": {"dims": [1, 4], "zero_data": True}}, r"shape \[1, 1, 4\] does not fit"),
        ({"X": {"dims": [4], "input_data_file": "gone"}}, "cannot read warmup/gone .No such file"),
        ({"X": {"dims": [4], "input_data_file": "../secret"}}, "must be a relative path"),
        ({"X": {"dims": [4], "input_data_file": "/etc/hostname"}}, "must be a relative path"),
        ({"X": {"dims": [4], "input_data_file": "link"}}, "must be a relative path"),
        ({"X": {"dims": [4], "input_data_file": "short"}}, "short has 3 elements; 4 are needed"),
        ({"X": {"dims": [4], "input_data_file": "odd"}}, "odd has 5 bytes, no multiple of 4"),
        ({"X": {"dims": [4], "input_data_file": "folder"}}, "cannot read warmup/folder"),
        ({"T": {"dims": [2], "input_data_file": "cut"}}, "cut is cut short at byte 0"),
    ],
)
def test_bad_entries_name_sample_and_input(tmp_path: Path, inputs: Mapping[str, Any], text: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    write(tmp_path, "short", bytes(12))
    write(tmp_path, "odd", bytes(5))
    write(tmp_path, "cut", b"\x09\0\0\0abc")
    (tmp_path / "warmup" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "warmup" / "folder").mkdir()
    specs = [T] if "T" in inputs else [X, T] if "Q" in inputs or text.endswith("'T'") else [X]
    with pytest.raises(LoadError, match=text) as caught:
        samples(tmp_path, specs, inputs=inputs)
    assert "'m'" in str(caught.value)


def test_free_dimensions_need_dims(tmp_path: Path) -> None:
    spec = TensorSpec("X", FP32, (-1, -1))
    with pytest.raises(LoadError, match="give dims, since X"):
        samples(tmp_path, [spec], inputs={"X": {"zero_data": True}})


def fake(answer: Any = None) -> FakeModel:
    return FakeModel(Signature((X,), (TensorSpec("Y", FP32, (-1, 4)),), "fake"), FakeBehaviour(answer=answer))


def test_samples_run_as_often_as_they_say() -> None:
    model = fake()
    given = [
        WarmupSample(name, count, {"X": np.zeros((rows, 4), "f4")}) for name, count, rows in (("a", 2, 1), ("b", 1, 8))
    ]
    assert warm_up(model.execute, [X], given, "m").runs == 3
    assert model.calls == [(1, 4), (1, 4), (8, 4)]


def test_a_sample_that_fails_fails_the_load() -> None:
    def answer(_: Mapping[str, Array]) -> dict[str, Array]:
        raise BackendError("out of memory")

    with pytest.raises(LoadError, match="model 'm': warm-up sample 'a' failed: out of memory"):
        warm_up(fake(answer).execute, [X], [WarmupSample("a", 1, {"X": np.zeros((1, 4), "f4")})], "m")


def test_without_samples_one_invented_row_runs() -> None:
    model = fake()
    report = warm_up(model.execute, [X], [], "m")
    assert (report.runs, report.note, report.shapes) == (1, "", {"X": (1, 4)})
    assert model.calls == [(1, 4)]


def test_a_model_that_refuses_inventions_is_loaded_all_the_same_with_a_note() -> None:
    def answer(_: Mapping[str, Array]) -> dict[str, Array]:
        raise BackendError("wrong magic number")

    report = warm_up(fake(answer).execute, [X], [], "m")
    assert report.runs == 0
    assert report.note == (
        "no warm-up run, made-up inputs do not fit this model (wrong magic number); add model_warmup"
    )


def test_an_unknown_rank_is_noted() -> None:
    assert "rank is not known" in warm_up(fake().execute, [TensorSpec("X", FP32, None)], [], "m").note


@pytest.mark.parametrize("name", ["echo_flex", "scalar_io", "state_axis1", "two_in", "nonzero", "slow", "echo_bytes"])
def test_odd_models_find_an_input_that_fits(tmp_path: Path, name: str) -> None:
    model = load_fixture(tmp_path, name)
    assert warm_up(model.execute, model.signature.inputs, [], name).runs == 1


@pytest.mark.parametrize("name", zoo.NAMES)
def test_real_models_find_an_input_that_fits(name: str) -> None:
    model = load_file(zoo.zoo_model(name))
    assert warm_up(model.execute, model.signature.inputs, [], name).runs == 1
