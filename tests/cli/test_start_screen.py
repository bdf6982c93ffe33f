"""Progress while models load, then the table; on a terminal and in a log file."""

import io
import threading

from kernelport.cli.start_screen import StartScreen
from kernelport.serving.overview import ModelRow
from rich.console import Console


class SignallingFile(io.StringIO):
    """A file that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        count = super().write(text)
        if text.strip():
            self.written.set()
        return count


def test_progress_names_what_is_loading_and_for_how_long() -> None:
    now_s = [10.0]
    screen = StartScreen(Console(file=io.StringIO()), now_s=lambda: now_s[0])
    screen.loading("resnet 3")
    now_s[0] = 22.0
    screen.loading("bert 1")
    assert screen.progress_text() == "loading resnet 3 (12.0 s), bert 1 (0 ms)"
    screen.settled("resnet 3")
    assert screen.progress_text() == "loading bert 1 (0 ms)"
    screen.close()


def test_a_log_file_gets_a_line_for_a_long_load() -> None:
    file = SignallingFile()
    screen = StartScreen(Console(file=file, width=200), now_s=lambda: 0.0, line_every_s=0.01)
    screen.loading("resnet 3")
    assert file.written.wait(20)
    screen.close()
    assert file.getvalue().splitlines()[0] == "loading resnet 3 (0 ms)"


def test_a_terminal_gets_a_spinner() -> None:
    file = SignallingFile()
    screen = StartScreen(Console(file=file, width=200, force_terminal=True), now_s=lambda: 0.0)
    screen.loading("resnet 3")
    assert file.written.wait(20)
    screen.close()
    assert "loading" in file.getvalue()


def test_the_end_of_the_start_is_a_table_with_the_addresses() -> None:
    file = io.StringIO()
    screen = StartScreen(Console(file=file, width=200))
    screen.loading("resnet 3")
    screen.settled("resnet 3")
    rows = [ModelRow("resnet", "3", "onnxruntime", "cpu", 0.5, "READY")]
    screen.started(rows, [("docs", "http://127.0.0.1:8080/docs")])
    text = file.getvalue()
    assert "1 model ready" in text
    assert "onnxruntime" in text
    assert "http://127.0.0.1:8080/docs" in text
    assert all(one.name != "start-screen" for one in threading.enumerate())


def test_closing_twice_is_harmless() -> None:
    screen = StartScreen(Console(file=io.StringIO()))
    screen.close()
    screen.close()
    assert screen.progress_text() == ""
