"""The error tree: every class says what kind of trouble it is."""

import inspect

import pytest
from kernelport.core import errors
from kernelport.core.errors import ErrorCode, KernelPortError, Overloaded

CLASSES = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, KernelPortError)]


def _drawn_tree() -> dict[str, tuple[str, str]]:
    """Class -> (base, code), as the module's docstring draws them; a code that is left out is inherited."""
    drawn: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        name_at = next((i for i, letter in enumerate(line) if letter.isalpha()), None)
        if name_at is None or not line[name_at:].startswith(tuple(one.__name__ for one in CLASSES)):
            continue
        name, *rest = line[name_at:].split()
        depth = name_at // 4
        base = path[depth - 1] if depth else ""
        del path[depth:]
        path.append(name)
        code = rest[0] if rest and rest[0] in ErrorCode.__members__ else drawn[base][1]
        drawn[name] = (base, code)
    return drawn


def test_the_docstring_draws_the_true_tree() -> None:
    true = {
        one.__name__: ("" if one is KernelPortError else one.__bases__[0].__name__, one.code.value) for one in CLASSES
    }
    assert _drawn_tree() == true


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_carries_its_text_and_an_outcome_for_the_counters(kind: type[KernelPortError]) -> None:
    error = kind("model 'm': what to do")
    assert str(error) == "model 'm': what to do"
    assert kind.outcome
    assert inspect.getdoc(kind)


def test_only_what_may_succeed_later_says_when_to_come_back() -> None:
    for kind in CLASSES:
        assert kind.retry_after_s is None or kind.code is ErrorCode.UNAVAILABLE, kind
        assert kind.retry_after_s is not None or not issubclass(kind, Overloaded), kind
