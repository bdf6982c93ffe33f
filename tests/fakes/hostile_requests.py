"""What clients send that is malformed, smuggled, slow or oversized, and what may come back."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

GOOD = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}'
INFER = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
SIZE = b"POST /size HTTP/1.1\r\nHost: a\r\n"
NOWHERE = b"POST /nowhere HTTP/1.1\r\nHost: a\r\n"
LIVE = b"GET /live HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
GOOD_CHUNK = b"%x\r\n%b\r\n0\r\n" % (len(GOOD), GOOD)
LAST = b"GET /live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
CLOSED = frozenset[int]()
BAD = frozenset({400})


def sized(body: bytes, *fields: bytes) -> bytes:
    return b"".join((INFER, *(b"%b\r\n" % one for one in fields), b"Content-Length: %d\r\n\r\n" % len(body), body))


@dataclass
class Case:
    """Bytes to send, and the statuses that may come back; none at all means the connection is just closed.

    `pause_s` lies between the pieces. `stays` tells that the connection may live on.
    """

    name: str
    pieces: list[bytes]
    statuses: frozenset[int] = BAD
    stays: bool = False
    pause_s: float = 0.0


def one(name: str, data: bytes, statuses: set[int] | frozenset[int] = BAD, stays: bool = False) -> Case:
    return Case(name, [data], frozenset(statuses), stays)


def chunked(name: str, body: bytes, statuses: set[int] | frozenset[int] = BAD, stays: bool = False) -> Case:
    return one(name, INFER + CHUNKED + body, statuses, stays)


def at_path(name: str, path: bytes, statuses: set[int] | frozenset[int] = frozenset({404}), stays: bool = True) -> Case:
    return one(name, b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" % path, statuses, stays)


def upgrade(protocol: bytes) -> bytes:
    return b"Connection: upgrade\r\nUpgrade: %b\r\n" % protocol


def slow(name: str, *pieces: bytes, statuses: set[int] | frozenset[int] = frozenset({408})) -> Case:
    return Case(name, list(pieces), frozenset(statuses), pause_s=0.05)


REQUEST_LINES = [
    one("random bytes", b"\x00\xff\xfe\x01\r\n\r\n"),
    one("tls hello", bytes.fromhex("16030100a5010000a10303") + b"x" * 100),
    one("http2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    one("no version", b"GET /live\r\n\r\n"),
    one("version 9.9", b"GET /live HTTP/9.9\r\nHost: a\r\n\r\n"),
    one("version 2.0", b"GET /live HTTP/2.0\r\nHost: a\r\n\r\n"),
    one("version 0.9", b"GET /live HTTP/0.9\r\nHost: a\r\n\r\n"),
    one("infer over version 2.0", INFER.replace(b"1.1", b"2.0") + b"Content-Length: 0\r\n\r\n"),
    one("no protocol name", b"GET /live XTTP/1.1\r\nHost: a\r\n\r\n"),
    one("lower-case method", b"get /live HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("unknown method", b"BREW /live HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("space in the target", b"GET /li ve HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("nul in the target", b"GET /li\x00ve HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("raw utf-8 in the target", "GET /lïve HTTP/1.1\r\nHost: a\r\n\r\n".encode()),
    one("raw utf-8 in a model name", "POST /v2/models/é/infer HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode()),
    one("tabs", b"GET\t/live\tHTTP/1.1\r\nHost: a\r\n\r\n"),
    one("connect", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
    one("options star", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {400, 404}, stays=True),
    one("only a query", b"GET ?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", {400, 404}),
    one("empty authority", b"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", {400, 404}),
    one("port out of range", b"GET http://a:99999999/live HTTP/1.1\r\nHost: a\r\n\r\n", {400, 404}),
    one("target of 10 KB", b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {414}),
    one("target of 300 KB", b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {414, 431}),
    one("endless target", b"GET /" + b"a" * 300_000, {414, 431}),
    one("model name of 10 KB", b"POST /v2/models/" + b"a" * 10_000 + b"/infer HTTP/1.1\r\n\r\n", {414}),
    at_path("path up", b"/v2/models/../../etc/passwd/infer"),
    at_path("escaped path up", b"/v2/models/%2e%2e%2fetc/infer"),
    at_path("bad escape", b"/v2/models/%zz/infer"),
    at_path("escaped bad utf-8", b"/v2/models/%ff%fe/infer"),
    at_path("escaped nul", b"/v2/models/%00/infer"),
    at_path("escaped newline", b"/v2/models/a%0d%0ab/infer"),
    at_path("version of a mile", b"/v2/models/echo/versions/%b/infer" % (b"9" * 500)),
    at_path("version in other digits", b"/v2/models/echo/versions/%D9%A1/infer"),
]

HEADERS = [
    one("no colon", b"GET /live HTTP/1.1\r\nHost\r\n\r\n"),
    one("space before the colon", b"GET /live HTTP/1.1\r\nHost : a\r\n\r\n"),
    one("space before the first name", b"GET /live HTTP/1.1\r\n Host: a\r\n\r\n"),
    one("empty name", b"GET /live HTTP/1.1\r\n: a\r\n\r\n"),
    one("folded value", b"GET /live HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n", {200, 400}, stays=True),
    one("folded content-length", INFER + b"Content-Length:\r\n 5\r\n\r\nabcde"),
    one("nul in a value", b"GET /live HTTP/1.1\r\nHost: a\x00b\r\n\r\n"),
    one("bare cr in a value", b"GET /live HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"),
    one("bare lf line ends", b"GET /live HTTP/1.1\nHost: a\n\n", {200, 400}, stays=True),
    one("quote in a name", b'GET /live HTTP/1.1\r\n"Host": a\r\n\r\n'),
    one("two hosts", b"GET /live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    one("infer with two hosts", INFER + b"Host: b\r\nContent-Length: 0\r\n\r\n"),
    one("header of 100 KB", b"GET /live HTTP/1.1\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n", {431}),
    one("infer with a header of 100 KB", INFER + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n", {431}),
    one("endless header", b"GET /live HTTP/1.1\r\nX-A: " + b"a" * 400_000, {431}),
    one("endless header name", b"GET /live HTTP/1.1\r\n" + b"a" * 400_000, {400, 431}),
    one("1000 headers", INFER + b"".join(b"X-%d: 1\r\n" % at for at in range(1000)) + b"\r\n", {431}),
    one("20000 short headers", b"GET /live HTTP/1.1\r\n" + b"a:b\r\n" * 20_000 + b"\r\n", {431}),
    one("control bytes in the request id", sized(GOOD, b"X-Request-Id: a\x7f\x1bb"), {200, 400}, stays=True),
]

_BAD_LENGTHS = (
    *(b"-1", b"+5", b"0x5", b"5 5", b"5, 5", b"5,6", b"1e1", b"5;", b"five", b"9" * 30, b"18446744073709551621"),
)
LENGTHS = [
    *(one(f"content-length {value!r}", INFER + b"Content-Length: %b\r\n\r\nabcde" % value) for value in _BAD_LENGTHS),
    one("empty content-length", INFER + b"Content-Length:\r\n\r\n", {400}, stays=True),
    one("equal lengths", INFER + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde"),
    one("two lengths", INFER + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
    one("asgi two lengths", SIZE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
    one("length and chunked", INFER + b"Content-Length: 5\r\n" + CHUNKED + b"0\r\n\r\n"),
    one("chunked and length", INFER + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    one("cl.te", SIZE + b"Content-Length: 30\r\n" + CHUNKED + b"0\r\n\r\nGET /headers HTTP/1.1\r\n\r\n"),
    one("te.cl", SIZE + CHUNKED[:-2] + b"Content-Length: 4\r\n\r\n5c\r\nGET /x HTTP/1.1\r\n\r\n0\r\n\r\n"),
    one("body longer than its length", INFER + b"Content-Length: 2\r\n\r\n{}garbage", {400}),
    one("length of 10 GB", INFER + b"Content-Length: 10000000000\r\n\r\n", {413}),
    one("asgi length of 10 GB", SIZE + b"Content-Length: 10000000000\r\n\r\n", {413}),
    one("body over the limit", sized(b"x" * 2_000_000), {413}),
    one("expect a body over the limit", INFER + b"Expect: 100-continue\r\nContent-Length: 90000000\r\n\r\n", {413}),
]

_BAD_ENCODINGS = (
    *(b"gzip", b"chunked, gzip", b"xchunked", b"gzip, chunked", b"\x0bchunked", b"chunked, chunked", b"identity"),
    b'"chunked"',
)
_BAD_CHUNKS = (
    *(b"zz\r\n", b"-1\r\nx\r\n", b"0x5\r\nabcde\r\n", b"\r\nabc\r\n", b"5 \r\nabcde\r\n0\r\n\r\n"),
    *(b"5\nabcde\r\n0\r\n\r\n", b"fffffffffffffffff\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n"),
    *(b" 5\r\nabcde\r\n0\r\n\r\n", b"5\r\nabcde\n0\r\n\r\n"),
)
ENCODINGS = [
    *(one(f"coding {value!r}", INFER + b"Transfer-Encoding: %b\r\n\r\n0\r\n\r\n" % value) for value in _BAD_ENCODINGS),
    one("transfer-encoding twice", INFER + b"Transfer-Encoding: x\r\n" + CHUNKED + b"0\r\n\r\n"),
    one("spaced transfer-encoding", INFER + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    one("upper-case chunked", INFER + CHUNKED.upper() + GOOD_CHUNK + b"\r\n", {200}, stays=True),
    one("chunked over 1.0", INFER.replace(b"1.1", b"1.0") + CHUNKED + GOOD_CHUNK + b"\r\n", {200, 400}),
    one("asgi gzip, chunked", SIZE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    *(chunked(f"chunk {value[:12]!r}", value) for value in _BAD_CHUNKS),
    chunked("endless chunk extension", b"5;" + b"a" * 500_000, {400, 413}),
    chunked("endless trailers", b"0\r\n" + b"a: b\r\n" * 100_000, {400, 413, 431}),
    chunked("one endless trailer", b"0\r\na: " + b"b" * 500_000, {400, 413, 431}),
    one("asgi endless trailer", SIZE + CHUNKED + b"0\r\na: " + b"b" * 500_000, {400, 413, 431}),
    chunked("chunks over the limit", b"10000\r\n%b\r\n" % bytes(65536) * 40, {413}),
    one("asgi chunks over the limit", SIZE + CHUNKED + b"10000\r\n%b\r\n" % bytes(65536) * 40, {413}),
    chunked("smuggled by trailer", GOOD_CHUNK + b"Content-Length: 9\r\n\r\n", {200, 400}, stays=True),
]

BODIES = [
    one("nested without end", sized(b"[" * 100_000), {400}, stays=True),
    one("nested objects", sized(b'{"a":' * 50_000), {400}, stays=True),
    one("cut json", sized(GOOD[:-3]), {400}, stays=True),
    one("text behind the json", sized(GOOD + b"}"), {400}, stays=True),
    one("bad utf-8", sized(b'{"inputs":[{"name":"\xff\xfe"}]}'), {400}, stays=True),
    one("lone surrogate", sized(GOOD.replace(b'"x"', b'"\\ud800"')), {400}, stays=True),
    one("integer of 5000 digits", sized(GOOD.replace(b"4]}", b"9" * 5000 + b"]}")), {400}, stays=True),
    one("exponent of a million", sized(GOOD.replace(b"4]}", b"1e1000000]}")), {400}, stays=True),
    one("shape that overflows", sized(GOOD.replace(b"[1,4]", b"[4294967296,4294967297]")), {400}, stays=True),
    one("negative shape", sized(GOOD.replace(b"[1,4]", b"[-1,-4]")), {400}, stays=True),
    one("header length beyond the body", sized(GOOD, b"Inference-Header-Content-Length: 99999"), {400}, stays=True),
    one("two header lengths", sized(GOOD, *(b"Inference-Header-Content-Length: 74",) * 2), {400}, stays=True),
    one("gzip bomb", sized(gzip.compress(bytes(20 << 20)), b"Content-Encoding: gzip"), {413}, stays=True),
    one("cut gzip", sized(gzip.compress(GOOD)[:20], b"Content-Encoding: gzip"), {400}, stays=True),
]

SEQUENCES = [
    one("garbage behind a request", LIVE + b"\x00garbage\r\n\r\n", {200, 400}),
    one("garbage behind an inference", sized(GOOD) + b"\x00garbage\r\n\r\n", {200, 400}),
    one("5000 requests in one packet", LIVE * 5000, {200, 400}),
    one("5000 inferences in one packet", sized(GOOD) * 5000 + LAST, {200, 400}),
    one("requests behind a closing one", sized(GOOD, b"Connection: close") + sized(GOOD) * 10, {200}),
    one("10000 empty lines first", b"\r\n" * 10_000 + LIVE, {200, 400}, stays=True),
    one("websocket", LIVE[:-2] + upgrade(b"websocket") + b"Sec-WebSocket-Version: 13\r\n\r\n", {200}, stays=True),
    one("h2c with chunks", INFER + upgrade(b"h2c") + CHUNKED + GOOD_CHUNK + b"\r\n", {200}, stays=True),
    one("h2c and both lengths", INFER + upgrade(b"h2c") + b"Content-Length: 1\r\n" + CHUNKED + b"0\r\n\r\n"),
    one("500 upgrades in one packet", (LIVE[:-2] + upgrade(b"h2c") + b"\r\n") * 500, {200, 400}),
    one("expectation unknown", sized(GOOD, b"Expect: miracles"), {200, 417}, stays=True),
]

SLOW = [
    Case("nothing at all", [], CLOSED),
    Case("only empty lines", [b"\r\n"] * 20, CLOSED, pause_s=0.05),
    slow("one byte of a head", b"P"),
    slow("head in drips", *(INFER[at : at + 1] for at in range(25))),
    slow("header in drips", b"GET /live HTTP/1.1\r\nX: ", *[b"a"] * 25),
    slow("head without its end", LIVE[:-2]),
    slow("body that never comes", INFER + b"Content-Length: 1000\r\n\r\n"),
    slow("asgi body that never comes", SIZE + b"Content-Length: 1000\r\n\r\n"),
    slow("body in drips", INFER + b"Content-Length: 1000\r\n\r\n", *[b"a"] * 25),
    slow("asgi body in drips", SIZE + b"Content-Length: 1000\r\n\r\n", *[b"a"] * 25),
    slow("chunks in drips", INFER + CHUNKED, *[b"1\r\na\r\n"] * 25),
    slow("asgi chunks in drips", SIZE + CHUNKED, *[b"1\r\na\r\n"] * 25),
    slow("chunk of 16 EB", INFER + CHUNKED + b"ffffffffffffffff\r\nabc", statuses={400, 408, 413}),
    slow("chunk size that never ends", INFER + CHUNKED + b"5"),
    slow("body only promised", INFER + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", statuses={100, 408}),
    slow("body fast enough but without end", INFER + b"Content-Length: 900000\r\n\r\n", *[bytes(5000)] * 25),
    slow("body in drips behind its answer", NOWHERE + b"Content-Length: 1000\r\n\r\n", *[b"a"] * 25, statuses={404}),
    Case("idle after a request", [LIVE], frozenset({200})),
]

CASES = [*REQUEST_LINES, *HEADERS, *LENGTHS, *ENCODINGS, *BODIES, *SEQUENCES]
