"""Tests of the actions on a draft: allowed transitions, refusals and results."""

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
from tests.unit.planning.builders import build_commit_id, build_record, build_target, build_tree_id, build_version

GATE = BlockingReason("GateNotMet", "gw: tested is not reported")
FAULT = BlockingReason("RenderFailed", "gw: Rendered is False")
HEAD, OLD = build_commit_id("d1"), build_commit_id("d0")


def build_file(name: str, fits: bool = True) -> DraftedFile:
    return DraftedFile(name, ObjectId("f1"), FILE_MODE, fits)


GW = DraftedPackage("gw", build_record(), None, build_tree_id("t1"), {})
DB = DraftedPackage("db", build_record(), None, build_tree_id("t2"), {})
BOTH = (build_file(".reconciler/db.yaml"), build_file("db/x"), build_file(".reconciler/gw.yaml"), build_file("gw/x"))


def build_draft(
    *packages: DraftedPackage,
    proposed_head: CommitId | None = None,
    paths: tuple[DraftedFile, ...] = BOTH,
    deploys: bool = True,
) -> OpenDraft:
    where = build_target(is_deployment=deploys)
    listed = packages or (DB, GW)
    return OpenDraft(
        where, "drafts/berlin", HEAD, build_commit_id("b0"), build_commit_id("b1"), proposed_head, False, listed, paths
    )


def build_gated_package(**fields: object) -> DraftedPackage:
    return replace(GW, unmet_gates=(GATE,), **fields)  # type: ignore[arg-type]


CONFLICT = {"kind": "field", "pointer": "/spec/replicas", "local": 5, "upstream": 3, "chosen": "local", "rule": "D2"}


def build_package_with_conflict() -> DraftedPackage:
    """Return a package whose status file records a conflict."""
    return replace(GW, status={"conflicts": [CONFLICT]})


def build_package_with_recorded_conflict() -> DraftedPackage:
    """Return a package whose conflict is in its record and not in its status file."""
    return replace(GW, record=replace(GW.record, draft_version=build_version("t1"), conflicts=(CONFLICT,)))


CLASH = (*BOTH[:3], build_file("gw/x", fits=False))


@pytest.mark.parametrize(
    ("open_draft", "packages", "expected"),
    [
        pytest.param(build_draft(), "", "ProposeDraft", id="a-draft"),
        pytest.param(build_draft(proposed_head=OLD), "", "ProposeDraft", id="a-stale-proposal"),
        pytest.param(build_draft(proposed_head=HEAD), "", "NoTransition", id="proposed-already"),
        pytest.param(build_draft(paths=()), "", "NoTransition", id="nothing-offered"),
        pytest.param(build_draft(DB, build_gated_package()), "", "GateNotMet", id="a-gate"),
        pytest.param(build_draft(DB, build_gated_package()), "db", "ProposeDraft", id="a-gate-of-another-package"),
        pytest.param(
            build_draft(DB, build_gated_package(), deploys=False),
            "",
            "ProposeDraft",
            id="gate-in-a-repository-without-deployment",
        ),
        pytest.param(
            build_draft(replace(GW, errors=(FAULT,)), deploys=False), "", "RenderFailed", id="a-fault-anywhere"
        ),
        pytest.param(build_draft(DB, build_package_with_conflict()), "", "ConflictsNotAccepted", id="conflicts"),
        pytest.param(
            build_draft(DB, build_package_with_conflict()), "db", "ProposeDraft", id="conflicts-of-another-package"
        ),
        pytest.param(
            build_draft(DB, build_package_with_conflict(), deploys=False),
            "",
            "ConflictsNotAccepted",
            id="conflicts-anywhere",
        ),
        pytest.param(
            build_draft(DB, build_package_with_recorded_conflict()),
            "",
            "ConflictsNotAccepted",
            id="conflicts-that-only-the-state-has",
        ),
        pytest.param(
            build_draft(DB, replace(GW, status={"conflicts": [1]})),
            "",
            "ConflictsNotAccepted",
            id="unreadable-conflicts",
        ),
        pytest.param(build_draft(paths=CLASH), "", "BranchMoved", id="both-changed-a-file"),
        pytest.param(build_draft(paths=CLASH), "db", "ProposeDraft", id="both-changed-another-packages-file"),
        pytest.param(
            build_draft(DB, build_gated_package(errors=(FAULT,)), paths=CLASH),
            "",
            "RenderFailed GateNotMet BranchMoved",
            id="all",
        ),
    ],
)
def test_propose(open_draft: OpenDraft, packages: str, expected: str) -> None:
    assert describe_decision(propose_draft(open_draft, packages.split())) == expected


