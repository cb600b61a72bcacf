"""Where each package stands, by its refs: the first state that is true of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.planning.cells import STATES, Cell, cells
from reconciler.planning.ground import Ground
from reconciler.planning.open_drafts import DraftedPackage, OpenDraft
from reconciler.planning.standing import Heads
from reconciler.planning.state import DraftBranch, PackageRecord, Removal, Revision
from tests.unit.planning.values import Tables, commit, destination, offer, record, state, tree

HEAD = commit("d1")
OURS = offer("v1")
PUBLISHED = replace(record(ours=OURS, revision=3, revisions=(Revision(3, commit("b1"), OURS),)), wanted=tree("v1"))
DRAFTED = replace(PUBLISHED, put=offer("v2", "v1"), draft="drafts/berlin", wanted=tree("v2"))
UNKNOWN = replace(PUBLISHED, ours=None, revisions=())
ERROR = {"code": "Broken", "severity": "error", "message": "it broke"}
WARNING = {"code": "Odd", "severity": "warning", "message": "it is odd"}
WAITS = {"type": "Ready", "status": "False", "reason": "DownstreamProposed", "message": "its update waits"}


def outcome(one: PackageRecord, kind: str, *findings: Mapping[str, str], **more: Any) -> PackageRecord:
    return replace(one, outcome={"kind": kind, "findings": findings, **more})


def cell(
    one: PackageRecord, published: str | None = "v1", drafted: str | None = None, proposed: str = "", **fields: Any
) -> Cell | None:
    tables = Tables({"b1": {"gw": published}})
    on = Ground(destination(), state(packages={"gw": one}), Heads(commit("b1")), tables, "drafts/{repository}")
    drafts = []
    if drafted is not None:
        tree_there = tree(drafted) if drafted else None
        package = DraftedPackage("gw", one, tree(published) if published else None, tree_there, {}, **fields)
        point = commit(proposed) if proposed else None
        known = DraftBranch(HEAD, commit("b1"))
        drafts = [
            OpenDraft(on.destination, "drafts/berlin", known.head, known.base, known.base, point, False, (package,), ())
        ]
    return next(cells(on, drafts), None)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(cell(PUBLISHED), "published", id="the-branch-has-it"),
        pytest.param(cell(UNKNOWN), "published", id="it-was-adopted"),
        pytest.param(cell(DRAFTED, drafted="v2"), "draft", id="an-open-draft"),
        pytest.param(cell(DRAFTED, None, "v2"), "draft", id="a-new-package"),
        pytest.param(cell(DRAFTED, drafted="x", edited=True), "edited", id="people-changed-the-draft"),
        pytest.param(cell(PUBLISHED, drafted="x"), "edited", id="people-drafted-it-themselves"),
        pytest.param(cell(DRAFTED, drafted="v2", proposed="d1"), "proposed", id="proposed-as-it-stands"),
        pytest.param(cell(DRAFTED, drafted="v2", proposed="d0"), "draft", id="moved-on-since-it-was-proposed"),
        pytest.param(cell(DRAFTED, drafted="x", proposed="d1", edited=True), "proposed", id="proposed-with-edits"),
        pytest.param(cell(PUBLISHED, drafted=""), "removal", id="a-draft-takes-it-away"),
        pytest.param(
            cell(replace(PUBLISHED, removal=Removal("removals/berlin", tree("v1")))), "removal", id="put-up-for-removal"
        ),
        pytest.param(
            cell(replace(PUBLISHED, removal=Removal("removals/berlin", tree("v1"), declined=True))),
            "declined",
            id="its-removal-was-declined",
        ),
        pytest.param(
            cell(replace(PUBLISHED, wanted=tree("v2"), declined=(tree("v2"),))),
            "declined",
            id="the-version-was-declined",
        ),
        pytest.param(
            cell(replace(PUBLISHED, declined=(tree("v1"),))), "published", id="declined-once-and-published-since"
        ),
        pytest.param(cell(outcome(PUBLISHED, "blocked", ERROR)), "blocked", id="an-error"),
        pytest.param(cell(outcome(DRAFTED, "blocked", ERROR), drafted="v2"), "blocked", id="an-error-beside-a-draft"),
        pytest.param(
            cell(outcome(DRAFTED, "blocked", conditions=[WAITS]), drafted="v2", proposed="d1"),
            "proposed",
            id="its-update-waits-for-the-proposal",
        ),
        pytest.param(
            cell(outcome(PUBLISHED, "blocked", conditions=[WAITS])), "blocked", id="not-ready-without-an-error"
        ),
        pytest.param(cell(outcome(PUBLISHED, "held", WARNING)), "held", id="kept-though-nothing-wants-it"),
        pytest.param(cell(PUBLISHED.tombstone()), "orphaned", id="given-up-and-still-there"),
        pytest.param(cell(PUBLISHED.tombstone(), None), None, id="gone-for-good"),
        pytest.param(cell(record(owned=False), None), None, id="never-there"),
        pytest.param(
            cell(outcome(record(owned=False), "blocked", ERROR), None), "blocked", id="denied-before-it-was-there"
        ),
    ],
)
def test_the_state_of_a_package(found: Cell | None, expected: str | None) -> None:
    assert (found and found.state) == expected
    assert expected is None or expected in STATES


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(cell(PUBLISHED), (3, False), id="a-revision-of-ours"),
        pytest.param(cell(PUBLISHED, "x"), (3, True), id="changed-by-people-since"),
        pytest.param(cell(UNKNOWN), (None, False), id="none-of-ours"),
        pytest.param(cell(PUBLISHED, None, "v2"), (None, False), id="not-there"),
    ],
)
def test_what_is_published_and_whether_people_changed_it(found: Cell | None, expected: tuple[int | None, bool]) -> None:
    assert found is not None
    assert (found.revision and found.revision.number, found.edited) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(cell(outcome(PUBLISHED, "blocked", ERROR, WARNING)), ["Broken"], id="errors-alone-block"),
        pytest.param(cell(outcome(PUBLISHED, "blocked", conditions=[WAITS])), ["DownstreamProposed"], id="not-ready"),
        pytest.param(cell(outcome(PUBLISHED, "held", WARNING)), ["Odd"], id="what-holds-it"),
        pytest.param(cell(outcome(PUBLISHED, "published", WARNING)), [], id="a-warning-is-no-reason"),
    ],
)
def test_reasons_are_those_of_the_last_pass(found: Cell | None, expected: list[str]) -> None:
    assert found is not None
    assert [one.reason for one in found.reasons] == expected


def test_a_status_file_is_ours_where_it_is_that_of_a_revision() -> None:
    ours = cell(PUBLISHED)
    assert ours is not None

    assert replace(ours, status=OURS.status).is_status_ours
    assert not replace(ours, status=offer("x").status).is_status_ours
