"""Suggestions for misspelt words."""

import pytest
from kernelport.config.suggest import did_you_mean


@pytest.mark.parametrize("word", ["max_batch_siz", "maxbatch_size", "max-batch-size", "MAX_BATCH_SIZE"])
def test_a_near_miss_gets_the_known_word(word: str) -> None:
    assert did_you_mean(word, ["name", "max_batch_size"]) == "; did you mean 'max_batch_size'?"


def test_a_word_far_from_all_gets_nothing() -> None:
    assert did_you_mean("zzz", ["name", "max_batch_size"]) == ""
