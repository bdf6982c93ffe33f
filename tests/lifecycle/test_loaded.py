"""What a load leaves behind, and how it is taken apart."""

from __future__ import annotations

import pytest
from fakes.models import GatedCopy, loaded


def test_copies_are_closed_before_their_files_go() -> None:
    order: list[str] = []

    class Noting(GatedCopy):
        def close(self) -> None:
            order.append("copy")

    one, other = Noting(), Noting()
    version = loaded(one, release=lambda: order.append("files"))
    version.copies = (one, other)  # type: ignore[assignment]
    version.close()
    assert order == ["copy", "copy", "files"]


@pytest.mark.parametrize("permits", [1, 3])
def test_a_copy_that_holds_several_permits_is_closed_once(permits: int) -> None:
    copy = GatedCopy()
    loaded(copy, permits=permits).close()
    assert copy.is_closed
