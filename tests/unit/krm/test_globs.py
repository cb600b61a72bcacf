"""Tests of patterns with wildcards."""

import pytest

from reconciler.krm.globs import matches_any_glob, matches_glob


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("teams/payments/**", "teams/payments/a/b.yaml", True),
        ("teams/payments/**", "teams/payments-evil/a.yaml", False),
        ("teams/payments/**", "teams/payments", False),
        ("payments-*", "payments-api", True),
        ("payments-*", "payments-api/inner", False),
        ("payments-?", "payments-a", True),
        ("payments-?", "payments-/", False),
        ("*", "a", True),
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("**/catalog", "git.example.com/team/catalog", True),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("Payments/**", "payments/a", False),
        ("a", "a\n", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_pattern(pattern: str, text: str, expected: bool) -> None:
    assert matches_glob(text, pattern) is expected


def test_one_of_several_patterns_is_sufficient() -> None:
    assert matches_any_glob("b", ["a", "b"])
    assert not matches_any_glob("c", ["a", "b"])
    assert not matches_any_glob("a", [])