@pytest.mark.parametrize(
    ("open_draft", "packages", "expected"),
    [
        pytest.param(build_draft(proposed_head=HEAD), "", "PublishDraft whole db gw", id="all"),
        pytest.param(build_draft(proposed_head=HEAD), "gw", "PublishDraft gw", id="one-of-two"),
        pytest.param(build_draft(proposed_head=HEAD), "gw db", "PublishDraft whole db gw", id="both-by-name"),
        pytest.param(
            build_draft(GW, proposed_head=HEAD, paths=BOTH[2:]), "gw", "PublishDraft whole gw", id="the-last-one"
        ),
        pytest.param(
            build_draft(proposed_head=HEAD, paths=(*BOTH, build_file("R"))),
            "gw db",
            "PublishDraft db gw",
            id="people-offer-more",
        ),
        pytest.param(build_draft(), "", "NotProposed", id="not-proposed"),
        pytest.param(build_draft(proposed_head=OLD), "", "NotProposed", id="proposed-as-it-was"),
        pytest.param(
            build_draft(DB, build_gated_package(), proposed_head=HEAD), "", "GateNotMet", id="a-gate-closed-since"
        ),
        pytest.param(
            build_draft(DB, build_package_with_conflict(), proposed_head=HEAD),
            "",
            "ConflictsNotAccepted",
            id="conflicts",
        ),
        pytest.param(
            build_draft(DB, build_package_with_conflict(), proposed_head=HEAD),
            "db",
            "PublishDraft db",
            id="conflicts-of-another-package",
        ),
        pytest.param(
            build_draft(DB, build_gated_package(), proposed_head=HEAD),
            "db",
            "PublishDraft db",
            id="a-gate-of-another-package",
        ),
        pytest.param(
            build_draft(DB, build_gated_package()), "", "NotProposed GateNotMet", id="every-reason-is-reported"
        ),
        pytest.param(build_draft(proposed_head=HEAD, paths=BOTH[:2]), "gw", "NoTransition", id="published-already"),
    ],
)
def test_approve(open_draft: OpenDraft, packages: str, expected: str) -> None:
    assert describe_decision(approve_draft(open_draft, packages.split(), should_propose=False)) == expected


def test_approval_with_proposal_still_requires_every_gate() -> None:
    assert describe_decision(approve_draft(build_draft(), (), should_propose=True)) == "PublishDraft whole db gw"
    assert (
        describe_decision(approve_draft(build_draft(DB, build_gated_package()), (), should_propose=True))
        == "GateNotMet"
    )


def test_accepted_conflicts_do_not_accept_gates() -> None:
    open_draft = build_draft(DB, build_package_with_conflict())

    assert describe_decision(propose_draft(open_draft, (), accepts_conflicts=True)) == "ProposeDraft"
    assert (
        describe_decision(approve_draft(open_draft, (), should_propose=True, accepts_conflicts=True))
        == "PublishDraft whole db gw"
    )
    assert (
        describe_decision(approve_draft(open_draft, (), should_propose=False, accepts_conflicts=True)) == "NotProposed"
    )
    assert (
        describe_decision(propose_draft(build_draft(DB, build_gated_package()), (), accepts_conflicts=True))
        == "GateNotMet"
    )


def test_reject_applies_to_current_and_stale_proposals() -> None:
    assert [
        describe_decision(reject_draft(build_draft(proposed_head=commit_id))) for commit_id in (HEAD, OLD, None)
    ] == [
        "RejectDraft",
        "RejectDraft",
        "NoTransition",
    ]


@pytest.mark.parametrize(
    ("packages", "expected"),
    [("", "DropDraft whole db gw"), ("gw", "DropDraft gw"), ("gw db", "DropDraft whole db gw")],
)
def test_drop(packages: str, expected: str) -> None:
    assert describe_decision(drop_draft(build_draft(), packages.split())) == expected


def test_package_with_a_longer_name_is_not_selected() -> None:
    open_draft = build_draft(paths=(build_file("gw/x"), build_file("gw-2/x"), build_file(".reconciler/gw-2.yaml")))

    assert [drafted_file.path for drafted_file in open_draft.select_files(["gw"])] == ["gw/x"]
    assert [drafted_file.path for drafted_file in open_draft.files_outside_packages] == [
        "gw-2/x",
        ".reconciler/gw-2.yaml",
    ]


def describe_decision(decision: object) -> str:
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
