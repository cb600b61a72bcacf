"""What people may do with a draft, as a table: where it stands, what is in its way, what it comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import FILE_MODE, CommitId, ObjectId
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedFile, DraftedPackage, OpenDraft
from reconciler.planning.lifecycle.transitions import (
    DropDraft,
    NoTransition,
    ProposeDraft,
    PublishDraft,
    RefusedTransition,
    RejectDraft,
    approve_draft,
    drop_draft,
    propose_draft,
    reject_draft,
)
from tests.unit.planning.values import commit, destination, offer, record, tree

GATE = BlockingReason("GateNotMet", "gw: tested is not reported")
FAULT = BlockingReason("RenderFailed", "gw: Rendered is False")
HEAD, OLD = commit("d1"), commit("d0")


def path(name: str, fits: bool = True) -> DraftedFile:
    return DraftedFile(name, ObjectId("f1"), FILE_MODE, fits)


GW = DraftedPackage("gw", record(), None, tree("t1"), {})
DB = DraftedPackage("db", record(), None, tree("t2"), {})
BOTH = (path(".reconciler/db.yaml"), path("db/x"), path(".reconciler/gw.yaml"), path("gw/x"))


def draft(
    *packages: DraftedPackage,
    proposed_head: CommitId | None = None,
    paths: tuple[DraftedFile, ...] = BOTH,
    deploys: bool = True,
) -> OpenDraft:
    where = destination(is_deployment=deploys)
    listed = packages or (DB, GW)
    return OpenDraft(where, "drafts/berlin", HEAD, commit("b0"), commit("b1"), proposed_head, False, listed, paths)


def gated(**fields: object) -> DraftedPackage:
    return replace(GW, unmet_gates=(GATE,), **fields)  # type: ignore[arg-type]


CONFLICT = {"kind": "field", "pointer": "/spec/replicas", "local": 5, "upstream": 3, "chosen": "local", "rule": "D2"}


def disputed() -> DraftedPackage:
    """Return a package whose status file records a conflict."""
    return replace(GW, status={"conflicts": [CONFLICT]})


def remembered() -> DraftedPackage:
    """Return a package whose conflict somebody removed from its status file."""
    return replace(GW, record=replace(GW.record, draft_version=offer("t1"), conflicts=(CONFLICT,)))


CLASH = (*BOTH[:3], path("gw/x", fits=False))


@pytest.mark.parametrize(
    ("open_draft", "packages", "expected"),
    [
        pytest.param(draft(), "", "ProposeDraft", id="a-draft"),
        pytest.param(draft(proposed_head=OLD), "", "ProposeDraft", id="a-stale-proposal"),
        pytest.param(draft(proposed_head=HEAD), "", "NoTransition", id="proposed-already"),
        pytest.param(draft(paths=()), "", "NoTransition", id="nothing-offered"),
        pytest.param(draft(DB, gated()), "", "GateNotMet", id="a-gate"),
        pytest.param(draft(DB, gated()), "db", "ProposeDraft", id="a-gate-of-another-package"),
        pytest.param(draft(DB, gated(), deploys=False), "", "ProposeDraft", id="a-gate-where-nobody-deploys"),
        pytest.param(draft(replace(GW, errors=(FAULT,)), deploys=False), "", "RenderFailed", id="a-fault-anywhere"),
        pytest.param(draft(DB, disputed()), "", "ConflictsNotAccepted", id="conflicts"),
        pytest.param(draft(DB, disputed()), "db", "ProposeDraft", id="conflicts-of-another-package"),
        pytest.param(draft(DB, disputed(), deploys=False), "", "ConflictsNotAccepted", id="conflicts-anywhere"),
        pytest.param(draft(DB, remembered()), "", "ConflictsNotAccepted", id="conflicts-that-only-the-state-has"),
        pytest.param(
            draft(DB, replace(GW, status={"conflicts": [1]})), "", "ConflictsNotAccepted", id="unreadable-conflicts"
        ),
        pytest.param(draft(paths=CLASH), "", "BranchMoved", id="both-changed-a-file"),
        pytest.param(draft(paths=CLASH), "db", "ProposeDraft", id="both-changed-another-packages-file"),
        pytest.param(
            draft(DB, gated(errors=(FAULT,)), paths=CLASH), "", "RenderFailed GateNotMet BranchMoved", id="all"
        ),
    ],
)
def test_propose(open_draft: OpenDraft, packages: str, expected: str) -> None:
    assert told(propose_draft(open_draft, packages.split())) == expected


@pytest.mark.parametrize(
    ("open_draft", "packages", "expected"),
    [
        pytest.param(draft(proposed_head=HEAD), "", "PublishDraft whole db gw", id="all"),
        pytest.param(draft(proposed_head=HEAD), "gw", "PublishDraft gw", id="one-of-two"),
        pytest.param(draft(proposed_head=HEAD), "gw db", "PublishDraft whole db gw", id="both-by-name"),
        pytest.param(draft(GW, proposed_head=HEAD, paths=BOTH[2:]), "gw", "PublishDraft whole gw", id="the-last-one"),
        pytest.param(
            draft(proposed_head=HEAD, paths=(*BOTH, path("R"))), "gw db", "PublishDraft db gw", id="people-offer-more"
        ),
        pytest.param(draft(), "", "NotProposed", id="not-proposed"),
        pytest.param(draft(proposed_head=OLD), "", "NotProposed", id="proposed-as-it-was"),
        pytest.param(draft(DB, gated(), proposed_head=HEAD), "", "GateNotMet", id="a-gate-closed-since"),
        pytest.param(draft(DB, disputed(), proposed_head=HEAD), "", "ConflictsNotAccepted", id="conflicts"),
        pytest.param(
            draft(DB, disputed(), proposed_head=HEAD), "db", "PublishDraft db", id="conflicts-of-another-package"
        ),
        pytest.param(draft(DB, gated(), proposed_head=HEAD), "db", "PublishDraft db", id="a-gate-of-another-package"),
        pytest.param(draft(DB, gated()), "", "NotProposed GateNotMet", id="every-reason-is-told"),
        pytest.param(draft(proposed_head=HEAD, paths=BOTH[:2]), "gw", "NoTransition", id="published-already"),
    ],
)
def test_approve(open_draft: OpenDraft, packages: str, expected: str) -> None:
    assert told(approve_draft(open_draft, packages.split(), should_propose=False)) == expected


def test_at_once_needs_no_proposal_but_every_gate() -> None:
    assert told(approve_draft(draft(), (), should_propose=True)) == "PublishDraft whole db gw"
    assert told(approve_draft(draft(DB, gated()), (), should_propose=True)) == "GateNotMet"


def test_conflicts_are_accepted_and_nothing_else_is() -> None:
    open_draft = draft(DB, disputed())

    assert told(propose_draft(open_draft, (), accepts_conflicts=True)) == "ProposeDraft"
    assert (
        told(approve_draft(open_draft, (), should_propose=True, accepts_conflicts=True)) == "PublishDraft whole db gw"
    )
    assert told(approve_draft(open_draft, (), should_propose=False, accepts_conflicts=True)) == "NotProposed"
    assert told(propose_draft(draft(DB, gated()), (), accepts_conflicts=True)) == "GateNotMet"


def test_reject_takes_back_what_is_proposed_as_it_stands_or_was() -> None:
    assert [told(reject_draft(draft(proposed_head=commit_id))) for commit_id in (HEAD, OLD, None)] == [
        "RejectDraft",
        "RejectDraft",
        "NoTransition",
    ]


@pytest.mark.parametrize(
    ("packages", "expected"),
    [("", "DropDraft whole db gw"), ("gw", "DropDraft gw"), ("gw db", "DropDraft whole db gw")],
)
def test_drop(packages: str, expected: str) -> None:
    assert told(drop_draft(draft(), packages.split())) == expected


def test_a_package_is_not_taken_for_one_whose_name_starts_with_its_own() -> None:
    open_draft = draft(paths=(path("gw/x"), path("gw-2/x"), path(".reconciler/gw-2.yaml")))

    assert [drafted_file.path for drafted_file in open_draft.select_files(["gw"])] == ["gw/x"]
    assert [drafted_file.path for drafted_file in open_draft.files_outside_packages] == [
        "gw-2/x",
        ".reconciler/gw-2.yaml",
    ]


def told(decision: object) -> str:
    match decision:
        case RefusedTransition(reasons):
            return " ".join(reason.reason for reason in reasons)
        case PublishDraft(packages, _, whole) | DropDraft(packages, whole):
            return " ".join(
                [
                    type(decision).__name__,
                    *["whole"] * whole,
                    *(drafted_package.package for drafted_package in packages),
                ]
            )
        case NoTransition() | ProposeDraft() | RejectDraft():
            return type(decision).__name__
    raise AssertionError(decision)
