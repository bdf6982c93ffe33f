"""Limits that the decoder can keep."""

import pytest
from kernelport.core.errors import ConfigError
from kernelport.protocol.limits import MAX_JSON_BYTES, DecodeLimits, EncodeLimits


def test_the_defaults_are_the_documented_ones() -> None:
    limits = DecodeLimits()
    assert (limits.max_json_bytes, limits.json_depth, limits.tensor_rank) == (16 * 2**20, 64, 16)
    assert EncodeLimits().max_response_bytes == 256 * 2**20


def test_json_beyond_what_the_parser_can_count_is_a_configuration_error() -> None:
    assert DecodeLimits(max_json_bytes=MAX_JSON_BYTES).max_json_bytes == MAX_JSON_BYTES
    with pytest.raises(ConfigError, match=str(MAX_JSON_BYTES)):
        DecodeLimits(max_json_bytes=MAX_JSON_BYTES + 1)
