import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.backends.base import BackendOptions
from kernelport.backends.onnxruntime.parameters import SESSION_KEYS, parse_bool, parse_count, parse_parameters
from kernelport.backends.onnxruntime.plan import SessionPlan, plan_session
from kernelport.core.errors import LoadError
from kernelport.devices.device import CPU, Device


def plan(
    parameters: dict[str, str] | None = None,
    settings: dict[str, object] | None = None,
    server: dict[str, str] | None = None,
    device: Device = CPU,
    threads: int = 4,
    has_free_dims: bool = False,
    has_free_batch: bool = False,
) -> SessionPlan:
    options = BackendOptions(
        threads=threads, parameters=parameters or {}, settings=settings or {}, server_parameters=server or {}
    )
    return plan_session(options, device, has_free_dims, has_free_batch)


def test_the_default_plan_uses_the_budget_and_does_not_spin() -> None:
    default = plan()
    assert (default.intra_op_threads, default.inter_op_threads, default.is_parallel) == (4, 1, False)
    assert default.graph_level == "all"
    assert default.session_entries == {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}
    assert default.providers == (("CPUExecutionProvider", {}),)
    assert default.is_thread_safe
    assert default.warnings == ()


@pytest.mark.parametrize(
    ("has_free_dims", "has_free_batch", "arena", "pattern"),
    [(False, False, True, True), (False, True, True, False), (True, True, False, False), (True, False, False, False)],
)
def test_memory_policy_follows_the_shapes(
    has_free_dims: bool, has_free_batch: bool, arena: bool, pattern: bool
) -> None:
    chosen = plan(has_free_dims=has_free_dims, has_free_batch=has_free_batch)
    assert (chosen.has_arena, chosen.has_mem_pattern) == (arena, pattern)


def test_memory_policy_can_be_overruled() -> None:
    chosen = plan({"enable_mem_arena": "true", "enable_mem_pattern": "1"}, has_free_dims=True)
    assert chosen.has_arena
    assert chosen.has_mem_pattern
    assert not plan({"enable_mem_arena": "0"}).has_arena


def test_stronger_layers_win() -> None:
    assert plan(server={"intra_op_thread_count": "2"}).intra_op_threads == 2
    assert plan({"intra_op_thread_count": "3"}, server={"intra_op_thread_count": "2"}).intra_op_threads == 3
    chosen = plan({"intra_op_thread_count": "3"}, {"intra_op_thread_count": 5}, {"intra-op-thread-count": "2"})
    assert chosen.intra_op_threads == 5


def test_zero_threads_means_the_budget() -> None:
    assert plan({"intra_op_thread_count": "0", "inter_op_thread_count": "0"}).intra_op_threads == 4
    assert plan(threads=0).intra_op_threads == 1


@pytest.mark.parametrize(
    ("value", "level"), [("-1", "basic"), ("1", "extended"), ("2", "disable"), ("0", "all"), ("Extended", "extended")]
)
def test_tritons_graph_levels_keep_their_meaning(value: str, level: str) -> None:
    assert plan(settings={"graph_level": value}).graph_level == level
    assert plan({"graph_optimization_level": value}).graph_level == level


def test_execution_mode_takes_tritons_numbers_and_more_than_one_thread() -> None:
    chosen = plan({"execution_mode": "1"}, threads=1)
    assert chosen.is_parallel
    assert chosen.inter_op_threads == 2
    assert not chosen.has_mem_pattern
    assert plan({"execution_mode": "1", "inter_op_thread_count": "3"}).inter_op_threads == 3


def test_spinning_can_be_switched_on_per_model() -> None:
    assert plan({"session.intra_op.allow_spinning": "1"}).session_entries["session.intra_op.allow_spinning"] == "1"


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"intra_op_thread_cout": "2"}, "did you mean 'intra_op_thread_count'"),
        ({"session.disable_prepaking": "1"}, "did you mean 'session.disable_prepacking'"),
        ({"intra_op_thread_count": "two"}, "intra_op_thread_count is 'two'; expected a whole number"),
        ({"intra_op_thread_count": "-1"}, "expected a whole number"),
        ({"intra_op_thread_count": "1_0"}, "expected a whole number"),
        ({"execution_mode": "2"}, "execution_mode is '2'; expected one of 0, 1, sequential, parallel"),
        ({"enable_mem_arena": "maybe"}, "expected 1 or 0"),
        ({"graph_optimization_level": "99"}, "expected one of"),
        ({"memory.enable_memory_arena_shrinkage": "all"}, "expected device:index pairs"),
        ({"session.optimized_model_filepath": "/tmp/x"}, "not allowed .it writes files."),
        ({"session.intra_op_num_threads": "2"}, "use intra_op_thread_count"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_cure(parameters: dict[str, str], text: str) -> None:
    with pytest.raises(LoadError, match=text):
        plan(parameters)


def test_a_parameter_for_somebody_else_is_a_warning_not_a_failure() -> None:
    (warning,) = plan({"owner": "team-vision"}).warnings
    assert "'owner' is not known to the onnxruntime backend and has no effect" in warning


def test_a_session_key_of_another_release_is_handed_on_with_a_warning() -> None:
    chosen = plan({"session.brand_new_switch": "1"})
    assert chosen.session_entries["session.brand_new_switch"] == "1"
    assert len(chosen.warnings) == 1


@pytest.mark.parametrize("layer", ["settings", "server"])
def test_unknown_names_in_layers_written_for_this_server_are_errors(layer: str) -> None:
    with pytest.raises(LoadError, match="unknown parameter 'owner'; known are"):
        plan(**{layer: {"owner": "x"}})  # type: ignore[arg-type]


def test_known_but_not_honoured_is_a_warning_and_off_is_silent() -> None:
    assert "enable_global_threadpool is not honoured" in plan(server={"enable-global-threadpool": "1"}).warnings[0]
    assert plan(server={"enable-global-threadpool": "0"}).warnings == ()
    assert "--max-batch-size" in plan(server={"default-max-batch-size": "8"}).warnings[0]


def test_shrinkage_without_an_arena_is_told() -> None:
    key = "memory.enable_memory_arena_shrinkage"
    assert plan({key: "cpu:0"}).run_entries == {key: "cpu:0"}
    without = plan({key: "cpu:0", "enable_mem_arena": "0"})
    assert without.run_entries == {}
    assert "has no effect" in without.warnings[0]


def test_cuda_parameters_on_the_cpu_are_told() -> None:
    (warning,) = plan({"gpu_mem_limit": "1000"}).warnings
    assert "gpu_mem_limit only apply on a CUDA device; this model runs on cpu" in warning


def test_the_json_form_of_triton_parameters_is_read_too() -> None:
    parsed = parse_parameters({"parameters": {"execution_mode": {"string_value": "1"}}}, frozenset())
    assert parsed.values == {"execution_mode": "parallel"}


@pytest.mark.parametrize("key", sorted(SESSION_KEYS))
def test_every_known_session_key_is_handed_on(key: str) -> None:
    assert plan({key: "1"}).session_entries[key] == "1"


@given(st.dictionaries(st.text(max_size=40), st.text(max_size=10), max_size=4))
def test_no_parameter_text_raises_anything_else(parameters: dict[str, str]) -> None:
    with contextlib.suppress(LoadError):
        plan(parameters)


@given(st.text())
def test_values_are_read_or_refused(text: str) -> None:
    for parse in (parse_bool, parse_count):
        with contextlib.suppress(ValueError):
            assert parse(text) in (True, False, int(text) if text.strip().isdigit() else None)
