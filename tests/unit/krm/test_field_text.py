"""Tests of lists and suggestions in messages."""

from __future__ import annotations

import pytest

from reconciler.krm.field_text import describe_choice, format_list, quote_list, suggest_name


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(0, "", id="zero"),
        pytest.param(2, "n0 and n1", id="two"),
        pytest.param(53, f"{' and '.join(f'n{number}' for number in range(50))}, and 3 more", id="too-many"),
    ],
)
def test_list_is_formatted(count: int, text: str) -> None:
    assert format_list([f"n{number}" for number in range(count)], " and ") == text


def test_names_are_quoted_in_a_list() -> None:
    assert quote_list(["none", 'a"b', ""], " or ") == r'"none" or "a\"b" or ""'


@pytest.mark.parametrize(
    ("values", "text"),
    [
        pytest.param(["a"], '"a"', id="one"),
        pytest.param(["error", "skip"], '"error" or "skip"', id="two"),
        pytest.param(["a", 5, True], 'one of "a", 5, true', id="three-of-different-types"),
    ],
)
def test_allowed_values_are_described(values: list[object], text: str) -> None:
    assert describe_choice(values) == text


@pytest.mark.parametrize(("count", "text"), [(0, '; did you mean "replicas"?'), (500, "")])
def test_suggestion_is_limited_to_short_lists(count: int, text: str) -> None:
    assert suggest_name("replica", ["replicas", *(f"n{number}" for number in range(count))]) == text


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        pytest.param("regoin", '; did you mean "region"?', id="similar"),
        pytest.param("REGION", '; did you mean "region"?', id="another-case"),
        pytest.param("prod", '; did you mean "production"?', id="beginning"),
        pytest.param("pr", "", id="short-beginning"),
        pytest.param("zone", "", id="not-similar"),
    ],
)
def test_similar_name_is_suggested(name: str, suggestion: str) -> None:
    assert suggest_name(name, ["environment", "production", "region"]) == suggestion
