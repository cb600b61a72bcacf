from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.numbers import format_count
from reconciler.output.text import format_both_values, format_value, list_first_lines, shorten, to_one_line


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("web:1", "web:1", id="string-unchanged"),
        pytest.param("", '""', id="an-empty-string-is-quoted"),
        pytest.param(" x", '" x"', id="blanks-at-the-edge-are-quoted"),
        pytest.param(3, "3", id="a-number"),
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="a-boolean-as-yaml-writes-it"),
        pytest.param(["a", 1], '["a", 1]', id="a-list-as-json"),
        pytest.param({"ü": "é"}, '{"ü": "é"}', id="letters-of-all-languages-stay"),
        pytest.param("a\nb", "a⏎b", id="line-breaks-are-shown"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape-sequences-are-harmless"),
        pytest.param("a\u202eb", "a\\u202eb", id="direction-marks-are-harmless"),
        pytest.param("x" * 70, "x" * 59 + "…", id="a-long-one-is-cut"),
    ],
)
def test_value_is_formatted_on_one_line(value: object, expected: str) -> None:
    assert format_value(value) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("a", "b", ("a", "b"), id="short-values-unchanged"),
        pytest.param(3, "3", ("3", '"3"'), id="a-type-that-changed-can-be-seen"),
        pytest.param("x" * 80 + "a", "x" * 80 + "b", ("…xxxxxxxxxxxxa", "…xxxxxxxxxxxxb"), id="the-end-of-long-ones"),
        pytest.param("p" * 70, "q", ("p" * 59 + "…", "q"), id="nothing-in-common-nothing-left-out"),
    ],
)
def test_difference_of_two_values_is_visible(before: object, after: object, expected: tuple[str, str]) -> None:
    assert format_both_values(before, after) == expected


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=100))
def test_values_with_an_early_difference_have_different_texts(start: str, one: str, other: str) -> None:
    before, after = format_both_values(f"{start}1{one}", f"{start}2{other}")

    assert before != after
    assert max(len(before), len(after)) <= 60


@given(st.text())
def test_formatted_text_has_no_line_break(text: str) -> None:
    assert to_one_line(text).isprintable()
    assert len(to_one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        pytest.param("abc", 3, "abc", id="what-fits-stays"),
        pytest.param("abcd", 3, "ab…", id="what-does-not-is-cut"),
        pytest.param("a bcd", 3, "a…", id="no-blank-before-the-dots"),
    ],
)
def test_shorten(text: str, width: int, expected: str) -> None:
    assert shorten(text, width) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(0, "0 drafts", id="none"),
        pytest.param(1, "1 draft", id="one"),
        pytest.param(2, "2 drafts", id="many"),
    ],
)
def test_count(number: int, expected: str) -> None:
    assert format_count(number, "draft") == expected


def test_values_are_formatted_without_credentials_of_urls() -> None:
    data = {"url": "postgres://web:ses/ame@db.example/web"}

    assert format_value(data) == '{"url": "postgres://db.example/web"}'
    assert format_both_values("https://a:sesame@h.example/x", "https://h.example/y") == (
        "https://h.example/x", "https://h.example/y"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(2, ("a", "b", "and 1 more"), id="more-lines"),
        pytest.param(3, ("a", "b", "c"), id="all-lines"),
        pytest.param(None, ("a", "b", "c"), id="no-limit"),
    ],
)
def test_the_remaining_lines_are_counted(limit: int | None, expected: tuple[str, ...]) -> None:
    assert list_first_lines(["a", "b", "c"], limit) == expected
