"""The `input` and `output` entries of a model configuration. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .part import DataTypeName, Dim, Flag, Natural, Part, PathText


class Reshape(Part):
    """What the model itself sees instead of `dims`."""

    shape: tuple[Dim, ...] = Field(
        default=(), description="Shape the framework gets, batch dimension excluded; may be []."
    )


class TensorConfig(Part):
    """What inputs and outputs have in common."""

    nullable: ClassVar[frozenset[str]] = frozenset({"batch_axis"})

    name: str = Field(min_length=1, description="Name of the tensor, as the model spells it.")
    data_type: DataTypeName = Field(
        default="", description="TYPE_FP32, TYPE_INT64, TYPE_STRING, ...; the model's when absent."
    )
    dims: tuple[Dim, ...] | None = Field(
        default=None,
        description="Shape a client sends, -1 for any size; without the batch dimension if max_batch_size > 0.",
    )
    reshape: Reshape | None = Field(default=None, description="Shape the model sees instead of dims.")
    is_shape_tensor: Flag = Field(default=False, description="TensorRT shape tensor; refused in this release.")
    is_non_linear_format_io: Flag = Field(
        default=False, description="TensorRT non-linear format; refused in this release."
    )
    batch_axis: Natural | None = Field(
        default=0, description="Axis along which requests are joined, batch included; null: this tensor is not batched."
    )

    @model_validator(mode="after")
    def _reshape_agrees(self) -> TensorConfig:
        if self.reshape is None:
            return self
        if self.wrote("batch_axis") and self.batch_axis != 0:
            raise PydanticCustomError("reshape", "reshape works only with batch_axis 0")
        if self.dims is not None and not _same_elements(self.dims, self.reshape.shape):
            raise PydanticCustomError(
                "reshape",
                "dims {dims} and reshape.shape {shape} do not hold the same number of elements",
                {"dims": str(list(self.dims)), "shape": str(list(self.reshape.shape))},
            )
        return self


class InputConfig(TensorConfig):
    """One entry of `input`."""

    format: Literal["FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"] = Field(
        default="FORMAT_NONE", description="Layout of an image input; checked (three dims), never converted."
    )
    allow_ragged_batch: Flag = Field(default=False, description="Ragged batching; refused in this release.")
    optional: Flag = Field(default=False, description="Requests may leave this input out.")

    @model_validator(mode="after")
    def _format_has_three_dims(self) -> InputConfig:
        if self.format != "FORMAT_NONE" and self.dims is not None and len(self.dims) != 3:
            raise PydanticCustomError("format", "{f} needs three dims", {"f": self.format})
        return self


class OutputConfig(TensorConfig):
    """One entry of `output`."""

    label_filename: PathText = Field(
        default="", description="File of class names, one a line, inside the model's folder."
    )


def _same_elements(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Triton's rule: as many free dimensions, and equal products before, between and after them."""
    return _products(dims) == _products(shape)


def _products(dims: tuple[int, ...]) -> list[int]:
    products = [1]
    for dim in dims:
        if dim == -1:
            products.append(1)
        else:
            products[-1] *= dim
    return products
