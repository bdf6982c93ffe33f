"""Choosing between the two parsers, and keeping the fast one usable."""

import pytest
from kernelport.core.errors import MalformedBody, PayloadTooLarge
from kernelport.protocol.json_document import parse_document
from kernelport.protocol.limits import DECODE_DEFAULTS, DecodeLimits
from simdjson import Object


def test_ordinary_documents_stay_in_the_fast_parser() -> None:
    assert isinstance(parse_document(b'{"a":1}', DECODE_DEFAULTS), Object)


@pytest.mark.parametrize("text", [b'{"a":NaN}', b'{"a":["\xff"]}', b'{"a":123456789012345678901234567890}'])
def test_what_the_fast_parser_refuses_goes_to_the_slow_one(text: bytes) -> None:
    assert isinstance(parse_document(text, DECODE_DEFAULTS), dict)
    with pytest.raises(MalformedBody, match="only taken in JSON of less than 5 bytes"):
        parse_document(text, DecodeLimits(strict_json_bytes=5))


def test_a_document_kept_alive_does_not_block_the_next() -> None:
    kept = [parse_document(f'{{"a":[{number}]}}'.encode(), DECODE_DEFAULTS) for number in range(5)]
    assert [one["a"].as_list() for one in kept] == [[0], [1], [2], [3], [4]]
    with pytest.raises(MalformedBody):
        parse_document(b"{", DECODE_DEFAULTS)
    assert kept[4]["a"].as_list() == [4]


def test_big_documents_are_parsed_and_then_forgotten() -> None:
    document = parse_document(b'{"a":[' + b"1," * 200_000 + b"2]}", DECODE_DEFAULTS)
    assert len(document["a"]) == 200_001


def test_size_is_checked_before_parsing() -> None:
    with pytest.raises(PayloadTooLarge, match=r"12 bytes.*at most 10.*binary_data_size"):
        parse_document(b"{" * 12, DecodeLimits(max_json_bytes=10))


def test_an_empty_text_is_said_to_be_empty() -> None:
    with pytest.raises(MalformedBody, match="empty"):
        parse_document(b"", DECODE_DEFAULTS)
