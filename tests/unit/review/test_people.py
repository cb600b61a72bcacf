"""Tests of the names, mail addresses and reasons of people in commits."""

from __future__ import annotations

import pytest

from reconciler.review.people import MAX_IDENTITY_CHARACTERS, MAX_REASON_CHARACTERS, Reviewer, clean_reason


@pytest.mark.parametrize(
    ("person", "identity"),
    [
        pytest.param(Reviewer("Ana Silva", "ana@example.com"), ("Ana Silva", "ana@example.com"), id="unchanged"),
        pytest.param(Reviewer("Zoë Ω", "z@example.com"), ("Zoë Ω", "z@example.com"), id="unicode"),
        pytest.param(Reviewer("A <b@c>\nd", "x@y>\0"), ("A b@c d", "x@y"), id="characters-of-the-commit-header"),
        pytest.param(Reviewer("a\u202eb  c", "a b@c"), ("ab c", "ab@c"), id="text-direction-and-spaces"),
        pytest.param(Reviewer("", "ana@example.com"), ("ana@example.com", "ana@example.com"), id="no-name"),
        pytest.param(Reviewer("<>", "", "a1", "https://i"), ("a1@https://i", "unknown"), id="only-a-subject"),
        pytest.param(Reviewer("", ""), ("unknown", "unknown"), id="nothing"),
        pytest.param(
            Reviewer("n" * 500, "m" * 500), ("n" * MAX_IDENTITY_CHARACTERS, "m" * MAX_IDENTITY_CHARACTERS), id="long"
        ),
    ],
)
def test_the_author_of_a_commit(person: Reviewer, identity: tuple[str, str]) -> None:
    assert person.git_identity == identity


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("tested", "tested", id="unchanged"),
        pytest.param(" a \r\n\n  b\n", "a\nb", id="lines"),
        pytest.param("a\x1b[2J\u202eb", "a[2Jb", id="control-characters"),
        pytest.param("a\tb", "a b", id="tab"),
        pytest.param(" \n\t\u200b", "", id="only-spaces"),
        pytest.param("x" * 2_000, "x" * MAX_REASON_CHARACTERS, id="long"),
    ],
)
def test_the_reason_of_a_commit(text: str, reason: str) -> None:
    assert clean_reason(text) == reason


def test_different_people_have_different_keys() -> None:
    people = [
        Reviewer("Ana", "a@example.com", "1", "https://x"),
        Reviewer("Ana", "a@example.com", "1", "https://y"),
        Reviewer("Ana", "a@example.com", "2", "https://x"),
        Reviewer("Ana", "a@example.com"),
        Reviewer("Ana", "b@example.com"),
    ]

    assert len({person.key for person in people}) == len(people)
    assert Reviewer("Ana", "A@example.com").key == Reviewer("Ana Silva", "a@example.com").key
