"""The slow parser: what it takes beyond JSON, and what it refuses beyond the standard library."""

import math

import pytest
from kernelport.core.errors import MalformedBody
from kernelport.protocol.json_strict import parse_strict
from kernelport.protocol.limits import DECODE_DEFAULTS, DecodeLimits


def test_tokens_for_non_finite_numbers_are_taken() -> None:
    values = parse_strict(b"[NaN,Infinity,-Infinity]", DECODE_DEFAULTS)
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[1,]", b"{'a':1}", b"nan", b"[inf]", b"[+1]", b"[01]", b"[1.]", b"[.5]", b"[0x1]", b"1 2",
        b'"\x01"', b"[1e400]", b"[-1e400]", b'{"a":"\\ud800"}', b'{"\\udc00":1}', b"\xff", b'{"\xff":1}',
        b'{"a":"\xff"}',         b"[" + b"9" * 500 + b"]", b"[1e999999999999]", b"/**/1",
        "{}".encode("utf-16"), b"\xef\xbb\xbf\xef\xbb\xbf1",
    ],
)  # fmt: skip
def test_everything_else_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedBody):
        parse_strict(text, DECODE_DEFAULTS)


def test_the_first_of_duplicate_members_counts() -> None:
    assert parse_strict(b'{"a":1,"a":2,"b":{"c":3,"c":4}}', DECODE_DEFAULTS) == {"a": 1, "b": {"c": 3}}


def test_a_byte_order_mark_is_skipped_once() -> None:
    assert parse_strict(b"\xef\xbb\xbf[1]", DECODE_DEFAULTS) == [1]


def test_invalid_utf8_in_arrays_can_be_turned_back_into_bytes() -> None:
    (text,) = parse_strict(b'["a\xff\xc3"]', DECODE_DEFAULTS)
    assert text.encode("utf-8", "surrogateescape") == b"a\xff\xc3"


def test_an_escaped_surrogate_cannot_pose_as_an_invalid_byte() -> None:
    assert parse_strict(b'["\xff\\ud83d\\ude00"]', DECODE_DEFAULTS) == ["\udcff\U0001f600"]
    with pytest.raises(MalformedBody, match="surrogate"):
        parse_strict(b'["\xff\\udcff"]', DECODE_DEFAULTS)


def test_the_depth_limit_is_exact() -> None:
    limits = DecodeLimits(json_depth=20)
    assert parse_strict(b"[" * 20 + b"]" * 20, limits) is not None
    with pytest.raises(MalformedBody, match="21 levels deep, this server takes at most 20"):
        parse_strict(b"[" * 21 + b"]" * 21, limits)


def test_integers_of_any_useful_size_are_exact() -> None:
    assert parse_strict(b"[18446744073709551616,-9007199254740993]", DECODE_DEFAULTS) == [2**64, -9007199254740993]


def test_a_limit_beyond_the_interpreters_own_is_no_crash() -> None:
    with pytest.raises(MalformedBody, match="levels deep"):
        parse_strict(b"[" * 300_000 + b"]" * 300_000, DecodeLimits(json_depth=1_000_000))
