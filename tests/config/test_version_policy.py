"""Which versions are served."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.config.version_policy import VersionPolicy, choose_versions

VERSIONS = ["10", "2", "9", "1"]


@pytest.mark.parametrize(
    ("policy", "versions", "missing"),
    [
        (None, ("10",), ()),
        ({"latest": {}}, ("10",), ()),
        ({"latest": {"num_versions": 2}}, ("9", "10"), ()),
        ({"latest": {"num_versions": 9}}, ("1", "2", "9", "10"), ()),
        ({"all": {}}, ("1", "2", "9", "10"), ()),
        ({"specific": {"versions": [9, 1, 3, 9]}}, ("1", "9"), ("3",)),
    ],
)
def test_a_policy_picks_by_number(policy: object, versions: tuple[str, ...], missing: tuple[str, ...]) -> None:
    choice = choose_versions(None if policy is None else VersionPolicy.model_validate(policy), VERSIONS)
    assert (choice.versions, choice.missing) == (versions, missing)


def test_without_versions_there_is_nothing_to_choose() -> None:
    assert choose_versions(None, []).versions == ()


@given(st.sets(st.integers(1, 10**18), max_size=8), st.integers(1, 10))
def test_the_latest_versions_are_the_highest_in_ascending_order(numbers: set[int], count: int) -> None:
    policy = VersionPolicy.model_validate({"latest": {"num_versions": count}})
    chosen = [int(one) for one in choose_versions(policy, map(str, numbers)).versions]
    assert chosen == sorted(numbers)[-count:]
