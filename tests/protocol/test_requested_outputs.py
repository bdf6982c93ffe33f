"""The outputs that a request names."""

from typing import Any

import pytest
from kernelport.core.errors import InvalidRequest, MalformedBody
from kernelport.core.request import RequestedOutput
from kernelport.protocol.requested_outputs import decode_outputs


def test_outputs_are_read_in_the_order_of_the_request() -> None:
    entries = [
        {"name": "b", "parameters": {"binary_data": True}},
        {"name": "a"},
        {"name": "c", "parameters": {"binary_data": False, "classification": 3}},
    ]
    assert decode_outputs(entries) == (
        RequestedOutput("b", True),
        RequestedOutput("a"),
        RequestedOutput("c", False, 3),
    )


def test_an_empty_list_means_all_outputs() -> None:
    assert decode_outputs([]) is None


@pytest.mark.parametrize("parameters", [None, 1, "x", [], {}, {"foo": 1}])
def test_unknown_parameters_are_ignored(parameters: Any) -> None:
    assert decode_outputs([{"name": "a", "parameters": parameters}]) == (RequestedOutput("a"),)


@pytest.mark.parametrize("entries", [None, {}, "a", 1, ["a"], [{}], [{"name": 1}], [{"name": None}], [["a"]]])
def test_outputs_are_objects_with_a_name(entries: Any) -> None:
    with pytest.raises(MalformedBody):
        decode_outputs(entries)


@pytest.mark.parametrize("value", [1, "true", None])
def test_binary_data_is_a_boolean(value: Any) -> None:
    with pytest.raises(MalformedBody, match="output 'a': parameter 'binary_data'"):
        decode_outputs([{"name": "a", "parameters": {"binary_data": value}}])


@pytest.mark.parametrize("value", [-1, "2", 1.5, True, None])
def test_classification_is_an_unsigned_integer(value: Any) -> None:
    with pytest.raises(MalformedBody, match="output 'a': parameter 'classification'"):
        decode_outputs([{"name": "a", "parameters": {"classification": value}}])


def test_an_output_may_not_be_requested_twice() -> None:
    with pytest.raises(InvalidRequest, match="output 'a' is requested twice"):
        decode_outputs([{"name": "a"}, {"name": "a"}])
