"""Loading, signature, running and closing, on models built to be odd."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from fixture_models import write_model
from kernelport.backends.onnxruntime.runtime import ort
from kernelport.core.errors import BackendError, BackendInputError, LoadError
from kernelport.core.tensor import FP32, INT64
from onnx_backend import load_file, load_fixture

ROW = np.array([[1, 2, 3, 4]], np.float32)


def test_free_dimensions_keep_their_names(tmp_path: Path) -> None:
    signature = load_fixture(tmp_path, "echo_flex").signature
    assert signature.inputs[0].shape == (-1, -1)
    assert signature.inputs[0].symbols == ("batch", "length")
    assert signature.platform == "onnxruntime_onnx"


def test_an_unknown_rank_is_told_from_a_scalar(tmp_path: Path) -> None:
    assert load_fixture(tmp_path, "unknown_rank_out").signature.outputs[0].shape is None
    assert load_fixture(tmp_path, "scalar_io").signature.outputs[0].shape == ()


def test_an_unknown_rank_output_takes_the_shape_that_comes(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "unknown_rank_out")
    inputs = {"X": np.arange(6, dtype=np.float32), "SHAPE": np.array([2, 3, 1])}
    assert model.execute(inputs, None)["Y"].shape == (2, 3, 1)


def test_an_input_with_a_default_is_optional(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "optional_input")
    assert [(one.name, one.optional) for one in model.signature.inputs] == [("X", False), ("SCALE", True)]
    assert model.execute({"X": ROW}, None)["Y"].tolist() == [[2, 4, 6, 8]]
    assert model.execute({"X": ROW, "SCALE": np.array([10], np.float32)}, None)["Y"].tolist() == [[10, 20, 30, 40]]


def test_the_size_of_an_output_may_depend_on_the_values(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "nonzero")
    assert model.signature.outputs[0].datatype is INT64
    assert model.execute({"X": np.array([0, 5, 0, 7], np.float32)}, None)["Y"].tolist() == [[1, 3]]
    assert model.execute({"X": np.zeros(3, np.float32)}, None)["Y"].shape == (1, 0)


def test_a_subset_of_outputs_is_all_that_is_computed(tmp_path: Path) -> None:
    results = load_fixture(tmp_path, "two_out").execute({"X": ROW}, ("Y1",))
    assert list(results) == ["Y1"]
    assert results["Y1"].tolist() == (-ROW).tolist()


def test_a_bad_value_blames_the_input(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "gather_poison")
    with pytest.raises(BackendInputError, match=r"'gather_poison' refused the input: .*idx=99"):
        model.execute({"IDX": np.array([[1], [99]])}, None)
    assert model.execute({"IDX": np.array([[1]])}, None)["Y"].tolist() == [[10]]


@pytest.mark.parametrize("size", [10**12, 10**15, 2**62, -5])
def test_an_impossible_allocation_is_our_error_without_places_of_the_host(tmp_path: Path, size: int) -> None:
    model = load_fixture(tmp_path, "bigout")
    with pytest.raises(BackendError) as caught:
        model.execute({"SIZE": np.array([size])}, None)
    assert not isinstance(caught.value, BackendInputError)
    assert "/" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("shape", [[-5], [2**62], [7]])
def test_an_impossible_reshape_is_our_error(tmp_path: Path, shape: list[int]) -> None:
    model = load_fixture(tmp_path, "unknown_rank_out")
    with pytest.raises(BackendError, match="'unknown_rank_out' failed while running"):
        model.execute({"X": np.zeros(4, np.float32), "SHAPE": np.array(shape)}, None)


def test_a_failing_run_writes_nothing_to_the_process_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = load_fixture(tmp_path, "gather_poison")
    with pytest.raises(BackendInputError):
        model.execute({"IDX": np.array([[99]])}, None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({}, "failed while running"),
        ({"X": ROW.astype(np.float64)}, "refused the input"),
        ({"X": ROW[:, :3]}, "refused the input"),
        ({"X": ROW, "Q": ROW}, "refused the input"),
    ],
    ids=["missing", "type", "shape", "unknown"],
)
def test_inputs_that_slipped_through_are_never_a_foreign_exception(
    tmp_path: Path, inputs: dict[str, np.ndarray], text: str
) -> None:
    with pytest.raises(BackendError, match=text):
        load_fixture(tmp_path, "echo_fp32").execute(inputs, None)


def test_a_truncated_file_is_a_load_error_without_host_paths(tmp_path: Path) -> None:
    path = write_model(tmp_path, "heavy")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(LoadError, match=r"'m': model.onnx is not a complete ONNX file") as caught:
        load_file(path)
    assert str(tmp_path) not in str(caught.value)


def test_an_operator_the_runtime_lacks_is_named(tmp_path: Path) -> None:
    path = write_model(tmp_path, "echo_fp32")
    path.write_bytes(path.read_bytes().replace(b"Identity", b"Idontity"))
    with pytest.raises(LoadError, match="Idontity") as caught:
        load_file(path)
    assert str(tmp_path) not in str(caught.value)


def test_a_folder_stands_for_the_model_file_in_it(tmp_path: Path) -> None:
    write_model(tmp_path, "echo_fp32")
    model = load_file(tmp_path / "echo_fp32" / "1")
    assert model.signature.inputs[0].datatype is FP32


def test_a_pipe_in_place_of_a_model_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(LoadError, match="not a regular file"):
        load_file(path)


def test_closing_frees_the_session_without_a_collection(tmp_path: Path) -> None:
    model = load_fixture(tmp_path, "echo_fp32")
    session = weakref.ref(model._session)
    gc.disable()
    try:
        model.close()
        assert session() is None
    finally:
        gc.enable()


def test_telemetry_is_off_before_the_runtime_is_imported() -> None:
    code = (
        "import os, kernelport.backends.onnxruntime, onnxruntime; "
        "assert os.environ['ORT_DISABLE_TELEMETRY'] == '1', os.environ"
    )
    environment = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


def test_the_plan_reaches_the_session(tmp_path: Path) -> None:
    model = load_fixture(
        tmp_path,
        "echo_flex",
        threads=3,
        parameters={
            "enable_mem_arena": "1",
            "execution_mode": "1",
            "session.set_denormal_as_zero": "1",
            "memory.enable_memory_arena_shrinkage": "cpu:0",
        },
        settings={"graph_level": 1, "use_deterministic_compute": True},
    )
    options = model._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 3)
    assert options.execution_mode == ort.ExecutionMode.ORT_PARALLEL
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    assert options.enable_cpu_mem_arena
    assert not options.enable_mem_pattern
    assert options.use_deterministic_compute
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.get_session_config_entry("session.inter_op.allow_spinning") == "0"
    rows = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(model.execute({"X": rows}, None)["Y"], rows)
    assert model.signature.details["providers"] == ("CPUExecutionProvider",)


def test_an_old_model_whose_weights_are_listed_as_inputs_takes_only_the_real_one(tmp_path: Path) -> None:
    from fixture_models import Graph

    graph = Graph().takes("X", ["batch", 4]).takes("W", [4]).gives("Y", ["batch", 4])
    built = graph.constant("W", [1, 2, 3, 4]).op("Add", "X,W", "Y").model()
    built.ir_version = 3
    path = tmp_path / "m" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    path.write_bytes(built.SerializeToString())
    assert [one.name for one in load_file(path).signature.inputs] == ["X"]
