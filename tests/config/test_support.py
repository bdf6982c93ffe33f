"""Known fields that are not honoured."""

from typing import Any

import pytest
from kernelport.config.model import ModelConfig
from kernelport.config.support import review

INPUT = {"name": "x"}


def look(**fields: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = review(ModelConfig.model_validate(fields))
    return found.refused, found.warnings


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("sequence_batching", {"sequence_batching": {}}),
        ("ensemble_scheduling", {"ensemble_scheduling": {"step": []}}),
        ("ensemble_scheduling", {"platform": "ensemble"}),
        ("batch_input", {"batch_input": [{}]}),
        ("batch_output", {"batch_output": [{}]}),
        ("input.allow_ragged_batch", {"input": [INPUT | {"allow_ragged_batch": True}]}),
        ("is_shape_tensor", {"output": [INPUT | {"is_shape_tensor": True}]}),
        ("is_non_linear_format_io", {"input": [INPUT | {"is_non_linear_format_io": True}]}),
        ("model_transaction_policy.decoupled", {"model_transaction_policy": {"decoupled": True}}),
        ("model_operations", {"model_operations": {"op_library_filename": ["x.so"]}}),
        ("model_repository_agents", {"model_repository_agents": {"agents": [{}]}}),
        ("instance_group.passive", {"instance_group": [{"passive": True}]}),
    ],
)
def test_a_field_that_would_change_answers_is_refused(key: str, fields: dict[str, Any]) -> None:
    refused, warnings = look(**fields)
    assert [one.split(":")[0] for one in refused] == [key]
    assert warnings == ()


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("dynamic_batching.priority_levels", {"dynamic_batching": {"priority_levels": 2}}),
        ("dynamic_batching.priority_queue_policy", {"dynamic_batching": {"priority_queue_policy": {1: {}}}}),
        ("response_cache.enable", {"response_cache": {"enable": True}}),
        ("runtime", {"runtime": "x"}),
        ("cc_model_filenames", {"cc_model_filenames": {"7.5": "a.plan"}}),
        ("metric_tags", {"metric_tags": {"team": "a"}}),
        ("model_metrics", {"model_metrics": {"metric_control": [{}]}}),
        ("instance_group.rate_limiter", {"instance_group": [{"rate_limiter": {"priority": 2}}]}),
        ("instance_group.host_policy", {"instance_group": [{"host_policy": "p"}]}),
        ("instance_group.profile", {"instance_group": [{"profile": ["1"]}]}),
        ("instance_group.secondary_devices", {"instance_group": [{"secondary_devices": [{}]}]}),
        ("optimization.priority", {"optimization": {"priority": "PRIORITY_MAX"}}),
        ("optimization.cuda", {"optimization": {"cuda": {"graphs": True}}}),
        ("optimization.input_pinned_memory", {"optimization": {"input_pinned_memory": {"enable": False}}}),
        ("optimization.output_pinned_memory", {"optimization": {"output_pinned_memory": {"enable": False}}}),
        ("optimization.gather_kernel_buffer_threshold", {"optimization": {"gather_kernel_buffer_threshold": 1}}),
        ("optimization.eager_batching", {"optimization": {"eager_batching": True}}),
    ],
)
def test_a_field_that_only_costs_speed_is_warned_about(key: str, fields: dict[str, Any]) -> None:
    refused, warnings = look(**fields)
    assert refused == ()
    assert [one.split(" is ignored: ")[0] for one in warnings] == [key]


def test_defaults_that_are_written_out_raise_no_objection() -> None:
    assert look(
        runtime="",
        metric_tags={},
        batch_input=[],
        model_transaction_policy={"decoupled": False},
        response_cache={"enable": False},
        optimization={"input_pinned_memory": {"enable": True}, "eager_batching": False, "cuda": {}},
        instance_group=[{"host_policy": "", "profile": [], "passive": False, "rate_limiter": {}}],
        dynamic_batching={"priority_levels": 0},
    ) == ((), ())
