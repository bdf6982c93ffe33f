"""Versions loaded from real files by the real backends."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fakes.batching import Bench
from fakes.loading import Load, configure, files_in
from fakes.models import put_model
from fixture_models import build, write_model
from kernelport.batcher.queue import ModelQueue
from kernelport.config.server import ServerSettings
from kernelport.core.errors import BackendMissing, LoadError
from kernelport.core.request import InferenceRequest
from kernelport.core.tensor import FP32, Array, Tensor
from kernelport.devices.device import CPU, Device
from kernelport.lifecycle.loaded import LoadedVersion
from kernelport.lifecycle.loader import Loader
from kernelport.lifecycle.served_model import ServedModel
from kernelport.telemetry.stats import ModelStats

CUDA = Device("cuda", 0)


def run(version: LoadedVersion, **inputs: Array) -> dict[str, Array]:
    return version.copies[0].execute(inputs, None)


# -- may requests be merged? -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["echo_fp32", "echo_bytes", "sub_ab", "two_in", "varlen_sum", "gather_poison"])
def test_a_model_whose_rows_are_independent_is_batched_by_itself(tmp_path: Path, load: Load, name: str) -> None:
    write_model(tmp_path, name)
    version = load(name)
    assert (version.batch_policy.merges, version.batch_policy.max_rows, version.spec.max_batch_size) == (True, 32, 32)
    assert version.config["max_batch_size"] == 32
    assert version.config["dynamic_batching"]["max_queue_delay_microseconds"] == 0


def test_the_servers_limits_hold_where_the_model_names_none(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "echo_fp32")
    version = load("echo_fp32", max_batch_size=5, max_queue_size=77)
    assert (version.spec.max_batch_size, version.queue_policy.max_queue_size) == (5, 77)


def test_a_model_that_mixes_rows_is_served_unbatched_with_the_reason(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "batch_mean")
    version = load("batch_mean")
    assert (version.spec.max_batch_size, version.batch_policy.merges, version.batch_policy.max_rows) == (0, False, 1)
    assert any("requests are not merged: row 1 of output 'Y' differs" in note for note in version.notes)
    assert "dynamic_batching" not in version.config
    row = np.array([[1, 2, 3, 4]], np.float32)
    assert run(version, X=row)["Y"].tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("batch_double", "output 'Y' has shape [4, 4] for a batch of 2 rows"),
        ("batch_collapse", "dimension 0 of output 'Y' is fixed at 1"),
        ("fixed_batch1", "dimension 0 of input 'X' is fixed at 1"),
        ("scalar_io", "input 'X' is a scalar"),
        ("mixed_out", "dimension 0 of output 'META' is fixed at 3"),
        ("state_axis1", "dimension 0 of input 'state' is fixed at 2"),
    ],
)
def test_models_that_cannot_be_batched_come_out_unbatched_by_themselves(
    tmp_path: Path, load: Load, name: str, reason: str
) -> None:
    write_model(tmp_path, name)
    version = load(name)
    assert (version.spec.max_batch_size, version.batch_policy.merges) == (0, False)
    assert any(reason in note for note in version.notes), version.notes


def test_a_written_maximum_is_kept_but_dependent_rows_are_not_merged(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "batch_mean")
    configure(tmp_path, "batch_mean", "max_batch_size: 8")
    version = load("batch_mean")
    assert (version.spec.max_batch_size, version.batch_policy.merges) == (8, False)
    assert "dynamic_batching" not in version.config


def test_who_insists_on_batching_gets_it_and_is_warned(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "batch_mean")
    configure(tmp_path, "batch_mean", "{max_batch_size: 8, dynamic_batching: {}}")
    version = load("batch_mean")
    assert version.batch_policy.merges
    assert any("asks for batching, but rows are not independent" in note for note in version.notes)


@pytest.mark.parametrize("text", ["{max_batch_size: 8, dynamic_batching: off}", "max_batch_size: 0"])
def test_a_model_whose_batching_is_off_is_not_examined(tmp_path: Path, load: Load, text: str) -> None:
    put_model(tmp_path, "m", config=text)
    version = load("m")
    assert not version.batch_policy.merges
    assert [shape[0] for shape in version.copies[0].calls] == [1]  # type: ignore[attr-defined]


def test_rows_are_examined_as_the_framework_sees_them(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "echo_fp32")
    configure(
        tmp_path,
        "echo_fp32",
        """\
        max_batch_size: 8
        input: [{name: X, dims: [2, 2], reshape: {shape: [4]}}]
        output: [{name: Y, dims: [2, 2], reshape: {shape: [4]}}]
        """,
    )
    version = load("echo_fp32")
    assert version.batch_policy.merges
    assert version.spec.inputs_by_name["X"].shape == (-1, 2, 2)


# -- state on another axis ---------------------------------------------------------------------------------------------

AXES = """\
input: [{name: state, batch_axis: 1}, {name: rate, batch_axis: null}]
output: [{name: y}, {name: state_out, batch_axis: 1}]
"""


def stateful(value: float, rate: float, rows: int = 1) -> InferenceRequest:
    inputs = {
        "x": np.full((rows, 4), value, np.float32),
        "state": np.arange(2 * rows * 4, dtype=np.float32).reshape(2, rows, 4) * value,
        "rate": np.array(rate, np.float32),
    }
    return InferenceRequest({name: Tensor(name, FP32, array) for name, array in inputs.items()})


def test_a_model_with_state_on_axis_1_is_batched_right_when_told_its_axes(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "state_axis1")
    configure(tmp_path, "state_axis1", AXES)
    version = load("state_axis1")
    assert version.batch_policy.merges
    assert {one.name: one.batch_axis for one in version.spec.inputs} == {"x": 0, "state": 1, "rate": None}
    bench = Bench()
    model = ServedModel(version, bench.dispatcher, ModelQueue("m"), ModelStats())
    asked = [(1.0, 2.0, 1), (3.0, 2.0, 2), (5.0, 7.0, 1), (9.0, 2.0, 1)]
    calls = [model.submit(stateful(*one), one[2], 0) for one in asked]
    batches = bench.work()
    assert sorted(batch.timing.rows for batch in batches) == [1, 4]
    for call, one in zip(calls, asked, strict=True):
        alone = run(version, **{name: tensor.array for name, tensor in stateful(*one).inputs.items()})
        assert call.response is not None, call.error
        for tensor in call.response.outputs:
            assert np.array_equal(tensor.array, alone[tensor.name])


# -- warm-up -----------------------------------------------------------------------------------------------------------

WARMUP = """\
model_warmup:
- {name: hot, batch_size: 1, count: 2, inputs: {IDX: {dims: [1], input_data_file: indices.bin}}}
"""


def with_indices(folder: Path, value: int) -> None:
    write_model(folder, "gather_poison")
    configure(folder, "gather_poison", WARMUP)
    (folder / "gather_poison" / "warmup").mkdir()
    (folder / "gather_poison" / "warmup" / "indices.bin").write_bytes(np.array([value], np.int64).tobytes())


def test_a_warm_up_that_fails_fails_the_load_and_leaves_nothing_behind(
    tmp_path: Path, load: Load, scratch: Path
) -> None:
    with_indices(tmp_path, 99)
    with pytest.raises(LoadError, match="model 'gather_poison': warm-up sample 'hot' failed"):
        load("gather_poison")
    assert files_in(scratch) == []


def test_a_warm_up_that_works_tells_the_shapes_it_ran_with(tmp_path: Path, load: Load) -> None:
    with_indices(tmp_path, 3)
    version = load("gather_poison")
    assert version.sample_shapes == {"IDX": (1, 1)}
    assert version.load_ns > 0


def test_every_copy_is_warmed_up(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m", config="{max_batch_size: 0, instance_group: [{count: 3}]}", is_thread_safe=False)
    version = load("m")
    assert [len(copy.calls) for copy in version.copies] == [1, 1, 1]  # type: ignore[attr-defined]


def test_a_model_that_refuses_made_up_inputs_is_loaded_and_says_so(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m", inputs=[{"name": "X", "datatype": "INT64", "shape": [64]}], fail_on=1)
    version = load("m")
    assert any(note.startswith("no warm-up run") and "add model_warmup" in note for note in version.notes)
    assert version.sample_shapes == {}


# -- instances and devices ---------------------------------------------------------------------------------------------


def groups(*entries: str, name: str = "m") -> str:
    return "max_batch_size: 0\ninstance_group: [" + ", ".join(entries) + "]\n"


def test_instances_of_a_thread_safe_backend_share_one_copy(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "echo_fp32")
    configure(tmp_path, "echo_fp32", groups("{count: 3}"))
    version = load("echo_fp32")
    assert len(version.copies) == 1
    assert version.permits == {"cpu": [version.copies[0]] * 3}


def test_instances_of_any_other_backend_have_a_copy_each(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m", config=groups("{count: 3}"), is_thread_safe=False)
    version = load("m")
    assert len(set(map(id, version.copies))) == 3
    assert version.permits == {"cpu": list(version.copies)}


def test_without_a_group_there_is_one_instance_on_the_default_device(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m")
    assert {device: len(some) for device, some in load("m").permits.items()} == {"cpu": 1}
    on_gpu = load("m", device=CUDA)
    assert {device: len(some) for device, some in on_gpu.permits.items()} == {"cuda:0": 1}
    assert on_gpu.config["instance_group"][0]["kind"] == "KIND_GPU"


@pytest.mark.parametrize(
    ("entries", "device", "counts"),
    [
        (["{count: 1, kind: KIND_CPU}", "{count: 2}"], CPU, {"cpu": 3}),
        (["{count: 2, kind: KIND_AUTO}"], CUDA, {"cuda:0": 2}),
        (["{count: 2, kind: KIND_GPU}"], CUDA, {"cuda:0": 2}),
        (["{count: 2, kind: KIND_GPU, gpus: [0]}", "{count: 1, gpus: [0]}"], CUDA, {"cuda:0": 3}),
        (["{count: 2, kind: KIND_GPU}", "{count: 4, kind: KIND_CPU}"], CUDA, {"cuda:0": 2, "cpu": 4}),
    ],
)  # fmt: skip
def test_groups_add_up_per_device(
    tmp_path: Path, load: Load, entries: list[str], device: Device, counts: dict[str, int]
) -> None:
    put_model(tmp_path, "m", config=groups(*entries))
    assert {device: len(some) for device, some in load("m", device=device).permits.items()} == counts


@pytest.mark.parametrize(
    ("entry", "device", "message"),
    [
        ("{kind: KIND_GPU}", CPU, "asks for KIND_GPU, but the server runs on the CPU"),
        ("{gpus: [0]}", CPU, "asks for KIND_GPU, but the server runs on the CPU"),
        ("{kind: KIND_GPU, gpus: [0, 1]}", CUDA, "asks for cuda:1; this server runs models on cuda:0"),
    ],
)
def test_an_instance_on_a_device_that_the_server_does_not_use_is_refused(
    tmp_path: Path, load: Load, scratch: Path, entry: str, device: Device, message: str
) -> None:
    put_model(tmp_path, "m", config=groups(entry))
    with pytest.raises(LoadError, match=message):
        load("m", device=device)
    assert files_in(scratch) == []


# -- which file, which backend -----------------------------------------------------------------------------------------


def test_the_file_may_be_called_anything_when_the_configuration_says_so(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "echo_fp32").rename(tmp_path / "echo_fp32" / "1" / "network-v3.onnx")
    write_model(tmp_path, "echo_fp32", version=2).rename(tmp_path / "echo_fp32" / "2" / "other.onnx")
    configure(tmp_path, "echo_fp32", "{default_model_filename: network-v3.onnx, version_policy: {all: {}}}")
    assert load("echo_fp32").config["default_model_filename"] == "network-v3.onnx"
    with pytest.raises(LoadError, match=r"network-v3\.onnx"):
        load("echo_fp32", "2")


def test_the_only_file_with_the_right_suffix_is_the_model(tmp_path: Path, load: Load) -> None:
    write_model(tmp_path, "echo_fp32").rename(tmp_path / "echo_fp32" / "1" / "resnet.onnx")
    assert load("echo_fp32").config["default_model_filename"] == "resnet.onnx"


def test_models_may_lie_flat_in_the_repository_or_in_their_folder(tmp_path: Path, load: Load) -> None:
    content = build("echo_fp32").SerializeToString()
    (tmp_path / "bare.onnx").write_bytes(content)
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "model.onnx").write_bytes(content)
    for name in ("bare", "flat"):
        version = load(name)
        assert (version.spec.name, version.spec.version, version.spec.backend) == (name, "1", "onnxruntime")
        assert version.batch_policy.merges


@pytest.mark.parametrize("line", ["backend: onnxruntime", "platform: onnxruntime_onnx", "backend: onnx"])
def test_the_backend_may_be_named_in_triton_words(tmp_path: Path, load: Load, line: str) -> None:
    write_model(tmp_path, "echo_fp32")
    configure(tmp_path, "echo_fp32", line)
    assert load("echo_fp32").spec.platform == "onnxruntime_onnx"


@pytest.mark.parametrize(
    ("files", "config", "message"),
    [
        (["labels.txt"], "", "version 1 holds no model file that a backend knows"),
        (["model.py"], "", "belongs to the python backend, which is not part of this release"),
        (["labels.txt"], "backend: onnxruntime", "version 1 has no model.onnx; write default_model_filename"),
        (["a.onnx", "b.onnx"], "", "version 1 has no model.onnx; write default_model_filename"),
        (["model.onnx"], "backend: onnxruntme", "did you mean 'onnxruntime'"),
        (["model.onnx"], "backend: tensorrt", "is not part of this release"),
        (["model.onnx"], "", "model 'm'"),
        (["model.fake"], "", "is no fake model"),
    ],
)
def test_files_that_are_no_model_are_told_apart_and_leave_nothing_behind(
    tmp_path: Path, load: Load, scratch: Path, files: list[str], config: str, message: str
) -> None:
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_bytes(b"these bytes are no model")
    configure(tmp_path, "m", config)
    with pytest.raises(LoadError, match=message):
        load("m")
    assert files_in(scratch) == []


def test_a_saved_model_folder_by_itself_is_a_model_of_a_later_release(tmp_path: Path, load: Load) -> None:
    (tmp_path / "net.savedmodel").mkdir()
    with pytest.raises(LoadError, match="no model file that a backend knows"):
        load("net")


def test_a_version_that_is_not_there_and_a_broken_configuration_are_reasons(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m", "1")
    with pytest.raises(LoadError, match="version 7 is not in the repository"):
        load("m", "7")
    configure(tmp_path, "m", "max_batch_sise: 3")
    with pytest.raises(LoadError, match="max_batch_sise"):
        load("m")


def test_a_missing_framework_is_told_with_its_cure_before_files_are_copied(
    tmp_path: Path, load: Load, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path, "echo_fp32")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as Python marks a package that must not be found
    with pytest.raises(BackendMissing, match=r"needs the package onnxruntime; run: pip install 'kernelport\[cpu\]'"):
        load("echo_fp32")
    assert [path for path in scratch.rglob("*") if path.parent != scratch] == []


def test_what_is_asked_for_and_ignored_is_told(tmp_path: Path, load: Load) -> None:
    put_model(tmp_path, "m", config="{json_nonfinite: literal, response_cache: {enable: true}}")
    version = load("m")
    assert version.json_nonfinite == "literal"
    assert any("response_cache" in note for note in version.notes)


def test_closing_a_loader_removes_its_folder(scratch: Path) -> None:
    loader = Loader(ServerSettings(), CPU, 2)
    assert len(list(scratch.iterdir())) == 1
    loader.close()
    assert list(scratch.iterdir()) == []
