"""Tests of the line merge of comments, blank lines and order, which a merge of data does not cover."""

import pytest

from reconciler.krm.merge3.text import count_missing_lines, merge_lines

CASES = [
    pytest.param("a\nb\n", "A\nb\n", "a\nb\n# end\n", "A\nb\n# end\n", id="comment-at-the-end"),
    pytest.param("a\nb\n", "A\nb\n", "a\n\nb\n", "A\n\nb\n", id="blank-line"),
    pytest.param("a\nb\nc\n", "a\nb\nC\n", "b\na\nc\n", "b\na\nC\n", id="order"),
    pytest.param("a\n", "b\n", "c\n", "b\n", id="same-line-changed-twice"),
    pytest.param("a\n", "a\n# one\n", "a\n# two\n", "a\n# one\n# two\n", id="two-comments-in-one-place"),
    pytest.param("a\n", "a\n# one\n", "a\n# one\n", "a\n# one\n", id="one-comment-twice"),
    pytest.param("a", "a\n# one", "A\n", "a\n# one", id="last-line-without-an-end"),
    pytest.param("a\r\n", "a\r\n# one\r\n", "a\r\n# two\r\n", "a\r\n# one\r\n# two\r\n", id="CRLF"),
    pytest.param("a\nb\nc\n", "c\n", "a\nB\nc\n", "c\n", id="removed-lines-that-changed"),
    pytest.param("", "a\n", "b\n", "a\nb\n", id="from-nothing"),
]


@pytest.mark.parametrize(("origin", "local", "updated", "expected"), CASES)
def test_lines_of_both_sides_are_merged(origin: str, local: str, updated: str, expected: str) -> None:
    assert merge_lines(origin, local, updated) == expected


@pytest.mark.parametrize(
    ("origin", "side", "result", "missing"),
    [
        pytest.param("a\n", "a\n# one\n", "a\n", 1, id="missing-line"),
        pytest.param("a\n", "a\n# one\n", "# one\na\n", 0, id="line-elsewhere"),
        pytest.param("a\nb\n", "b\na\n", "a\nb\n", 1, id="other-order"),
        pytest.param("a\nb\n", "b\na\n", "b\nc\na\n", 0, id="same-order"),
        pytest.param("a\nb\n", "a\n\n\nb\n", "a\n\nb\n", 1, id="blank-line"),
        pytest.param("a\nb\n", "a\n", "a\nb\n", 0, id="removed-line"),
        pytest.param("a\n", "a\r\n", "a\n", 0, id="line-end"),
    ],
)
def test_missing_lines_are_counted(origin: str, side: str, result: str, missing: int) -> None:
    assert count_missing_lines(origin, side, result) == missing


def test_too_long_texts_are_not_compared() -> None:
    assert merge_lines("a\n" * 5_001, "a\n", "b\n") is None
