"""Send golden cases to a server and compare its answers with the recorded ones.

PYTHONPATH=tests python -m golden.replay http://127.0.0.1:8080 [PREFIX ...]
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import socket
import sys
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CASES = Path(__file__).resolve().parent.parent / "data" / "golden" / "cases.jsonl"
COMPARED_HEADERS = ("content-type", "content-encoding", "inference-header-content-length")

Case = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back; `status` None when the server closed the connection or kept silent."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> bytes:
        """The body without its Content-Encoding."""
        coding = self.headers.get("content-encoding")
        if coding == "gzip":
            return gzip.decompress(self.body)
        return zlib.decompress(self.body) if coding == "deflate" else self.body


def load_cases() -> list[Case]:
    """All cases of the file, in the order they were recorded."""
    with CASES.open(encoding="utf-8") as lines:  # not splitlines(), which also splits at U+2028
        return [json.loads(line) for line in lines]


def send(case: Case, url: str) -> Answer:
    """Send one case on a connection of its own, byte for byte as it was recorded."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port or 80), timeout=case.get("timeout_s", 15)) as wire:
        wire.sendall(_request_bytes(case))
        if case.get("half_close"):
            wire.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(wire, method=case["method"])
        try:
            response.begin()
            body = response.read()
        except (http.client.HTTPException, OSError):
            return Answer(None, {}, b"")
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def _request_bytes(case: Case) -> bytes:
    body = b""
    if "body_json" in case:
        body = json.dumps(case["body_json"], separators=(",", ":"), ensure_ascii=False).encode()
    elif "body_b64" in case:
        body = base64.b64decode(case["body_b64"])
    headers = case.get("headers") or {}
    fields = list(headers.items()) if isinstance(headers, dict) else [tuple(pair) for pair in headers]
    given = {name.lower() for name, _ in fields}
    if (
        not case.get("no_content_length")
        and not given & {"content-length", "transfer-encoding"}
        and (body or case["method"] == "POST")
    ):
        fields.append(("Content-Length", str(len(body))))
    lines = [
        f"{case['method']} {case['path']} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in fields),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def differences(case: Case, answer: Answer) -> list[str]:
    """In words, what differs from the recorded answer; empty if nothing does."""
    mode = case["compare"]
    if mode == "unspecified":
        return []
    if answer.status not in case.get("accept_status", [case["status"]]):
        return [f"status {answer.status}, recorded {case['status']}: {answer.body[:300]!r}"]
    found = list(_header_differences(case, answer))
    if mode != "status" and answer.status is not None:
        found += _COMPARISONS[mode](case, answer)
    return found


def _header_differences(case: Case, answer: Answer) -> Iterator[str]:
    for name, recorded in (case.get("response_headers") or {}).items():
        name = name.lower()
        have = answer.headers.get(name)
        if name not in COMPARED_HEADERS or (name == "content-type" and case["compare"] == "error"):
            continue
        if have is None or (
            name != "inference-header-content-length" and have.split(";")[0].strip() != recorded.split(";")[0].strip()
        ):
            yield f"header {name} is {have!r}, recorded {recorded!r}"


def _compare_error(case: Case, answer: Answer) -> list[str]:
    try:
        document = json.loads(answer.content)
    except ValueError:
        return [f"the error body is no JSON: {answer.body[:300]!r}"]
    if not isinstance(document, dict) or set(document) != {"error"} or not isinstance(document["error"], str):
        return [f"the error body is {document!r}"]
    if answer.headers.get("content-type") != "application/json":
        return [f"the error's content-type is {answer.headers.get('content-type')!r}"]
    return []


def _compare_exact(case: Case, answer: Answer) -> list[str]:
    content = answer.content
    if "response_binary" in case:
        return _compare_binary(case["response_binary"], answer)
    if "response_json" in case:
        return _compare_documents(content, case["response_json"])
    if "response_text" in case:
        return [] if content.decode("utf-8", "replace") == case["response_text"] else [f"body {content[:300]!r}"]
    recorded = base64.b64decode(case.get("response_b64", ""))
    return [] if content == recorded else [f"body {content[:300]!r}, recorded {recorded[:300]!r}"]


def _compare_binary(recorded: Mapping[str, Any], answer: Answer) -> list[str]:
    content = answer.content
    length = int(answer.headers.get("inference-header-content-length", len(content)))
    found = _compare_documents(content[:length], recorded["json"])
    if content[length:] != base64.b64decode(recorded["tail_b64"]):
        found.append(f"binary part {content[length:][:80]!r}")
    return found


def _compare_documents(content: bytes, recorded: Any) -> list[str]:
    try:
        document = json.loads(content)
    except ValueError:
        return [f"no JSON: {content[:300]!r}"]
    if is_same(document, recorded):
        return []
    return [f"body {json.dumps(document)[:400]}, recorded {json.dumps(recorded)[:400]}"]


def is_same(one: Any, other: Any) -> bool:
    """Equal JSON values; FP32 data as 32-bit floats, NaN equal to itself, 1 and true unlike."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        names = set(one)
        if one.get("datatype") == other.get("datatype") == "FP32" and isinstance(one.get("data"), list):
            if not _same_floats(one["data"], other["data"]):
                return False
            names.remove("data")
        return all(is_same(one[name], other[name]) for name in names)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) or (one != one and other != other)


def _same_floats(one: list[Any], other: list[Any]) -> bool:
    if None in one or None in other:
        return one == other
    return np.array(one, "<f4").tobytes() == np.array(other, "<f4").tobytes()


def _compare_schema(case: Case, answer: Answer) -> list[str]:
    document = json.loads(answer.content)
    return list(_schema_differences("", document, case["response_json"]))


def _schema_differences(path: str, document: Any, recorded: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(document, dict):
        if document.keys() != recorded.keys():
            yield f"{path} has the members {sorted(document)}, recorded {sorted(recorded)}"
            return
        for name, value in recorded.items():
            yield from _schema_differences(f"{path}/{name}", document[name], value)
    elif isinstance(recorded, list) and isinstance(document, list):
        if recorded and document:  # an idle model has no batches to show
            yield from _schema_differences(f"{path}[0]", document[0], recorded[0])
    elif _json_type(document) != _json_type(recorded):
        yield f"{path} is a {_json_type(document)}, recorded a {_json_type(recorded)}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


def _compare_index(case: Case, answer: Answer) -> list[str]:
    document = json.loads(answer.content)
    entries = [(one.get("name"), one.get("version"), one.get("state")) for one in document]
    recorded = [(one["name"], one.get("version"), one.get("state")) for one in case["response_json"]]
    return [f"the index lacks {entry}" for entry in recorded if entry not in entries]


_COMPARISONS: dict[str, Callable[[Case, Answer], list[str]]] = {
    "exact": _compare_exact,
    "error": _compare_error,
    "schema": _compare_schema,
    "index": _compare_index,
}


def main(url: str, *prefixes: str) -> int:
    """Replay all cases, or those whose names start with one of `prefixes`; the exit code is 1 if one differs."""
    from golden.deviations import as_expected_here

    wrong = 0
    for case in load_cases():
        if prefixes and not case["id"].startswith(prefixes):
            continue
        expected = as_expected_here(case)
        found = differences(expected, send(case, url))
        wrong += bool(found)
        for difference in found:
            sys.stdout.write(f"{case['id']} ({case['what']}): {difference}\n")
    sys.stdout.write(f"{wrong} cases differ\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
