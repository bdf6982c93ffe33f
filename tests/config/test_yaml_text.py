"""Strict YAML."""

import pytest
from kernelport.config.yaml_text import parse_yaml
from kernelport.core.errors import ConfigError


def test_every_key_and_item_has_its_line() -> None:
    document = parse_yaml("a: 1\nb:\n  - c: 2\n    d: 3\n", "f.yaml")
    assert document.data == {"a": 1, "b": [{"c": 2, "d": 3}]}
    assert document.line_of(("b",)) == 2
    assert document.line_of(("b", 0, "d")) == 4
    assert document.line_of(("b", 0, "missing")) == 3


def test_an_empty_text_is_an_empty_mapping() -> None:
    assert parse_yaml("# nothing\n", "f.yaml").data == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"^f.yaml:3: 'a' is given twice"),
        ("a:\n  b: 1\n  b: 2\n", r"^f.yaml:3: 'b' is given twice"),
        ("a: [1, 2\nb: 3\n", r"^f.yaml:2:"),
        ("a: !!python/object/apply:os.system ['true']\n", r"^f.yaml:1:4: could not determine a constructor"),
        ("? [a, b]\n: 1\n", r"^f.yaml:1: a key must be a plain word"),
        ("a: 1\n---\nb: 2\n", r"^f.yaml:2:"),
        ("a: \x07\n", r"^f.yaml: not YAML"),
        ("[" * 5000 + "]" * 5000, r"^f.yaml: nested too deeply"),
        ("a: 2026-99-99\n", r"^f.yaml: month must be"),
    ],
)
def test_what_is_no_plain_mapping_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_yaml(text, "f.yaml")


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(ConfigError, match="is an alias used again and again"):
        parse_yaml("\n".join(lines), "f.yaml")
