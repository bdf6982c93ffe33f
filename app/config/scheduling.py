"""The `dynamic_batching` block and its queue policy. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .part import ENTRIES, Flag, Natural, Part, Positive


class QueuePolicyConfig(Part):
    """How long and how many requests may wait."""

    timeout_action: Literal["REJECT", "DELAY"] = Field(
        default="REJECT", description="REJECT answers an expired request with 503; DELAY serves it after all others."
    )
    default_timeout_microseconds: Natural = Field(default=0, description="Longest wait in the queue; 0 means no limit.")
    allow_timeout_override: Flag = Field(
        default=False, description="A request's `timeout` parameter may shorten the wait."
    )
    max_queue_size: Natural = Field(
        default=0, description="Requests that may wait; 0 takes the top-level max_queue_size, else the server's."
    )


class DynamicBatching(Part):
    """How requests are merged; the word `off` in place of the block turns merging off."""

    enabled: Flag = Field(
        default=True, description="False is what the word `off` stands for: requests are never merged."
    )
    preferred_batch_size: tuple[Positive, ...] = Field(default=(), description="Sizes a batch is cut to when it can.")
    max_queue_delay_microseconds: Natural = Field(
        default=0, description="How long the oldest request may wait for company; 0 never waits."
    )
    preserve_ordering: Flag = Field(default=False, description="Answers leave in the order the requests came.")
    priority_levels: Natural = Field(default=0, description="Priority levels; ignored with a warning in this release.")
    default_priority_level: Natural = Field(
        default=0, description="Level of requests that name none; see priority_levels."
    )
    default_queue_policy: QueuePolicyConfig = Field(
        default=QueuePolicyConfig(), description="Bounds on waiting in the queue."
    )
    priority_queue_policy: Annotated[dict[int, QueuePolicyConfig], ENTRIES] = Field(
        default_factory=dict, description="Queue policy per priority level; ignored with a warning in this release."
    )


def _off_word(value: Any) -> Any:
    # YAML 1.1 reads a bare off as False and a bare on as True.
    if value is False or (isinstance(value, str) and value.lower() == "off"):
        return {"enabled": False}
    if value is True or (isinstance(value, str) and value.lower() == "on"):
        return {}
    return value


DynamicBatchingField = Annotated[
    DynamicBatching | None,
    BeforeValidator(_off_word, json_schema_input_type=DynamicBatching | Literal["off", "on"] | bool),
]
