"""Near misses in words: "did you mean". Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known word, or nothing when none is close."""
    words = list(known)
    by_folded = {_fold(one): one for one in words}
    exact = by_folded.get(_fold(word))
    if exact is not None and exact != word:
        return f"; did you mean {exact!r}?"
    close = get_close_matches(_fold(word), list(by_folded), n=1, cutoff=0.6)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_")
