import ctypes
from collections.abc import Iterator

import pytest
from kernelport.devices import memory


@pytest.fixture(autouse=True)
def _forget_the_function() -> Iterator[None]:
    memory._malloc_trim.cache_clear()
    yield
    memory._malloc_trim.cache_clear()


def test_freed_memory_goes_back_where_the_library_can() -> None:
    assert memory.return_freed_memory() in (True, False)


def test_a_library_without_the_function_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert memory.return_freed_memory() is False
