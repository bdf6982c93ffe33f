"""Providers, their options, and the refusal to fall back to the CPU in silence."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixture_models import write_model
from kernelport.backends import probe
from kernelport.backends.base import Accelerator
from kernelport.backends.onnxruntime import sessions
from kernelport.backends.onnxruntime.cuda import is_cuda_build, load_cuda_libraries
from kernelport.backends.onnxruntime.providers import CPU_PROVIDER, CUDA_PROVIDER, TENSORRT_PROVIDER, plan_providers
from kernelport.backends.onnxruntime.runtime import ort
from kernelport.core.errors import BackendError, LoadError
from kernelport.devices.device import CPU, Device
from onnx_backend import accelerator, load_file

GPU = Device("cuda", 1)


def plan(
    *accelerators: Accelerator, device: Device = GPU, cuda: dict[str, str] | None = None, ignore: bool = False
) -> tuple[Any, bool, list[str]]:
    warnings: list[str] = []
    providers, is_thread_safe = plan_providers(accelerators, device, cuda or {}, ignore, warnings)
    return providers, is_thread_safe, warnings


def test_a_cuda_device_is_the_first_provider_and_carries_its_index() -> None:
    providers, is_thread_safe, _ = plan()
    assert [name for name, _ in providers] == [CUDA_PROVIDER, CPU_PROVIDER]
    assert providers[0][1]["device_id"] == "1"
    assert providers[0][1]["cudnn_conv_algo_search"] == "HEURISTIC"
    assert providers[0][1]["arena_extend_strategy"] == "kSameAsRequested"
    assert is_thread_safe


def test_tritons_parameters_become_provider_options() -> None:
    tensorrt = Accelerator(
        "tensorrt",
        {
            "precision_mode": "FP16",
            "max_workspace_size_bytes": "1073741824",
            "trt_engine_cache_enable": "true",
            "trt_engine_cache_path": "/var/cache/trt",
            "int8_use_native_calibration_table": "0",
            "trt_auxiliary_streams": "-1",
            "trt_profile_min_shapes": "x:1x3",
        },
    )
    providers, is_thread_safe, _ = plan(tensorrt, Accelerator("cuda", {"use_tf32": "0", "prefer_nhwc": "1"}))
    assert [name for name, _ in providers] == [TENSORRT_PROVIDER, CUDA_PROVIDER, CPU_PROVIDER]
    assert providers[0][1] == {
        "device_id": "1",
        "trt_fp16_enable": "1",
        "trt_max_workspace_size": "1073741824",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": "/var/cache/trt",
        "trt_int8_use_native_calibration_table": "0",
        "trt_auxiliary_streams": "-1",
        "trt_profile_min_shapes": "x:1x3",
    }
    assert (providers[1][1]["use_tf32"], providers[1][1]["prefer_nhwc"]) == ("0", "1")
    assert not is_thread_safe


def test_cuda_graphs_are_not_for_several_threads() -> None:
    assert plan(Accelerator("cuda", {"enable_cuda_graph": "1"}))[1] is False


def test_an_accelerators_own_option_beats_the_old_parameter() -> None:
    providers, _, _ = plan(
        Accelerator("cuda", {"gpu_mem_limit": "5"}),
        cuda={"gpu_mem_limit": "4", "arena_extend_strategy": "kNextPowerOfTwo"},
    )
    assert providers[0][1]["gpu_mem_limit"] == "5"
    assert providers[0][1]["arena_extend_strategy"] == "kNextPowerOfTwo"


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Accelerator("tensorrt", {"precision_mode": "FP17"}), "precision_mode is 'FP17'; expected one of FP32, FP16"),
        (Accelerator("tensorrt", {"trt_engine_cache_enabl": "1"}), "did you mean 'trt_engine_cache_enable'"),
        (Accelerator("tensorrt", {"trt_extra_plugin_lib_paths": "/x.so"}), "not allowed"),
        (Accelerator("tensorrt", {"trt_engine_cache_path": "../../etc"}), "must not contain"),
        (Accelerator("tensorrt", {"max_workspace_size_bytes": "-1"}), "whole number"),
        (Accelerator("cuda", {"zzz": "1"}), "unknown parameter 'zzz'; known are"),
        (Accelerator("cuda", {"use_tf32": "perhaps"}), "expected 1 or 0"),
        (Accelerator("openvino"), "not part of this release"),
        (Accelerator("warp"), "not known; known are cuda, tensorrt"),
    ],
)
def test_what_an_accelerator_does_not_have_is_refused(one: Accelerator, text: str) -> None:
    with pytest.raises(LoadError, match=text):
        plan(one)


def test_a_gpu_accelerator_on_the_cpu_is_refused_unless_told_to_ignore_it() -> None:
    with pytest.raises(LoadError, match="tensorrt needs a CUDA device, but the model runs on cpu"):
        plan(Accelerator("tensorrt"), device=CPU)
    providers, is_thread_safe, warnings = plan(Accelerator("tensorrt"), device=CPU, ignore=True)
    assert providers == ((CPU_PROVIDER, {}),)
    assert is_thread_safe
    assert warnings == ["ignore_accelerators is set: tensorrt not used on cpu"]


def test_ignoring_accelerators_on_a_gpu_keeps_cuda() -> None:
    providers, _, warnings = plan(Accelerator("tensorrt"), ignore=True)
    assert [name for name, _ in providers] == [CUDA_PROVIDER, CPU_PROVIDER]
    assert "tensorrt not used" in warnings[0]


def test_a_build_without_cuda_is_told_with_the_pip_line(tmp_path: Path) -> None:
    if CUDA_PROVIDER in ort.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    with pytest.raises(LoadError, match=r"needs CUDAExecutionProvider.*no silent fallback.*kernelport\[gpu\]"):
        load_file(write_model(tmp_path, "echo_fp32"), device=GPU)


class SessionThatFellBack:
    """What a GPU build returns on a machine without a driver: a session on the CPU, and no error."""

    created: list[tuple[Any, ...]]

    def __init__(self, path: str, options: Any, providers: Any, enable_fallback: int) -> None:
        type(self).created.append((path, options, providers, enable_fallback))

    def get_providers(self) -> list[str]:
        return [CPU_PROVIDER]


@pytest.fixture
def gpu_build(monkeypatch: pytest.MonkeyPatch) -> type[SessionThatFellBack]:
    """A fake at the runtime's own boundary."""
    SessionThatFellBack.created = []
    available = [TENSORRT_PROVIDER, CUDA_PROVIDER, CPU_PROVIDER]
    monkeypatch.setattr(ort, "get_available_providers", lambda: available)
    monkeypatch.setattr(ort, "InferenceSession", SessionThatFellBack)
    return SessionThatFellBack


