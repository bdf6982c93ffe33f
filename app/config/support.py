"""Known fields that are not honoured: refused if answers would differ, else warned about. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .model import ModelConfig


@dataclass(slots=True, frozen=True)
class Review:
    """What of a configuration this release cannot do: reasons to refuse it, and warnings."""

    refused: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class _Rule:
    key: str
    is_asked: Callable[[ModelConfig], bool]
    reason: str


_REFUSED: tuple[_Rule, ...] = (
    _Rule(
        "sequence_batching",
        lambda c: c.sequence_batching is not None,
        "requests of a sequence would lose their state; serve the state as ordinary inputs and outputs instead",
    ),
    _Rule(
        "ensemble_scheduling",
        lambda c: c.ensemble_scheduling is not None or c.platform == "ensemble",
        "ensembles are not there yet; call the member models one after the other",
    ),
    _Rule("batch_input", lambda c: bool(c.batch_input), "ragged batching is not there yet"),
    _Rule("batch_output", lambda c: bool(c.batch_output), "ragged batching is not there yet"),
    _Rule(
        "input.allow_ragged_batch",
        lambda c: any(one.allow_ragged_batch for one in c.input),
        "ragged batching is not there yet; remove it and use shape_buckets",
    ),
    _Rule(
        "is_shape_tensor",
        lambda c: any(one.is_shape_tensor for one in (*c.input, *c.output)),
        "shape tensors are not there yet",
    ),
    _Rule(
        "is_non_linear_format_io",
        lambda c: any(one.is_non_linear_format_io for one in (*c.input, *c.output)),
        "only linear tensor formats are served",
    ),
    _Rule(
        "model_transaction_policy.decoupled",
        lambda c: c.model_transaction_policy is not None and c.model_transaction_policy.decoupled,
        "each request gets exactly one answer in this release",
    ),
    _Rule("model_operations", lambda c: any(c.model_operations.values()), "custom operator libraries are not loaded"),
    _Rule("model_repository_agents", lambda c: any(c.model_repository_agents.values()), "agents do not run"),
    _Rule("instance_group.passive", lambda c: any(one.passive for one in c.instance_group), "remove the passive group"),
)

_WARNED: tuple[_Rule, ...] = (
    _Rule(
        "dynamic_batching.priority_levels",
        lambda c: c.batching is not None and c.batching.priority_levels > 0,
        "all requests have the same priority in this release, default_queue_policy holds for each",
    ),
    _Rule(
        "dynamic_batching.priority_queue_policy",
        lambda c: c.batching is not None and bool(c.batching.priority_queue_policy),
        "default_queue_policy holds for every request",
    ),
    _Rule(
        "response_cache.enable",
        lambda c: c.response_cache is not None and c.response_cache.enable,
        "answers are not cached in this release",
    ),
    _Rule("runtime", lambda c: bool(c.runtime), "the backend's own runtime is used"),
    _Rule("cc_model_filenames", lambda c: bool(c.cc_model_filenames), "default_model_filename is used on every GPU"),
    _Rule("metric_tags", lambda c: bool(c.metric_tags), "metrics carry no extra labels"),
    _Rule("model_metrics", lambda c: any(c.model_metrics.values()), "metrics keep their own buckets"),
    _Rule(
        "instance_group.rate_limiter",
        lambda c: any(any(one.rate_limiter.values()) for one in c.instance_group),
        "there is no rate limiter; instance counts are the only bound",
    ),
    _Rule("instance_group.host_policy", lambda c: any(one.host_policy for one in c.instance_group), "it has no effect"),
    _Rule("instance_group.profile", lambda c: any(one.profile for one in c.instance_group), "it has no effect"),
    _Rule(
        "instance_group.secondary_devices",
        lambda c: any(one.secondary_devices for one in c.instance_group),
        "it has no effect",
    ),
    _Rule("optimization.priority", lambda c: c.optimization.priority != "PRIORITY_DEFAULT", "all models are equal"),
    _Rule(
        "optimization.cuda",
        lambda c: (
            c.optimization.cuda is not None
            and any(
                (
                    c.optimization.cuda.graphs,
                    c.optimization.cuda.busy_wait_events,
                    c.optimization.cuda.graph_spec,
                    c.optimization.cuda.output_copy_stream,
                )
            )
        ),
        "it has no effect; options of the CUDA provider go into parameters",
    ),
    _Rule(
        "optimization.input_pinned_memory", lambda c: not c.optimization.input_pinned_memory.enable, "it has no effect"
    ),
    _Rule(
        "optimization.output_pinned_memory",
        lambda c: not c.optimization.output_pinned_memory.enable,
        "it has no effect",
    ),
    _Rule(
        "optimization.gather_kernel_buffer_threshold",
        lambda c: c.optimization.gather_kernel_buffer_threshold > 0,
        "it has no effect",
    ),
    _Rule("optimization.eager_batching", lambda c: c.optimization.eager_batching, "it has no effect"),
)


def review(config: ModelConfig) -> Review:
    """What of `config` this release refuses, and what it ignores with a warning."""
    return Review(
        tuple(f"{rule.key}: not supported: {rule.reason}" for rule in _REFUSED if rule.is_asked(config)),
        tuple(f"{rule.key} is ignored: {rule.reason}" for rule in _WARNED if rule.is_asked(config)),
    )
