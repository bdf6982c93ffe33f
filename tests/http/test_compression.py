"""Bounded inflating, the choice of a coding, and round trips."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.core.errors import MalformedBody, PayloadTooLarge, UnsupportedEncoding
from kernelport.http.compression import Inflater, choose_coding, compress, is_identity

CODINGS = st.sampled_from([b"gzip", b"deflate"])


@given(st.lists(st.binary(max_size=2000), max_size=5), CODINGS, st.integers(1, 300))
def test_inflating_in_any_steps_gives_what_was_compressed(parts: list[bytes], coding: bytes, step: int) -> None:
    inflater = Inflater(coding, compress(parts, coding), 20_000)
    while not inflater.step(step):
        pass
    assert bytes(inflater.output) == b"".join(parts)


@given(st.binary(max_size=300), CODINGS)
def test_anything_else_is_refused_as_malformed(junk: bytes, coding: bytes) -> None:
    inflater = Inflater(coding, junk, 20_000)
    try:
        inflater.run()
    except MalformedBody:
        return
    assert zlib.decompress(junk, 31 if coding == b"gzip" else 15) == bytes(inflater.output)


@given(st.binary(min_size=1, max_size=2000), CODINGS, st.data())
def test_a_cut_stream_is_malformed(content: bytes, coding: bytes, data: st.DataObject) -> None:
    whole = compress([content], coding)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedBody):
        Inflater(coding, whole[:cut], 20_000).run()


@pytest.mark.parametrize("size", [1000, 1001])
def test_the_limit_is_exact(size: int) -> None:
    inflater = Inflater(b"gzip", gzip.compress(bytes(size)), 1000)
    if size <= 1000:
        assert len(inflater.run()) == size
    else:
        with pytest.raises(PayloadTooLarge, match="max_request_bytes = 1000"):
            inflater.run()


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    inflater = Inflater(b"gzip", gzip.compress(bytes(50 << 20)), 1 << 20)
    with pytest.raises(PayloadTooLarge):
        inflater.run()
    assert len(inflater.output) <= (1 << 20) + 1


@pytest.mark.parametrize("tail", [b"x", b"\0" * 10, gzip.compress(b"second")])
def test_bytes_behind_the_stream_are_refused(tail: bytes) -> None:
    with pytest.raises(MalformedBody, match="after the end"):
        Inflater(b"gzip", gzip.compress(b"first") + tail, 1000).run()


def test_long_streams_with_a_tail_beyond_the_first_piece_are_refused() -> None:
    content = bytes(range(256)) * 2000
    whole = zlib.compress(content, 0)
    assert bytes(Inflater(b"deflate", whole, 1 << 20).run()) == content
    with pytest.raises(MalformedBody, match="after the end"):
        Inflater(b"deflate", whole + bytes(200_000), 1 << 20).run()


def test_known_encodings() -> None:
    assert is_identity(b"identity")
    assert not is_identity(b"gzip")
    for unknown in (b"br", b"GZIP", b"x-gzip", b"gzip, deflate"):
        with pytest.raises(UnsupportedEncoding):
            is_identity(unknown)


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        (b"gzip, deflate, br", b"gzip"),
        (b"deflate, gzip", b"deflate"),
        (b"gzip;q=0.5, deflate;q=0.8", b"deflate"),
        (b"identity, gzip", b""),
        (b"gzip;q=0", b""),
        (b"gzip;q=0.000, deflate", b"deflate"),
        (b"*", b""),
        (b"br, zstd", b""),
        (b"", b""),
        (b"GZIP", b""),
        (b"gzip;q=nonsense", b""),
        (b"gzip;q=.", b""),
        (b"gzip;q=1.5.1, deflate;q=0.1", b"deflate"),
        (b"gzip ; q=0.5", b""),
        (b"gzip; q=0.5", b"gzip"),
        (b",,gzip,", b"gzip"),
        (b"\xff\xfe", b""),
    ],
)
def test_the_best_known_coding_is_chosen(accepted: bytes, chosen: bytes) -> None:
    assert choose_coding(accepted) == chosen


@given(st.binary(max_size=60))
def test_any_accept_encoding_is_survived(accepted: bytes) -> None:
    assert choose_coding(accepted) in (b"", b"gzip", b"deflate")
