"""Replies as header fields and as bytes on the wire."""

from kernelport.core.errors import MalformedBody, QueueFull, UnsupportedEncoding
from kernelport.http.reply import Reply, error_reply


def test_a_json_reply_on_the_wire() -> None:
    reply = Reply(200, [b"{}"], 2, server_timing=b"queue;dur=1")
    assert reply.head(b"", b"", False) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nserver-timing: queue;dur=1\r\n\r\n"
    )


def test_a_binary_reply_says_where_its_json_part_ends() -> None:
    reply = Reply(200, [b"{}", memoryview(b"1234")], 6, json_length=2)
    assert b"inference-header-content-length: 2\r\n" in reply.head(b"", b"", False)
    assert (b"content-type", b"application/octet-stream") in reply.headers
    assert (b"inference-header-content-length", b"2") in reply.headers
    assert reply.body == b"{}1234"


def test_the_last_reply_and_the_servers_own_fields() -> None:
    head = Reply(200, [b"{}"], 2).head(b"date: now\r\n", b"id-1", True)
    assert head.endswith(b"x-request-id: id-1\r\nconnection: close\r\ndate: now\r\n\r\n")


def test_an_error_reply_carries_its_hints() -> None:
    assert (b"retry-after", b"1") in error_reply(QueueFull("full")).headers
    assert (b"accept-encoding", b"gzip, deflate") in error_reply(UnsupportedEncoding("br")).headers


def test_a_status_that_only_http_has_overrides_the_table() -> None:
    reply = error_reply(MalformedBody("too long"), 431)
    assert reply.head(b"", b"", True).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert reply.body == b'{"error":"too long"}'


def test_the_list_and_the_wire_have_the_same_fields() -> None:
    for reply in (
        Reply(200, [b"{}"], 2, ((b"kernelport-non-finite", b"y"),), server_timing=b"q"),
        Reply(200, [b"{}", b"1"], 3, json_length=2),
        error_reply(QueueFull("full")),
    ):
        lines = reply.head(b"", b"", False).split(b"\r\n")[1:-2]
        assert sorted(lines) == sorted(b"%b: %b" % field for field in reply.headers)
