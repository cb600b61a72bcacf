"""The words of pull requests: what must stay ours, what is people's, and that nothing in them is obeyed."""

from __future__ import annotations

import pytest

from reconciler.planning.open_drafts import Reason
from reconciler.reporting.pull_request import VERDICT_WIDTH, RequestWords, body_with, is_ours

WORDS = RequestWords("c1/web: clone v1", "0123456789ab", (), ("### web", "Merging publishes this."), "a" * 12)
NEWER = RequestWords("c1/web: clone v2", "0123456789ab", (), ("### web 2",), "b" * 12)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "Change `0123456789ab`."),
        (["c2"], "Same change as 1 other, `0123456789ab`: `c2`."),
        (["c3", "c2"], "Same change as 2 others, `0123456789ab`: `c2`, `c3`."),
        (list("cdefghi"), "Same change as 7 others, `0123456789ab`: `c`, `d`, `e`, `f`, `g` and 2 more."),
        (["`@all`"], "Same change as 1 other, `0123456789ab`: `` `@all` ``."),
    ],
)  # fmt: skip
def test_equal_changes_say_so(others: list[str], expected: str) -> None:
    assert WORDS.body(others).splitlines()[1] == expected


def test_what_people_write_around_our_words_stays() -> None:
    standing = f"Before.\n{WORDS.body([])}\nAfter."
    assert body_with(standing, NEWER.body([])) == f"Before.\n{NEWER.body([])}\nAfter."


@pytest.mark.parametrize(
    "standing",
    [
        pytest.param(WORDS.body(["c2"]), id="others-came-or-went"),
        pytest.param(WORDS.body([]).replace("### web", "### ours"), id="somebody-wrote-into-it"),
        pytest.param("my own words", id="no-words-of-ours"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_reason_to_write(standing: str) -> None:
    assert body_with(standing, WORDS.body([])) is None
    assert is_ours(standing) == ("reconciler:begin" in standing)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], "nothing is in the way of publishing"),
        ([Reason("GateNotMet", "web: tested")], "GateNotMet: web: tested"),
        ([Reason("GateNotMet", "web: tested"), Reason("RenderFailed", "api")], "GateNotMet: web: tested (and 1 more)"),
        ([Reason("GateNotMet", "a\nb")], "GateNotMet: a⏎b"),
    ],
)
def test_a_verdict_is_one_line(reasons: list[Reason], expected: str) -> None:
    words = RequestWords("", "", tuple(reasons), (), "")
    assert (words.passes(), words.verdict()) == (not reasons, expected)


def test_accepted_conflicts_are_no_fault_any_more_and_gates_stay_one() -> None:
    conflicts, gate = (Reason("ConflictsNotAccepted", "web"),), (Reason("GateNotMet", "web: tested"),)
    words = RequestWords("", "", (), (), "", conflicts)
    gated = RequestWords("", "", gate, (), "", conflicts)

    assert (words.passes(), words.verdict()) == (False, "ConflictsNotAccepted: web")
    assert words.passes(accepted=True)
    assert words.verdict(accepted=True) == "nothing is in the way of publishing: a reviewer accepted the conflicts"
    assert gated.verdict() == "ConflictsNotAccepted: web (and 1 more)"
    assert (gated.passes(accepted=True), gated.verdict(accepted=True)) == (False, "GateNotMet: web: tested")


def test_a_long_verdict_is_cut_to_what_a_check_holds() -> None:
    words = RequestWords("", "", (Reason("GateNotMet", "x" * 500), Reason("GateNotMet", "y")), (), "")
    assert len(words.verdict()) <= VERDICT_WIDTH
    assert words.verdict().endswith("… (and 1 more)")
