"""The base of every block of a model configuration, and its value types. Runs on: anywhere (pure)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ..core.tensor import DATATYPES
from .paths import PLAIN_RELATIVE, is_plain_relative
from .suggest import did_you_mean


class Part(BaseModel):
    """A frozen block of configuration that refuses unknown and empty keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    nullable: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_and_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in data.items():
            if key not in known:
                hint = did_you_mean(str(key), known) or f"; known here: {', '.join(sorted(known))}"
                raise PydanticCustomError("unknown_key", "unknown key {key}{hint}", {"key": repr(key), "hint": hint})
            if value is None and key not in cls.nullable:
                raise PydanticCustomError(
                    "empty_key", "{key} is empty; give it a value or remove the line", {"key": repr(key)}
                )
        return data

    def wrote(self, field: str) -> bool:
        """True if the user gave this field a value, be it the default one."""
        return field in self.model_fields_set


def no_bool(value: Any) -> Any:
    """A number is never written as yes or no, though Python would count them as 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_expected", "a number is expected, not yes or no")
    return value


def _entries_to_map(value: Any) -> Any:
    """Protobuf's text spelling of a map, a list of {key, value}, to a mapping."""
    if not isinstance(value, list):
        return value
    result: dict[Any, Any] = {}
    for entry in value:
        if not isinstance(entry, dict) or set(entry) != {"key", "value"}:
            raise PydanticCustomError("map_expected", "a mapping is expected, or a list of key and value entries")
        if entry["key"] in result:
            raise PydanticCustomError("duplicate_key", "{key} is given twice", {"key": repr(entry["key"])})
        result[entry["key"]] = entry["value"]
    return result


def _plain_text(value: Any) -> Any:
    """A parameter value to text: Triton keeps every parameter as a string."""
    if isinstance(value, dict) and set(value) == {"string_value"}:
        value = value["string_value"]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _data_type(value: Any) -> Any:
    """`TYPE_FP32` as it is, `FP32` and `BYTES` to it; TYPE_INVALID is Triton's word for not given."""
    names = [one.config_name for one in DATATYPES.values()]
    if value in names or not isinstance(value, str):
        return value
    if value in ("", "TYPE_INVALID"):
        return ""
    wire = DATATYPES.get(value.upper().removeprefix("TYPE_"))
    if wire is None:
        raise PydanticCustomError(
            "data_type", "{value} is no data type{hint}", {"value": repr(value), "hint": did_you_mean(value, names)}
        )
    return wire.config_name


def _path_text(value: str) -> str:
    if value and not is_plain_relative(value):
        raise PydanticCustomError("path", "{value} must be {what}", {"value": repr(value), "what": PLAIN_RELATIVE})
    return value


Int = Annotated[int, BeforeValidator(no_bool)]
Natural = Annotated[int, Field(ge=0), BeforeValidator(no_bool)]
Positive = Annotated[int, Field(ge=1), BeforeValidator(no_bool)]
Dim = Annotated[int, Field(ge=-1), BeforeValidator(no_bool)]
Number = Annotated[float, BeforeValidator(no_bool)]
Flag = Annotated[bool, Field(strict=True)]
PathText = Annotated[str, AfterValidator(_path_text)]
DataTypeName = Annotated[str, BeforeValidator(_data_type)]
ENTRIES = BeforeValidator(_entries_to_map)
PlainText = Annotated[str, BeforeValidator(_plain_text, json_schema_input_type=str | int | float | bool)]
TextMap = Annotated[dict[str, PlainText], ENTRIES]
