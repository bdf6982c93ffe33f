"""`ModelConfig`: everything that can be written about a model. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .part import ENTRIES, Flag, Natural, Number, Part, PathText, Positive, TextMap
from .placement import InstanceGroup, Optimization
from .scheduling import DynamicBatching, DynamicBatchingField
from .tensor import InputConfig, OutputConfig
from .version_policy import VersionPolicy
from .warmup import WarmupSample

# Triton's `platform` words to the backends that run them.
PLATFORM_BACKENDS = {
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorflow_savedmodel": "tensorflow",
    "tensorflow_graphdef": "tensorflow",
    "tensorrt_plan": "tensorrt",
    "python": "python",
}


class TransactionPolicy(Part):
    """How many answers a request gets."""

    decoupled: Flag = Field(default=False, description="Any number of answers per request; refused in this release.")


class ResponseCache(Part):
    """Cached answers."""

    enable: Flag = Field(default=False, description="Cache answers; ignored with a warning in this release.")


class ModelConfig(Part):
    """The configuration of one model, in Triton's field names plus KernelPort's own."""

    name: str = Field(default="", description="Name of the model; must equal the folder's name when given.")
    platform: str = Field(default="", description="Triton's older word for the backend, for example onnxruntime_onnx.")
    backend: str = Field(default="", description="Backend that runs the model; found by the file's name when absent.")
    runtime: str = Field(default="", description="Backend library to use; ignored with a warning in this release.")
    version_policy: VersionPolicy | None = Field(
        default=None, description="Versions to serve; the latest one if absent."
    )
    max_batch_size: Natural = Field(
        default=0, description="Most rows of one batch; 0: no batch dimension. Found out from the model when absent."
    )
    input: tuple[InputConfig, ...] = Field(default=(), description="Inputs; read from the model where absent.")
    output: tuple[OutputConfig, ...] = Field(default=(), description="Outputs; read from the model where absent.")
    batch_input: tuple[dict[str, Any], ...] = Field(default=(), description="Ragged batching; refused in this release.")
    batch_output: tuple[dict[str, Any], ...] = Field(
        default=(), description="Ragged batching; refused in this release."
    )
    optimization: Optimization = Field(default=Optimization(), description="Accelerators and graph optimisation.")
    dynamic_batching: DynamicBatchingField = Field(
        default=None, description="How requests are merged: a block, {} for the defaults, or the word off."
    )
    sequence_batching: dict[str, Any] | None = Field(
        default=None, description="Stateful models; refused in this release."
    )
    ensemble_scheduling: dict[str, Any] | None = Field(default=None, description="Ensembles; refused in this release.")
    instance_group: tuple[InstanceGroup, ...] = Field(default=(), description="How many instances run, and where.")
    default_model_filename: PathText = Field(default="", description="The model's file inside a version folder.")
    cc_model_filenames: TextMap = Field(
        default_factory=dict, description="File per GPU generation; ignored with a warning in this release."
    )
    metric_tags: TextMap = Field(
        default_factory=dict, description="Extra metric labels; ignored with a warning in this release."
    )
    parameters: TextMap = Field(default_factory=dict, description="The backend's parameters, every value a string.")
    model_warmup: tuple[WarmupSample, ...] = Field(
        default=(), description="Requests that run before the model is ready."
    )
    model_operations: dict[str, Any] = Field(
        default_factory=dict, description="Custom operator libraries; refused in this release."
    )
    model_transaction_policy: TransactionPolicy | None = Field(
        default=None, description="How many answers a request gets."
    )
    model_repository_agents: dict[str, Any] = Field(
        default_factory=dict, description="Repository agents; refused in this release."
    )
    response_cache: ResponseCache | None = Field(default=None, description="Cached answers; ignored with a warning.")
    model_metrics: dict[str, Any] = Field(default_factory=dict, description="Metric options; ignored with a warning.")

    max_queue_size: Positive | None = Field(
        default=None, description="Requests that may wait, with or without dynamic_batching; the server's when absent."
    )
    allowed_batch_sizes: tuple[Positive, ...] = Field(
        default=(), description="Ascending sizes a batch is padded up to; the last one is max_batch_size."
    )
    shape_buckets: dict[str, Annotated[dict[Natural, tuple[Positive, ...]], ENTRIES]] = Field(
        default_factory=dict,
        description="Per input and axis (batch included): ascending sizes that dimension is padded up to.",
    )
    pad_value: Number = Field(default=0.0, description="Value of padding made for shape_buckets.")
    split_oversized: Flag = Field(
        default=False, description="Split a request over max_batch_size instead of refusing it."
    )
    json_nonfinite: Literal["null", "literal"] = Field(
        default="null", description="NaN and infinities in JSON answers: null, or Triton's bare tokens."
    )
    backend_options: dict[str, Any] = Field(default_factory=dict, description="The backend's own options, typed.")

    @model_validator(mode="after")
    def _names_are_unique(self) -> ModelConfig:
        for kind, entries in (("input", self.input), ("output", self.output)):
            for name, times in Counter(one.name for one in entries).items():
                if times > 1:
                    raise PydanticCustomError(
                        "duplicate_name", "{kind} {name} is listed twice", {"kind": kind, "name": repr(name)}
                    )
        return self

    @model_validator(mode="after")
    def _one_scheduler(self) -> ModelConfig:
        chosen = [
            name
            for name in ("dynamic_batching", "sequence_batching", "ensemble_scheduling")
            if getattr(self, name) is not None
        ]
        if len(chosen) > 1:
            raise PydanticCustomError("scheduler", "{names} exclude each other", {"names": " and ".join(chosen)})
        return self

    @model_validator(mode="after")
    def _backend_and_platform_agree(self) -> ModelConfig:
        implied = PLATFORM_BACKENDS.get(self.platform)
        if implied is not None and self.backend not in ("", implied):
            raise PydanticCustomError(
                "platform",
                "platform {platform} means backend {implied}, but backend is {backend}; remove one of them",
                {"platform": repr(self.platform), "implied": repr(implied), "backend": repr(self.backend)},
            )
        return self

    @model_validator(mode="after")
    def _sizes_ascend(self) -> ModelConfig:
        lists = {"allowed_batch_sizes": self.allowed_batch_sizes}
        for name, axes in self.shape_buckets.items():
            lists |= {f"shape_buckets.{name}.{axis}": sizes for axis, sizes in axes.items()}
        for key, sizes in lists.items():
            if any(one >= two for one, two in pairwise(sizes)):
                raise PydanticCustomError("ascending", "{key} must ascend", {"key": key})
        largest = self.allowed_batch_sizes[-1] if self.allowed_batch_sizes else self.max_batch_size
        if self.wrote("max_batch_size") and largest != self.max_batch_size:
            raise PydanticCustomError(
                "allowed_batch_sizes",
                "the last of allowed_batch_sizes is {last}, but max_batch_size is {maximum}; make them equal",
                {"last": largest, "maximum": self.max_batch_size},
            )
        return self

    @property
    def backend_name(self) -> str:
        """The backend asked for, by `backend` or `platform`; empty when the file's name decides."""
        return self.backend or PLATFORM_BACKENDS.get(self.platform, self.platform)

    @property
    def written_max_batch_size(self) -> int | None:
        """`max_batch_size` if the user wrote one, or implied one by `allowed_batch_sizes`."""
        if self.wrote("max_batch_size"):
            return self.max_batch_size
        return self.allowed_batch_sizes[-1] if self.allowed_batch_sizes else None

    @property
    def is_batching_off(self) -> bool:
        """True if the user turned merging off with the word `off`."""
        return self.dynamic_batching is not None and not self.dynamic_batching.enabled

    @property
    def batching(self) -> DynamicBatching | None:
        """The `dynamic_batching` block, None when absent or off."""
        return None if self.is_batching_off else self.dynamic_batching
