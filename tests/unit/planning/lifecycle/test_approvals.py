"""Tests of approvals by annotation: parsed policies, and the drafts that still require a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import FILE_MODE, ObjectId
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.lifecycle.open_drafts import BlockingReason, DraftedFile, DraftedPackage, OpenDraft
from reconciler.planning.lifecycle.transitions import (
    ApprovalPolicy,
    PublishDraft,
    decide_approval,
    find_approvable_packages,
    list_approval_findings,
    parse_approval_policy,
)
from reconciler.planning.model.outcomes import APPROVAL_DELAY_ANNOTATION, APPROVAL_POLICY_ANNOTATION, Blocked, Unchanged
from reconciler.planning.model.state import PackageRecord, PublishedRevision
from reconciler.planning.observe.target_snapshot import TargetHeads
from tests.unit.planning.builders import (
    build_commit_id,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_variant,
    build_version,
)

INITIAL, ALWAYS = ApprovalPolicy("initial"), ApprovalPolicy("always")
HEAD, OLD = build_commit_id("d1"), build_commit_id("d0")
GATE = BlockingReason("GateNotMet", "gw: tested is not reported")
FAULT = BlockingReason("RenderFailed", "gw: Rendered is False")
NEW = build_record(draft_version=build_version("t1"), draft_branch="drafts/berlin")
UPDATE = build_record(
    draft_version=build_version("t2", "t1"),
    published_version=build_version("t1"),
    last_revision=1,
    draft_branch="drafts/berlin",
)
GW = DraftedPackage("gw", NEW, None, build_tree_id("t1"), {})
DB = DraftedPackage("db", build_record(), None, build_tree_id("t9"), {})
PATHS = tuple(DraftedFile(path, ObjectId("f1"), FILE_MODE, True) for path in (".reconciler/gw.yaml", "db/x", "gw/x"))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({APPROVAL_DELAY_ANNOTATION: "soon"}, None, id="a-delay-of-nothing"),
        pytest.param({APPROVAL_POLICY_ANNOTATION: "initial"}, INITIAL, id="initial"),
        pytest.param({APPROVAL_POLICY_ANNOTATION: "always"}, ALWAYS, id="always"),
        pytest.param(
            {APPROVAL_POLICY_ANNOTATION: "always", APPROVAL_DELAY_ANNOTATION: "1h30m"},
            ApprovalPolicy("always", "1h30m"),
            id="with-a-delay",
        ),
        pytest.param(
            {APPROVAL_POLICY_ANNOTATION: "Always"},
            f'the annotation {APPROVAL_POLICY_ANNOTATION} must be "initial" or "always", but is "Always"',
            id="case",
        ),
        pytest.param(
            {APPROVAL_POLICY_ANNOTATION: ""},
            f'the annotation {APPROVAL_POLICY_ANNOTATION} must be "initial" or "always", but is ""',
            id="empty",
        ),
        *(
            pytest.param(
                {APPROVAL_POLICY_ANNOTATION: "initial", APPROVAL_DELAY_ANNOTATION: text},
                f'the annotation {APPROVAL_DELAY_ANNOTATION} must be a duration such as "10m" or "1h30m", but is "{text}"',
                id=f"delay-{text}",
            )
            for text in ("soon", "10", "-5m", "")
        ),
    ],
)
def test_parse_approval_policy(annotations: dict[str, str], expected: ApprovalPolicy | str | None) -> None:
    assert parse_approval_policy(annotations) == expected


@pytest.mark.parametrize(
    ("delay", "seconds"), [("", 0), ("0", 0), ("0s", 0), ("10m", 600), ("1h30m", 5400), ("1500ms", 2)]
)
def test_delay_in_seconds(delay: str, seconds: int) -> None:
    assert ApprovalPolicy("always", delay).delay_seconds == seconds


@pytest.mark.parametrize(
    ("known", "is_initial"),
    [
        pytest.param(NEW, True, id="never-published"),
        pytest.param(UPDATE, False, id="published"),
        pytest.param(replace(NEW, last_revision=3), False, id="published-once-and-gone"),
        pytest.param(build_record(draft_version=build_version("t2", "t1")), False, id="adopted"),
    ],
)
def test_initial_policy_applies_to_unpublished_packages(known: PackageRecord, is_initial: bool) -> None:
    assert INITIAL.applies_to(known) is is_initial
    assert ALWAYS.applies_to(known)


def build_draft(drafted_package: DraftedPackage = GW, deploys: bool = True, **fields: object) -> OpenDraft:
    whole = OpenDraft(
        build_target(is_deployment=deploys),
        "drafts/berlin",
        HEAD,
        build_commit_id("b0"),
        build_commit_id("b1"),
        None,
        False,
        (DB, drafted_package),
        PATHS,
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def build_package(**fields: object) -> DraftedPackage:
    return replace(GW, **fields)  # type: ignore[arg-type]


CLASH = (*PATHS[:2], replace(PATHS[2], is_mergeable=False))
CONFLICTED = build_package(record=replace(NEW, conflicts=({"kind": "field"},)))


@pytest.mark.parametrize(
    ("open_draft", "policy", "expected"),
    [
        pytest.param(build_draft(), INITIAL, "gw", id="initial"),
        pytest.param(build_draft(), ALWAYS, "gw", id="always"),
        pytest.param(
            build_draft(build_package(record=UPDATE, published_tree=build_tree_id("t1"))),
            ALWAYS,
            "gw",
            id="always-an-update",
        ),
        pytest.param(
            build_draft(build_package(published_tree=build_tree_id("t0"))),
            INITIAL,
            "PublishedBefore",
            id="initial-over-something",
        ),
        pytest.param(build_draft(proposed_head=HEAD), ALWAYS, "Proposed", id="proposed"),
        pytest.param(build_draft(proposed_head=OLD), ALWAYS, "Proposed", id="proposed-and-moved-since"),
        pytest.param(build_draft(is_edited=True), ALWAYS, "Edited", id="people-on-the-branch"),
        pytest.param(build_draft(build_package(is_edited=True)), ALWAYS, "Edited", id="people-in-the-package"),
        pytest.param(
            build_draft(build_package(status={"conflicts": [{}]})),
            ALWAYS,
            "ConflictsNotAccepted",
            id="recorded-conflicts",
        ),
        pytest.param(build_draft(CONFLICTED), ALWAYS, "ConflictsNotAccepted", id="conflicts-in-the-record"),
        pytest.param(build_draft(build_package(unmet_gates=(GATE,))), ALWAYS, "GateNotMet", id="a-gate"),
        pytest.param(
            build_draft(build_package(unmet_gates=(GATE,)), deploys=False), ALWAYS, "GateNotMet", id="a-gate-anywhere"
        ),
        pytest.param(build_draft(build_package(errors=(FAULT,))), ALWAYS, "RenderFailed", id="a-fault"),
        pytest.param(build_draft(files=CLASH), ALWAYS, "BranchMoved", id="both-changed-a-file"),
        pytest.param(build_draft(files=PATHS[1:2]), ALWAYS, "NothingOffered", id="nothing-offered"),
        pytest.param(build_draft(build_package(drafted_tree=None)), ALWAYS, "RemovalDraft", id="a-removal"),
    ],
)
def test_draft_that_a_person_must_approve(open_draft: OpenDraft, policy: ApprovalPolicy, expected: str) -> None:
    decided = decide_approval(open_draft, open_draft.packages[1], policy)

    assert describe_decision(decided) == expected


@pytest.mark.parametrize(("word", "expected"), [("is_rejected", "Rejected"), ("has_approved_request", "Proposed")])
def test_proposal_or_rejection_of_a_person_has_priority(word: str, expected: str) -> None:
    assert describe_decision(decide_approval(build_draft(), GW, ALWAYS, **{word: True})) == expected


def describe_decision(decided: PublishDraft | BlockingReason) -> str:
    if isinstance(decided, BlockingReason):
        return decided.reason
    assert [drafted_file.path for drafted_file in decided.files] == [".reconciler/gw.yaml", "gw/x"]
    return " ".join(drafted_package.package for drafted_package in decided.packages)


def build_plan(known: PackageRecord, *outcomes: Unchanged | Blocked) -> TargetPlan:
    after = build_state(packages={"gw": known})
    return TargetPlan(build_target(), TargetHeads(), after, after, outcomes)


DRAFTED = Unchanged(build_variant(), NEW, "drafted")
BLOCKED = Blocked(build_variant(), NEW, (), (), NEW.observed)


@pytest.mark.parametrize(
    ("known", "outcome", "expected"),
    [
        pytest.param(NEW, DRAFTED, {"gw": ALWAYS}, id="drafted"),
        pytest.param(NEW, BLOCKED, {}, id="its-owner-is-not-ready"),
        pytest.param(replace(NEW, draft_version=None), DRAFTED, {}, id="nothing-offered"),
    ],
)
def test_packages_with_approvable_drafts(
    known: PackageRecord, outcome: Unchanged | Blocked, expected: dict[str, ApprovalPolicy]
) -> None:
    assert (
        find_approvable_packages(
            build_plan(replace(known, annotations={APPROVAL_POLICY_ANNOTATION: "always"}), outcome)
        )
        == expected
    )


def test_package_without_outcome_is_not_approvable() -> None:
    assert find_approvable_packages(build_plan(replace(NEW, annotations={APPROVAL_POLICY_ANNOTATION: "always"}))) == {}


@pytest.mark.parametrize(
    ("known", "policy", "codes"),
    [
        pytest.param(NEW, "initial", ["ApprovalAhead"], id="ahead"),
        pytest.param(UPDATE, "initial", [], id="initial-and-published"),
        pytest.param(UPDATE, "always", ["ApprovalAhead"], id="always"),
        pytest.param(NEW, "never", ["ApprovalPolicyInvalid"], id="invalid"),
        pytest.param(
            replace(NEW, draft_version=None, revisions=(PublishedRevision(1, HEAD, build_version("t1")),)),
            "never",
            [],
            id="no-draft",
        ),
    ],
)
def test_findings_of_approval_policies(known: PackageRecord, policy: str, codes: list[str]) -> None:
    findings = list_approval_findings(
        build_plan(replace(known, annotations={APPROVAL_POLICY_ANNOTATION: policy}), DRAFTED)
    )

    assert [finding.code for finding in findings] == codes
