"""Tests of the text of pull requests: the generated block, the text of people around it, and escaped input."""

from __future__ import annotations

import pytest

from reconciler.output.review.pull_request import (
    VERDICT_WIDTH,
    PullRequestText,
    has_generated_block,
    replace_generated_block,
)
from reconciler.planning.lifecycle.open_drafts import BlockingReason

WORDS = PullRequestText("c1/web: clone v1", "0123456789ab", (), ("### web", "Merging publishes this."), "a" * 12)
NEWER = PullRequestText("c1/web: clone v2", "0123456789ab", (), ("### web 2",), "b" * 12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "Change `0123456789ab`."),
        (["c2"], "Same change as 1 other, `0123456789ab`: `c2`."),
        (["c3", "c2"], "Same change as 2 others, `0123456789ab`: `c2`, `c3`."),
        (list("cdefghi"), "Same change as 7 others, `0123456789ab`: `c`, `d`, `e`, `f`, `g` and 2 more."),
        (["`@all`"], "Same change as 1 other, `0123456789ab`: `` `@all` ``."),
    ],
)  # fmt: skip
def test_equal_changes_are_described_once(values: list[str], expected: str) -> None:
    assert WORDS.format_body(values).splitlines()[1] == expected


def test_text_around_the_generated_block_stays() -> None:
    standing = f"Before.\n{WORDS.format_body([])}\nAfter."
    assert replace_generated_block(standing, NEWER.format_body([])) == f"Before.\n{NEWER.format_body([])}\nAfter."


@pytest.mark.parametrize(
    "standing",
    [
        pytest.param(WORDS.format_body(["c2"]), id="others-came-or-went"),
        pytest.param(WORDS.format_body([]).replace("### web", "### ours"), id="edited-body"),
        pytest.param("my own words", id="no-words-of-ours"),
        pytest.param("", id="nothing"),
    ],
)
def test_unchanged_or_missing_block_is_not_written(standing: str) -> None:
    assert replace_generated_block(standing, WORDS.format_body([])) is None
    assert has_generated_block(standing) == ("reconciler:begin" in standing)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], "nothing blocks publication"),
        ([BlockingReason("GateNotMet", "web: tested")], "GateNotMet: web: tested"),
        (
            [BlockingReason("GateNotMet", "web: tested"), BlockingReason("RenderFailed", "api")],
            "GateNotMet: web: tested (and 1 more)",
        ),
        ([BlockingReason("GateNotMet", "a\nb")], "GateNotMet: a⏎b"),
    ],
)
def test_verdict_is_one_line(reasons: list[BlockingReason], expected: str) -> None:
    words = PullRequestText("", "", tuple(reasons), (), "")
    assert (words.can_publish(), words.format_verdict()) == (not reasons, expected)


def test_accepted_conflicts_do_not_block_but_gates_do() -> None:
    conflicts, gate = (BlockingReason("ConflictsNotAccepted", "web"),), (BlockingReason("GateNotMet", "web: tested"),)
    words = PullRequestText("", "", (), (), "", conflicts)
    gated = PullRequestText("", "", gate, (), "", conflicts)

    assert (words.can_publish(), words.format_verdict()) == (False, "ConflictsNotAccepted: web")
    assert words.can_publish(has_accepted_conflicts=True)
    assert (
        words.format_verdict(has_accepted_conflicts=True)
        == "nothing blocks publication: a reviewer accepted the conflicts"
    )
    assert gated.format_verdict() == "ConflictsNotAccepted: web (and 1 more)"
    assert (gated.can_publish(has_accepted_conflicts=True), gated.format_verdict(has_accepted_conflicts=True)) == (
        False,
        "GateNotMet: web: tested",
    )


def test_long_verdict_is_truncated_to_the_width_of_a_check() -> None:
    words = PullRequestText(
        "", "", (BlockingReason("GateNotMet", "x" * 500), BlockingReason("GateNotMet", "y")), (), ""
    )
    assert len(words.format_verdict()) <= VERDICT_WIDTH
    assert words.format_verdict().endswith("… (and 1 more)")
