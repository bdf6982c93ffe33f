"""The `instance_group` and `optimization` blocks. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .part import Flag, Int, Natural, Part, Positive, TextMap


class InstanceGroup(Part):
    """How many batches of the model may run at once, and where."""

    name: str = Field(default="", description="Name of the group; made from the model's name when absent.")
    kind: Literal["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"] = Field(
        default="KIND_AUTO", description="Where instances run; KIND_AUTO is a GPU when there is one, else the CPU."
    )
    count: Positive = Field(default=1, description="Instances; for KIND_GPU per GPU.")
    gpus: tuple[Natural, ...] = Field(default=(), description="Indices of the GPUs; all of them when empty.")
    rate_limiter: dict[str, Any] = Field(
        default_factory=dict, description="Rate limiter; ignored with a warning in this release."
    )
    secondary_devices: tuple[dict[str, Any], ...] = Field(
        default=(), description="Secondary devices; ignored with a warning in this release."
    )
    profile: tuple[str, ...] = Field(
        default=(), description="TensorRT profiles; ignored with a warning in this release."
    )
    passive: Flag = Field(default=False, description="An instance that is never scheduled; refused in this release.")
    host_policy: str = Field(default="", description="NUMA host policy; ignored with a warning in this release.")


class AcceleratorConfig(Part):
    """One accelerator of the framework."""

    name: str = Field(min_length=1, description="Name, for example tensorrt.")
    parameters: TextMap = Field(default_factory=dict, description="The accelerator's options.")


class ExecutionAccelerators(Part):
    """Accelerators by the device they are for, strongest first."""

    gpu_execution_accelerator: tuple[AcceleratorConfig, ...] = Field(default=(), description="For instances on a GPU.")
    cpu_execution_accelerator: tuple[AcceleratorConfig, ...] = Field(
        default=(), description="For instances on the CPU."
    )


class Graph(Part):
    """Graph optimisation of the framework."""

    level: Int = Field(default=0, description="ONNX Runtime: -1 basic, 1 extended, 2 none, else all optimisations.")


class PinnedMemory(Part):
    """Use of pinned host memory."""

    enable: Flag = Field(default=True, description="Whether pinned memory is used.")


class Cuda(Part):
    """CUDA details; ignored with a warning in this release."""

    graphs: Flag = Field(default=False, description="Capture CUDA graphs.")
    busy_wait_events: Flag = Field(default=False, description="Spin on CUDA events.")
    graph_spec: tuple[dict[str, Any], ...] = Field(default=(), description="Graphs to capture.")
    output_copy_stream: Flag = Field(default=False, description="A stream of its own for output copies.")


class Optimization(Part):
    """What the framework may do to run faster."""

    graph: Graph | None = Field(default=None, description="Graph optimisation level.")
    priority: Literal["PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN"] = Field(
        default="PRIORITY_DEFAULT", description="Priority of the model; ignored with a warning in this release."
    )
    cuda: Cuda | None = Field(default=None, description="CUDA details; ignored with a warning in this release.")
    execution_accelerators: ExecutionAccelerators | None = Field(
        default=None, description="Accelerators of the framework."
    )
    input_pinned_memory: PinnedMemory = Field(
        default=PinnedMemory(), description="Pinned memory for inputs; false is ignored with a warning."
    )
    output_pinned_memory: PinnedMemory = Field(
        default=PinnedMemory(), description="Pinned memory for outputs; false is ignored with a warning."
    )
    gather_kernel_buffer_threshold: Natural = Field(default=0, description="Gather kernel; ignored with a warning.")
    eager_batching: Flag = Field(default=False, description="Eager batching; ignored with a warning.")
