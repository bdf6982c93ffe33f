from pathlib import Path

import pytest

from benchmarks.workloads import RequestBody
from benchmarks.wrk import MARK, parse_output, write_script

RESULT = (
    '{"requests": 4000, "duration_us": 2000000, "p50_us": 700, "p99_us": 1400, "max_us": 9000, '
    '"bad_status": 2, "socket_errors": 1}'
)


def test_a_result_line_becomes_a_window() -> None:
    window = parse_output(f"Running 2s test\n{MARK}{RESULT}\n")
    assert window.requests_per_s == 2000.0
    assert (window.p50_us, window.p99_us) == (700.0, 1400.0)
    assert window.bad_answers == 3
    assert window.requests == 4000.0


def test_output_without_a_result_is_refused_with_the_output() -> None:
    with pytest.raises(ValueError, match="unable to connect"):
        parse_output("unable to connect to localhost:8080")


def test_the_script_reads_the_body_from_a_file_and_sets_every_header(tmp_path: Path) -> None:
    body = RequestBody(b"\x00\xff", {"Content-Type": 'a "quoted" value'})
    script = write_script(body, tmp_path, "example")
    assert (tmp_path / "example.body").read_bytes() == b"\x00\xff"
    text = script.read_text()
    assert str(tmp_path / "example.body") in text
    assert 'wrk.headers["Content-Type"] = "a \\"quoted\\" value"' in text
