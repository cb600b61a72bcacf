"""Approvals by annotation, as a table: what annotations say, and what leaves a draft to people."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.planning.approvals import DELAY, POLICY, Policy, decide_approval, policy_findings, read_policy, watched
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.lifecycle import Publish
from reconciler.planning.open_drafts import DraftedPackage, Offered, OpenDraft, Reason
from reconciler.planning.outcome import Blocked, Unchanged
from reconciler.planning.standing import Heads
from reconciler.planning.state import PackageRecord, Revision
from reconciler.snapshot.objects import FILE, ObjectId
from tests.unit.planning.values import commit, destination, offer, record, state, tree, variant

INITIAL, ALWAYS = Policy("initial"), Policy("always")
HEAD, OLD = commit("d1"), commit("d0")
GATE = Reason("GateNotMet", "gw: tested is not reported")
FAULT = Reason("RenderFailed", "gw: Rendered is False")
NEW = record(put=offer("t1"), draft="drafts/berlin")
UPDATE = record(put=offer("t2", "t1"), ours=offer("t1"), revision=1, draft="drafts/berlin")
GW = DraftedPackage("gw", NEW, None, tree("t1"), {})
DB = DraftedPackage("db", record(), None, tree("t9"), {})
PATHS = tuple(Offered(path, ObjectId("f1"), FILE, True) for path in (".reconciler/gw.yaml", "db/x", "gw/x"))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({DELAY: "soon"}, None, id="a-delay-of-nothing"),
        pytest.param({POLICY: "initial"}, INITIAL, id="initial"),
        pytest.param({POLICY: "always"}, ALWAYS, id="always"),
        pytest.param({POLICY: "always", DELAY: "1h30m"}, Policy("always", "1h30m"), id="with-a-delay"),
        pytest.param({POLICY: "Always"}, f'annotation {POLICY} must be "initial" or "always", not "Always"', id="case"),
        pytest.param({POLICY: ""}, f'annotation {POLICY} must be "initial" or "always", not ""', id="empty"),
        *(
            pytest.param(
                {POLICY: "initial", DELAY: text},
                f'annotation {DELAY} must be a duration such as "10m" or "1h30m", not "{text}"',
                id=f"delay-{text}",
            )
            for text in ("soon", "10", "-5m", "")
        ),
    ],
)
def test_what_annotations_say(annotations: dict[str, str], expected: Policy | str | None) -> None:
    assert read_policy(annotations) == expected


@pytest.mark.parametrize(
    ("delay", "seconds"), [("", 0), ("0", 0), ("0s", 0), ("10m", 600), ("1h30m", 5400), ("1500ms", 2)]
)
def test_a_delay_in_seconds(delay: str, seconds: int) -> None:
    assert Policy("always", delay).seconds == seconds


@pytest.mark.parametrize(
    ("known", "is_initial"),
    [
        pytest.param(NEW, True, id="never-published"),
        pytest.param(UPDATE, False, id="published"),
        pytest.param(replace(NEW, revision=3), False, id="published-once-and-gone"),
        pytest.param(record(put=offer("t2", "t1")), False, id="adopted"),
    ],
)
def test_initial_is_about_what_was_never_published(known: PackageRecord, is_initial: bool) -> None:
    assert INITIAL.covers(known) is is_initial
    assert ALWAYS.covers(known)


def draft(one: DraftedPackage = GW, deploys: bool = True, **fields: object) -> OpenDraft:
    whole = OpenDraft(
        destination(deployment=deploys),
        "drafts/berlin",
        HEAD,
        commit("b0"),
        commit("b1"),
        None,
        False,
        (DB, one),
        PATHS,
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def package(**fields: object) -> DraftedPackage:
    return replace(GW, **fields)  # type: ignore[arg-type]


CLASH = (*PATHS[:2], replace(PATHS[2], fits=False))
CONFLICTED = package(record=replace(NEW, conflicts=({"kind": "field"},)))


@pytest.mark.parametrize(
    ("one", "policy", "expected"),
    [
        pytest.param(draft(), INITIAL, "gw", id="initial"),
        pytest.param(draft(), ALWAYS, "gw", id="always"),
        pytest.param(draft(package(record=UPDATE, published=tree("t1"))), ALWAYS, "gw", id="always-an-update"),
        pytest.param(draft(package(published=tree("t0"))), INITIAL, "PublishedBefore", id="initial-over-something"),
        pytest.param(draft(proposed=HEAD), ALWAYS, "Proposed", id="proposed"),
        pytest.param(draft(proposed=OLD), ALWAYS, "Proposed", id="proposed-and-moved-since"),
        pytest.param(draft(edited=True), ALWAYS, "Edited", id="people-on-the-branch"),
        pytest.param(draft(package(edited=True)), ALWAYS, "Edited", id="people-in-the-package"),
        pytest.param(draft(package(status={"conflicts": [{}]})), ALWAYS, "ConflictsNotAccepted", id="conflicts-told"),
        pytest.param(draft(CONFLICTED), ALWAYS, "ConflictsNotAccepted", id="conflicts-remembered"),
        pytest.param(draft(package(unmet=(GATE,))), ALWAYS, "GateNotMet", id="a-gate"),
        pytest.param(draft(package(unmet=(GATE,)), deploys=False), ALWAYS, "GateNotMet", id="a-gate-anywhere"),
        pytest.param(draft(package(faults=(FAULT,))), ALWAYS, "RenderFailed", id="a-fault"),
        pytest.param(draft(paths=CLASH), ALWAYS, "BranchMoved", id="both-changed-a-file"),
        pytest.param(draft(paths=PATHS[1:2]), ALWAYS, "NothingOffered", id="nothing-offered"),
        pytest.param(draft(package(drafted=None)), ALWAYS, "RemovalDraft", id="a-removal"),
    ],
)
def test_what_leaves_a_draft_to_people(one: OpenDraft, policy: Policy, expected: str) -> None:
    decided = decide_approval(one, one.packages[1], policy)

    assert told(decided) == expected


@pytest.mark.parametrize(("word", "expected"), [("is_rejected", "Rejected"), ("is_held", "Proposed")])
def test_the_word_of_people_stands(word: str, expected: str) -> None:
    assert told(decide_approval(draft(), GW, ALWAYS, **{word: True})) == expected


def told(decided: Publish | Reason) -> str:
    if isinstance(decided, Reason):
        return decided.reason
    assert [one.path for one in decided.paths] == [".reconciler/gw.yaml", "gw/x"]
    return " ".join(one.package for one in decided.packages)


def plan(known: PackageRecord, *outcomes: Unchanged | Blocked) -> DestinationPlan:
    after = state(packages={"gw": known})
    return DestinationPlan(destination(), Heads(), after, after, outcomes)


DRAFTED = Unchanged(variant(), NEW, "drafted")
BLOCKED = Blocked(variant(), NEW, (), (), NEW.seen)


@pytest.mark.parametrize(
    ("known", "outcome", "expected"),
    [
        pytest.param(NEW, DRAFTED, {"gw": ALWAYS}, id="drafted"),
        pytest.param(NEW, BLOCKED, {}, id="its-owner-is-not-ready"),
        pytest.param(replace(NEW, put=None), DRAFTED, {}, id="nothing-offered"),
    ],
)
def test_whose_drafts_are_looked_at(
    known: PackageRecord, outcome: Unchanged | Blocked, expected: dict[str, Policy]
) -> None:
    assert watched(plan(replace(known, annotations={POLICY: "always"}), outcome)) == expected


def test_without_an_owner_nothing_is_looked_at() -> None:
    assert watched(plan(replace(NEW, annotations={POLICY: "always"}))) == {}


@pytest.mark.parametrize(
    ("known", "policy", "codes"),
    [
        pytest.param(NEW, "initial", ["ApprovalAhead"], id="ahead"),
        pytest.param(UPDATE, "initial", [], id="initial-and-published"),
        pytest.param(UPDATE, "always", ["ApprovalAhead"], id="always"),
        pytest.param(NEW, "never", ["ApprovalPolicyInvalid"], id="invalid"),
        pytest.param(replace(NEW, put=None, revisions=(Revision(1, HEAD, offer("t1")),)), "never", [], id="no-draft"),
    ],
)
def test_what_is_told_of_policies(known: PackageRecord, policy: str, codes: list[str]) -> None:
    found = policy_findings(plan(replace(known, annotations={POLICY: policy}), DRAFTED))

    assert [finding.code for finding in found] == codes
