"""Request parameters: the server's and the model's."""

from typing import Any

import pytest
import simdjson
from kernelport.core.errors import MalformedBody, Unsupported
from kernelport.core.request import InferenceRequest
from kernelport.protocol.parameters import decode_parameters


def _decode(members: Any) -> InferenceRequest:
    request = InferenceRequest({})
    decode_parameters(members, request)
    return request


def test_own_parameters_reach_the_model() -> None:
    own = {"s": "x", "i": 7, "d": 1.5, "b": True, "headers": "h", "": 1, "timing": True}
    assert _decode(own).parameters == own


def test_reserved_parameters_become_attributes() -> None:
    request = _decode({"binary_data_output": True, "priority": 2**64 - 1, "timeout": 500})
    assert (request.binary_output, request.priority, request.timeout_us) == (True, 2**64 - 1, 500)
    assert request.parameters == {}


def test_sequence_parameters_are_passed_along() -> None:
    for sequence_id in (0, 5, "", "abc", "x" * 128):
        members = {"sequence_id": sequence_id, "sequence_start": True, "sequence_end": False}
        assert _decode(members).parameters == members


def test_a_sequence_id_that_is_too_long_is_not_supported() -> None:
    with pytest.raises(Unsupported, match="129 characters"):
        _decode({"sequence_id": "x" * 129})


@pytest.mark.parametrize("value", [None, {}, [1], []])
def test_parameters_are_plain_values(value: Any) -> None:
    with pytest.raises(MalformedBody, match="parameter 'a' must be a string, a number, true or false"):
        _decode({"a": value})


@pytest.mark.parametrize("members", [None, [1], 1, "x", True])
def test_parameters_themselves_are_an_object(members: Any) -> None:
    with pytest.raises(MalformedBody, match="parameters must be an object"):
        _decode(members)


@pytest.mark.parametrize("name", ["timeout", "priority"])
@pytest.mark.parametrize("value", ["5", 1.5, -1, True, None, 2**64, [1]])
def test_timeout_and_priority_are_unsigned_integers(name: str, value: Any) -> None:
    with pytest.raises(MalformedBody, match=f"parameter '{name}' must be a non-negative integer"):
        _decode({name: value})


@pytest.mark.parametrize("name", ["binary_data_output", "sequence_start", "sequence_end"])
@pytest.mark.parametrize("value", ["true", 1, 0, None])
def test_flags_are_booleans(name: str, value: Any) -> None:
    with pytest.raises(MalformedBody, match=f"parameter '{name}' must be true or false"):
        _decode({name: value})


@pytest.mark.parametrize("value", [-5, 1.5, None, True, 2**64])
def test_a_sequence_id_is_unsigned_or_a_string(value: Any) -> None:
    with pytest.raises(MalformedBody, match="sequence_id"):
        _decode({"sequence_id": value})


def test_names_for_triton_itself_are_reserved() -> None:
    with pytest.raises(MalformedBody, match="'triton_"):
        _decode({"triton_enable_empty_final_response": True})


def test_integers_beyond_64_bits_become_floats() -> None:
    assert _decode({"a": 2**63}).parameters == {"a": float(2**63)}
    assert _decode({"a": -(2**63)}).parameters == {"a": -(2**63)}
    with pytest.raises(MalformedBody, match="beyond the range"):
        _decode({"a": 10**399})


def test_a_name_with_a_nul_is_a_name_and_of_duplicates_the_first_counts() -> None:
    document = simdjson.Parser().parse(b'{"a\\u0000b":1,"c":2,"c":3}')
    assert _decode(document).parameters == {"a\0b": 1, "c": 2}