def test_a_session_that_fell_back_to_the_cpu_is_refused(tmp_path: Path, gpu_build: type[SessionThatFellBack]) -> None:
    with pytest.raises(LoadError) as caught:
        load_file(write_model(tmp_path, "echo_fp32"), device=GPU)
    assert "must run on CUDAExecutionProvider" in str(caught.value)
    assert ".so" in str(caught.value)
    assert "; no silent fallback to CPU" in str(caught.value)
    _path, options, providers, enable_fallback = gpu_build.created[0]
    assert enable_fallback == 0
    assert providers[0][0] == CUDA_PROVIDER
    assert options.intra_op_num_threads == 1


def test_tensorrt_that_became_cuda_is_refused_too(
    tmp_path: Path, gpu_build: type[SessionThatFellBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_build, "get_providers", lambda self: [CUDA_PROVIDER, CPU_PROVIDER])
    monkeypatch.setattr(sessions, "_PROVIDER_LIBRARIES", {})
    with pytest.raises(LoadError, match=r"must run on Tensorrt.*the session got CUDAExecutionProvider"):
        load_file(write_model(tmp_path, "echo_fp32"), device=GPU, accelerators=accelerator("tensorrt"))


def test_the_missing_library_is_named_without_the_hosts_path(
    tmp_path: Path, gpu_build: type[SessionThatFellBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "capi"
    folder.mkdir()
    (folder / "libonnxruntime_providers_cuda.so").write_bytes(b"no library")
    monkeypatch.setattr(ort, "__file__", str(tmp_path / "__init__.py"))

    def raises(*_: Any, **__: Any) -> None:
        raise RuntimeError("Please install TensorRT libraries")

    monkeypatch.setattr(ort, "InferenceSession", raises)
    with pytest.raises(LoadError, match=r"libonnxruntime_providers_cuda.so: (file too short|invalid ELF)") as caught:
        load_file(write_model(tmp_path, "echo_fp32"), device=GPU)
    assert str(tmp_path) not in str(caught.value)


def test_gpus_count_only_with_a_driver_and_a_cuda_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "driver_device_count", lambda: 2)
    monkeypatch.setattr(ort, "get_available_providers", lambda: [CUDA_PROVIDER, CPU_PROVIDER])
    assert is_cuda_build()
    assert probe.cuda_device_count() == 2
    monkeypatch.setattr(ort, "get_available_providers", lambda: [CPU_PROVIDER])
    assert probe.cuda_device_count() == 0
    monkeypatch.setattr(probe, "driver_device_count", lambda: 0)
    assert probe.cuda_device_count() == 0


def test_without_the_runtime_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert probe.cuda_device_count() == 0


def test_what_the_runtime_prints_about_its_libraries_goes_to_the_debug_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    load_cuda_libraries.cache_clear()
    monkeypatch.setattr(ort, "preload_dlls", lambda: print("Failed to load libx.so"))  # noqa: T201
    with caplog.at_level(logging.DEBUG):
        load_cuda_libraries()
    assert caplog.messages == ["onnxruntime: Failed to load libx.so"]
    assert capsys.readouterr().out == ""
    load_cuda_libraries.cache_clear()


@pytest.mark.gpu
def test_a_model_runs_on_a_real_gpu(tmp_path: Path) -> None:
    assert probe.cuda_device_count() > 0
    model = load_file(write_model(tmp_path, "sub_ab"), device=Device("cuda", 0))
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(model.execute({"A": rows * 2, "B": rows}, None)["Y"], rows)
    assert model.signature.details["providers"][0] == CUDA_PROVIDER


@pytest.mark.gpu
def test_a_gpu_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises((LoadError, BackendError)):
        load_file(write_model(tmp_path, "echo_fp32"), device=Device("cuda", 99))
