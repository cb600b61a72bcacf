"""What people may do with a draft, as a table: where it stands, what is in its way, what it comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.planning.lifecycle import (
    Drop,
    Nothing,
    Propose,
    Publish,
    Refused,
    Reject,
    approve,
    drop,
    propose,
    reject,
)
from reconciler.planning.open_drafts import DraftedPackage, Offered, OpenDraft, Reason
from reconciler.snapshot.objects import FILE, CommitId, ObjectId
from tests.unit.planning.values import commit, destination, offer, record, tree

GATE = Reason("GateNotMet", "gw: tested is not reported")
FAULT = Reason("RenderFailed", "gw: Rendered is False")
HEAD, OLD = commit("d1"), commit("d0")


def path(name: str, fits: bool = True) -> Offered:
    return Offered(name, ObjectId("f1"), FILE, fits)


GW = DraftedPackage("gw", record(), None, tree("t1"), {})
DB = DraftedPackage("db", record(), None, tree("t2"), {})
BOTH = (path(".reconciler/db.yaml"), path("db/x"), path(".reconciler/gw.yaml"), path("gw/x"))


def draft(
    *packages: DraftedPackage, proposed: CommitId | None = None, paths: tuple[Offered, ...] = BOTH, deploys: bool = True
) -> OpenDraft:
    where = destination(deployment=deploys)
    listed = packages or (DB, GW)
    return OpenDraft(where, "drafts/berlin", HEAD, commit("b0"), commit("b1"), proposed, False, listed, paths)


def gated(**fields: object) -> DraftedPackage:
    return replace(GW, unmet=(GATE,), **fields)  # type: ignore[arg-type]


CONFLICT = {"kind": "field", "pointer": "/spec/replicas", "local": 5, "upstream": 3, "chosen": "local", "rule": "D2"}


def disputed() -> DraftedPackage:
    """Return a package whose status file records a conflict."""
    return replace(GW, status={"conflicts": [CONFLICT]})


def remembered() -> DraftedPackage:
    """Return a package whose conflict somebody removed from its status file."""
    return replace(GW, record=replace(GW.record, put=offer("t1"), conflicts=(CONFLICT,)))


CLASH = (*BOTH[:3], path("gw/x", fits=False))


@pytest.mark.parametrize(
    ("one", "packages", "expected"),
    [
        pytest.param(draft(), "", "Propose", id="a-draft"),
        pytest.param(draft(proposed=OLD), "", "Propose", id="a-stale-proposal"),
        pytest.param(draft(proposed=HEAD), "", "Nothing", id="proposed-already"),
        pytest.param(draft(paths=()), "", "Nothing", id="nothing-offered"),
        pytest.param(draft(DB, gated()), "", "GateNotMet", id="a-gate"),
        pytest.param(draft(DB, gated()), "db", "Propose", id="a-gate-of-another-package"),
        pytest.param(draft(DB, gated(), deploys=False), "", "Propose", id="a-gate-where-nobody-deploys"),
        pytest.param(draft(replace(GW, faults=(FAULT,)), deploys=False), "", "RenderFailed", id="a-fault-anywhere"),
        pytest.param(draft(DB, disputed()), "", "ConflictsNotAccepted", id="conflicts"),
        pytest.param(draft(DB, disputed()), "db", "Propose", id="conflicts-of-another-package"),
        pytest.param(draft(DB, disputed(), deploys=False), "", "ConflictsNotAccepted", id="conflicts-anywhere"),
        pytest.param(draft(DB, remembered()), "", "ConflictsNotAccepted", id="conflicts-that-only-the-state-has"),
        pytest.param(
            draft(DB, replace(GW, status={"conflicts": [1]})), "", "ConflictsNotAccepted", id="unreadable-conflicts"
        ),
        pytest.param(draft(paths=CLASH), "", "BranchMoved", id="both-changed-a-file"),
        pytest.param(draft(paths=CLASH), "db", "Propose", id="both-changed-another-packages-file"),
        pytest.param(
            draft(DB, gated(faults=(FAULT,)), paths=CLASH), "", "RenderFailed GateNotMet BranchMoved", id="all"
        ),
    ],
)
def test_propose(one: OpenDraft, packages: str, expected: str) -> None:
    assert told(propose(one, packages.split())) == expected


@pytest.mark.parametrize(
    ("one", "packages", "expected"),
    [
        pytest.param(draft(proposed=HEAD), "", "Publish whole db gw", id="all"),
        pytest.param(draft(proposed=HEAD), "gw", "Publish gw", id="one-of-two"),
        pytest.param(draft(proposed=HEAD), "gw db", "Publish whole db gw", id="both-by-name"),
        pytest.param(draft(GW, proposed=HEAD, paths=BOTH[2:]), "gw", "Publish whole gw", id="the-last-one"),
        pytest.param(draft(proposed=HEAD, paths=(*BOTH, path("R"))), "gw db", "Publish db gw", id="people-offer-more"),
        pytest.param(draft(), "", "NotProposed", id="not-proposed"),
        pytest.param(draft(proposed=OLD), "", "NotProposed", id="proposed-as-it-was"),
        pytest.param(draft(DB, gated(), proposed=HEAD), "", "GateNotMet", id="a-gate-closed-since"),
        pytest.param(draft(DB, disputed(), proposed=HEAD), "", "ConflictsNotAccepted", id="conflicts"),
        pytest.param(draft(DB, disputed(), proposed=HEAD), "db", "Publish db", id="conflicts-of-another-package"),
        pytest.param(draft(DB, gated(), proposed=HEAD), "db", "Publish db", id="a-gate-of-another-package"),
        pytest.param(draft(DB, gated()), "", "NotProposed GateNotMet", id="every-reason-is-told"),
        pytest.param(draft(proposed=HEAD, paths=BOTH[:2]), "gw", "Nothing", id="published-already"),
    ],
)
def test_approve(one: OpenDraft, packages: str, expected: str) -> None:
    assert told(approve(one, packages.split(), at_once=False)) == expected


def test_at_once_needs_no_proposal_but_every_gate() -> None:
    assert told(approve(draft(), (), at_once=True)) == "Publish whole db gw"
    assert told(approve(draft(DB, gated()), (), at_once=True)) == "GateNotMet"


def test_conflicts_are_accepted_and_nothing_else_is() -> None:
    one = draft(DB, disputed())

    assert told(propose(one, (), accepts_conflicts=True)) == "Propose"
    assert told(approve(one, (), at_once=True, accepts_conflicts=True)) == "Publish whole db gw"
    assert told(approve(one, (), at_once=False, accepts_conflicts=True)) == "NotProposed"
    assert told(propose(draft(DB, gated()), (), accepts_conflicts=True)) == "GateNotMet"


def test_reject_takes_back_what_is_proposed_as_it_stands_or_was() -> None:
    assert [told(reject(draft(proposed=one))) for one in (HEAD, OLD, None)] == ["Reject", "Reject", "Nothing"]


@pytest.mark.parametrize(
    ("packages", "expected"), [("", "Drop whole db gw"), ("gw", "Drop gw"), ("gw db", "Drop whole db gw")]
)
def test_drop(packages: str, expected: str) -> None:
    assert told(drop(draft(), packages.split())) == expected


def test_a_package_is_not_taken_for_one_whose_name_starts_with_its_own() -> None:
    one = draft(paths=(path("gw/x"), path("gw-2/x"), path(".reconciler/gw-2.yaml")))

    assert [each.path for each in one.paths_of(["gw"])] == ["gw/x"]
    assert [each.path for each in one.beside] == ["gw-2/x", ".reconciler/gw-2.yaml"]


def told(decision: object) -> str:
    match decision:
        case Refused(reasons):
            return " ".join(reason.reason for reason in reasons)
        case Publish(packages, _, whole) | Drop(packages, whole):
            return " ".join([type(decision).__name__, *["whole"] * whole, *(one.package for one in packages)])
        case Nothing() | Propose() | Reject():
            return type(decision).__name__
    raise AssertionError(decision)
