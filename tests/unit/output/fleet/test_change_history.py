"""What happened to the drafts of a change, from one index to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.output.fleet import change_history
from reconciler.output.fleet.change_history import PastChange, PastDraft, select_drafts, update_history
from reconciler.output.fleet.model import PackageRow
from reconciler.output.fleet.publications import Publication
from tests.support.fleet_index import create_index, create_row, create_target

DRAFTED = create_index([create_target("lisbon", {}, create_row("lisbon", "web", change="one"))])
PUBLICATION = Publication(1, "41ab", "Ana Silva", 1_234, "publish web v1")


def create_published(number: int, change: str = "") -> PackageRow:
    row = create_row("lisbon", "web", change=change)
    return replace(row, version=number, publication=replace(PUBLICATION, number=number))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            create_published(1),
            {"outcome": "published", "number": 1, "author": "Ana Silva", "seconds": 1_234},
            id="published",
        ),
        pytest.param(
            create_published(1, change="two"),
            {"outcome": "published", "number": 1, "author": "Ana Silva", "seconds": 1_234},
            id="published-and-drafted-again",
        ),
        pytest.param(
            create_row("lisbon", "web", change="two"), {"outcome": "replaced", "successor": "two"}, id="replaced"
        ),
        pytest.param(create_row("lisbon", "web"), {"outcome": "withdrawn"}, id="withdrawn"),
        pytest.param(create_row("lisbon", "other"), {"outcome": "withdrawn"}, id="package-deleted"),
    ],
)
def test_the_outcome_of_a_draft(row: PackageRow, expected: dict[str, object]) -> None:
    history = update_history({}, DRAFTED)
    history = update_history(history, create_index([create_target("lisbon", {}, row)]))

    assert history["one"].drafts == (PastDraft("lisbon", "web", **expected),)  # type: ignore[arg-type]
    assert not history["one"].is_open


def test_an_outcome_stays_and_an_open_draft_has_none() -> None:
    later = create_index([create_target("lisbon", {}, create_published(3, change="two"))])
    history = update_history(
        update_history({}, DRAFTED), create_index([create_target("lisbon", {}, create_published(1))])
    )
    closed = update_history(history, later)
    again = update_history(history, DRAFTED)

    assert closed["one"] is history["one"]
    assert list(closed) == ["one", "two"]
    assert again["one"].drafts == (PastDraft("lisbon", "web"),)


def test_targets_of_one_change_have_their_own_outcomes() -> None:
    names = ("berlin", "lisbon")
    both = create_index([create_target(name, {}, create_row(name, "web", change="one")) for name in names])
    history = update_history(update_history({}, both), create_index([
        create_target("berlin", {}, create_row("berlin", "web", change="one")), create_target("lisbon", {}, create_published(1)),
    ]))  # fmt: skip

    assert {draft.target: draft.outcome for draft in history["one"].drafts} == {"berlin": "open", "lisbon": "published"}


def test_a_target_that_cannot_be_read_has_no_outcome() -> None:
    unread = replace(create_target("lisbon", {}), read_error="the remote does not respond")
    history = update_history(update_history({}, DRAFTED), create_index([unread]))

    assert history["one"].is_open


def test_a_published_removal_has_no_package() -> None:
    change = PastChange("one", "delete web", "", (), is_removal=True, drafts=(PastDraft("lisbon", "web", 4),))
    history = update_history({"one": change}, create_index([create_target("lisbon", {})]))

    assert history["one"].drafts == (PastDraft("lisbon", "web", 4, "published"),)


def test_the_changes_that_ended_first_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_history, "MAX_CHANGES", 2)
    history = update_history({}, DRAFTED)
    for key in ("two", "three", "four"):
        history = update_history(
            history, create_index([create_target("lisbon", {}, create_row("lisbon", "web", change=key))])
        )

    assert list(history) == ["three", "four"]


def test_a_person_reads_only_the_drafts_of_permitted_packages() -> None:
    drafts = (PastDraft("berlin", "web"), PastDraft("lisbon", "web"))
    change = PastChange("one", "update web", "", ("~ Deployment berlin",), False, drafts)
    only_lisbon, nothing = create_index([create_target("lisbon", {}, create_row("lisbon", "web"))]), create_index([])

    assert select_drafts(change, only_lisbon, reads_everything=False) == replace(change, lines=(), drafts=drafts[1:])
    assert select_drafts(change, nothing, reads_everything=False) is None
    assert select_drafts(change, nothing, reads_everything=True) == change
