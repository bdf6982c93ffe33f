"""The `model_warmup` block: samples that run before a model is ready. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .part import ENTRIES, DataTypeName, Flag, Natural, Part, PathText


class WarmupInput(Part):
    """Data of one input of a sample: exactly one of zero_data, random_data and input_data_file."""

    data_type: DataTypeName = Field(default="", description="Data type of the sample; the input's when absent.")
    dims: tuple[Natural, ...] = Field(default=(), description="Shape of one row, without the batch dimension.")
    zero_data: Flag = Field(default=False, description="All zeros.")
    random_data: Flag = Field(default=False, description="Random values; empty strings for TYPE_STRING.")
    input_data_file: PathText = Field(
        default="", description="Raw little-endian data in this file of the model's folder `warmup`."
    )

    @model_validator(mode="after")
    def _one_source(self) -> WarmupInput:
        if (self.zero_data, self.random_data, self.input_data_file != "").count(True) != 1:
            raise PydanticCustomError("warmup", "give exactly one of zero_data, random_data and input_data_file")
        return self


class WarmupSample(Part):
    """One request that runs before the model is ready."""

    name: str = Field(min_length=1, description="Name of the sample, for messages.")
    batch_size: Natural = Field(default=0, description="Rows of the sample; 0 for a model without batch dimension.")
    inputs: Annotated[dict[str, WarmupInput], ENTRIES] = Field(default_factory=dict, description="Data per input name.")
    count: Natural = Field(default=0, description="How often it runs; 0 means once.")
