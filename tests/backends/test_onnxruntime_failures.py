import pytest
from kernelport.backends.onnxruntime.failures import clean_text, load_error, run_error
from kernelport.core.errors import BackendError, BackendInputError, LoadError


def raised(name: str, text: str) -> Exception:
    """An exception of the runtime's, by its class name."""
    return type(name, (Exception,), {})(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("InvalidArgument", "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : idx=99", BackendInputError),
        ("InvalidArgument", "Failed to allocate memory for requested buffer of size 9", BackendError),
        ("Fail", "bfc_arena.cc:360 Failed to allocate memory for requested buffer of size 4", BackendError),
        ("RuntimeException", "std::bad_alloc", BackendError),
        ("MemoryError", "", BackendError),
        ("EPFail", "CUDA failure 700: an illegal memory access", BackendError),
        ("DeviceReset", "gone", BackendError),
        ("ValueError", "Required inputs (['X']) are missing", BackendError),
    ],
)
def test_only_an_invalid_argument_blames_the_input(name: str, text: str, expected: type[BackendError]) -> None:
    error = run_error(raised(name, text), "m", [])
    assert type(error) is expected
    assert "'m'" in str(error)


def test_kinds_of_failures_are_told_apart() -> None:
    assert "not enough memory" in str(run_error(raised("Fail", "Failed to allocate memory"), "m", []))
    assert "not enough memory" in str(run_error(MemoryError(), "m", []))
    assert "the device failed" in str(run_error(raised("Fail", "CUDA error cudaErrorLaunchFailure"), "m", []))
    assert "the file is damaged" in str(load_error(raised("InvalidProtobuf", "Protobuf parsing failed."), "m", []))
    assert "check its opset" in str(load_error(raised("NotImplemented", "Could not find Foo(1)"), "m", []))
    assert "not enough memory" in str(load_error(MemoryError(), "m", []))
    assert isinstance(load_error(raised("Fail", "x"), "m", []), LoadError)


def test_places_in_the_runtimes_source_and_on_this_host_are_cut_out() -> None:
    text = (
        "[ONNXRuntimeError] : 1 : FAIL : Load model from /srv/models/m/1/model.onnx failed:"
        "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal"
        "(size_t, bool, onnxruntime::Stream*) Failed to allocate\nmemory"
    )
    cleaned = clean_text(text, ["/srv/models", "/srv/models/m", "/srv/models/m/1"])
    assert cleaned == "FAIL : Load model from model.onnx failed:Failed to allocate memory"


def test_node_names_with_slashes_survive() -> None:
    text = "Non-zero status code returned while running Reshape node. Name:'/encoder/layer.0/Reshape'"
    assert clean_text(text, ["/srv/models"]) == text


def test_a_long_text_is_cut() -> None:
    assert len(clean_text("x" * 10_000, [])) < 700
