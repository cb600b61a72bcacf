"""Tests of the complete results of removals: messages, records, branches, and the heads that are kept."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import BlobId, CommitId
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import DeletionGuard
from reconciler.planning.decide.removal_decision import (
    RemovalDecisions,
    decide_removals,
    find_removals_of_requested_packages,
    list_heads_to_keep,
    plan_removal_branches,
    release_orphaned_drafts,
)
from reconciler.planning.decide.target_inputs import TargetClaims, UnreadyOwners
from reconciler.planning.layout.refs import DeleteBranch, KeepBranch, PushCommits
from reconciler.planning.model.outcomes import HeldRemoval, RemovalOutcome
from reconciler.planning.model.state import DraftBranch, PackageRecord, ProposedRemoval
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from tests.unit.planning.builders import (
    INCOMPLETE_CONFIG,
    FakeRepository,
    build_commit_id,
    build_owner,
    build_record,
    build_state,
    build_tree_id,
    build_variant,
    build_version,
)
from tests.unit.planning.decide.test_removal_decision import (
    BRANCH,
    DECLINED,
    DRAFTED,
    ELSEWHERE,
    FLEET,
    HASH,
    OF_SET,
    PROPOSED,
    PUBLISHED,
    build_claims,
    build_snapshot,
    build_target_with_deletions,
)

GONE = "PackageVariant default/gw does not exist any more"
ORPHAN = replace(PUBLISHED, deletion_policy="orphan")
TOMBSTONE = PackageRecord(build_owner(), last_workspace=2, last_revision=1)
STUCK = (
    "cannot be updated. The target branch changed files that also have local changes on this branch. Next step: merge or"
    " delete this draft"
)


def decide_one(snapshot: TargetSnapshot, claims: TargetClaims) -> HeldRemoval | RemovalOutcome:
    decisions = decide_removals(snapshot, claims, ())
    [outcome] = [*decisions.held, *decisions.removals]
    return outcome


@pytest.mark.parametrize(
    ("record", "published", "kind", "stored", "removed_tree", "message"),
    [
        pytest.param(
            PUBLISHED,
            "v1",
            "proposed",
            PROPOSED,
            "v1",
            f'package berlin/gw is no longer requested, because {GONE}. Next step: merge branch "removals/berlin" to approve its removal',
            id="proposed",
        ),
        pytest.param(
            replace(PROPOSED, draft_version=build_version("d1")),
            "v1",
            "proposed",
            PROPOSED,
            None,
            f'package berlin/gw is no longer requested, because {GONE}. Next step: merge branch "removals/berlin" to approve its removal',
            id="proposed-before",
        ),
        pytest.param(
            DECLINED,
            "v1",
            "declined",
            DECLINED,
            None,
            f"package berlin/gw is no longer requested, because {GONE}. A person rejected its removal. The removal is"
            " proposed again when the package changes on the target branch, or after an object has requested the package"
            " again",
            id="declined",
        ),
        pytest.param(ORPHAN, "v1", "orphaned", TOMBSTONE, None, None, id="orphaned"),
        pytest.param(PUBLISHED, None, "withdrawn", TOMBSTONE, None, None, id="withdrawn"),
    ],
)
def test_removal_has_a_reason_a_record_and_a_finding(
    record: PackageRecord,
    published: str | None,
    kind: str,
    stored: PackageRecord,
    removed_tree: str | None,
    message: str | None,
) -> None:
    outcome = decide_one(build_snapshot(record, published), build_claims())

    assert isinstance(outcome, RemovalOutcome)
    finding = outcome.finding
    tree = build_tree_id(removed_tree) if removed_tree else None
    assert replace(outcome, finding=None) == RemovalOutcome("gw", build_owner(), kind, stored, GONE, tree)
    assert (finding.message if finding else None) == message
    if finding:
        assert finding.location.object == "PackageVariant/default/gw"


FROZEN = {"proposed": {"drafts/berlin": build_commit_id("d1")}}
SET_GONE = "PackageVariantSet default/fleet does not create PackageVariant default/gw any more"


@pytest.mark.parametrize(
    ("snapshot", "claims", "code", "severity", "message"),
    [
        pytest.param(
            build_snapshot(DRAFTED, None, "d1", **FROZEN),
            build_claims(),
            "RemovalWaits",
            "warning",
            f"package berlin/gw is no longer requested, because {GONE}. It is not removed yet, because its draft is"
            " proposed. Next step: approve or reject this draft",
            id="proposed-draft",
        ),
        pytest.param(
            build_snapshot(OF_SET),
            build_claims(guards={FLEET: DeletionGuard(reason="too many", existing_count=7)}),
            "DeletionHeld",
            "error",
            f"package berlin/gw is no longer requested, because {SET_GONE}. It is kept, because too many",
            id="limit-of-the-set",
        ),
        pytest.param(
            build_snapshot(OF_SET),
            build_claims(guards={FLEET: DeletionGuard(existing_count=7)}),
            "DeletionHeld",
            "error",
            f"package berlin/gw is no longer requested, because {SET_GONE}. It is kept, because the deletion limit of"
            " PackageVariantSet default/fleet was not checked yet",
            id="unchecked-limit",
        ),
        pytest.param(
            build_snapshot(PUBLISHED),
            build_claims(targets_by_owner={build_owner().key: frozenset({ELSEWHERE})}),
            "RemovalWaits",
            "warning",
            "package berlin/gw is kept until the new package lisbon/gw of PackageVariant default/gw has no errors",
            id="new-target-without-a-package",
        ),
        pytest.param(
            build_snapshot(PUBLISHED),
            build_claims(unready_owners=UnreadyOwners(owners_by_target={("berlin", "gw"): build_owner("other").key})),
            "RemovalWaits",
            "warning",
            f"package berlin/gw is no longer requested, because {GONE}. It is kept, because PackageVariant default/other"
            " is not ready, and may request this package. Next step: correct the errors of PackageVariant default/other",
            id="unready-owner",
        ),
        pytest.param(
            build_snapshot(PUBLISHED),
            build_claims(dependents={"gw": build_owner("chained").key}),
            "RemovalWaits",
            "warning",
            f"package berlin/gw is no longer requested, because {GONE}. It is kept, because it is the upstream of"
            " PackageVariant default/chained. Next step: delete PackageVariant default/chained, or set a different"
            " upstream there",
            id="dependent-package",
        ),
        pytest.param(
            build_snapshot(PUBLISHED),
            build_claims(has_no_owners=True),
            "DeletionHeld",
            "error",
            "package berlin/gw is kept, because the config has no object that requests packages. Next step: check `config.directory`. To"
            f' confirm the removal, annotate Repository berlin with reconciler.dev/ack-deletions: "{HASH}"',
            id="config-without-owners",
        ),
        pytest.param(
            build_snapshot(PUBLISHED),
            build_claims(completeness=INCOMPLETE_CONFIG),
            "DeletionHeld",
            "warning",
            "package berlin/gw is kept, because it is unknown whether an object still requests it. An error in the config"
            " makes the list of objects incomplete. Next step: correct this error",
            id="incomplete-objects",
        ),
    ],
)
def test_held_removal_has_a_reason(
    snapshot: TargetSnapshot, claims: TargetClaims, code: str, severity: str, message: str
) -> None:
    held = decide_one(snapshot, claims)

    assert isinstance(held, HeldRemoval)
    assert (held.package, held.record) == ("gw", snapshot.state.packages["gw"])
    assert (held.finding.code, held.finding.severity) == (code, severity)
    assert held.finding.message == message
    assert held.finding.location.object == "PackageVariant/default/gw"
    assert held.set_package_count == (7 if code == "DeletionHeld" and snapshot.state.packages["gw"] == OF_SET else 0)


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        pytest.param({}, "the recorded state does not contain the config file of the owner, so it is unknown whether a"
                         " person deleted the owner. 1 of 1 published packages", id="unknown-file"),
        pytest.param({"a.yaml": ("x",)}, "1 of 1 published packages", id="known-file"),
    ],
)  # fmt: skip
def test_limit_of_the_target_has_a_reason(sources: dict[str, tuple[str, ...]], reason: str) -> None:
    snapshot, claims = build_target_with_deletions(1, 1, replace(PUBLISHED, config_sources=sources))

    held = decide_one(snapshot, claims)

    assert isinstance(held, HeldRemoval)
    assert (held.package, held.record) == ("p0", snapshot.state.packages["p0"])
    assert held.finding.message.startswith(
        "package berlin/p0 is no longer requested, because PackageVariant default/p0 does not exist any more. It is kept,"
        f" because {reason} of Repository"
    )


def test_hash_of_all_packages_that_are_not_requested_confirms_the_removals() -> None:
    snapshot, claims = build_target_with_deletions(1, 1)
    added = {"draft": replace(DRAFTED, owner=build_owner("draft")), "old": replace(PROPOSED, owner=build_owner("old"))}
    packages = {**snapshot.state.packages, **added}
    snapshot = replace(snapshot, state=replace(snapshot.state, packages=packages))

    def decide(*names: str) -> list[str]:
        token = compute_deletion_hash([DownstreamKey("berlin", name) for name in names])
        decisions = decide_removals(snapshot, replace(claims, acknowledged_hashes=frozenset({token})), ())
        return [held.package for held in decisions.held]

    assert decide("p0", "draft") == []
    assert decide("p0", "draft", "old") == decide("draft") == ["p0"]


def test_new_target_beside_the_old_package_must_exist_first() -> None:
    beside = frozenset({replace(ELSEWHERE, repository="berlin", package="other")})

    held = decide_one(build_snapshot(PUBLISHED), build_claims(targets_by_owner={build_owner().key: beside}))

    assert isinstance(held, HeldRemoval)
    assert held.finding.message.endswith(
        "until the new package berlin/other of PackageVariant default/gw has no errors"
    )


class _WithoutStatusFiles(FakeRepository):
    """A repository whose status files were deleted."""

    def find_blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        return None


def test_packages_without_status_files_count_for_the_limit() -> None:
    snapshot, claims = build_target_with_deletions(2, 1)
    assert isinstance(snapshot.objects, FakeRepository)
    snapshot = replace(snapshot, objects=_WithoutStatusFiles(snapshot.objects.packages))

    held = decide_one(snapshot, claims)

    assert isinstance(held, HeldRemoval)
    assert held.target_package_count == 2


# Removal drafts


def with_objects(snapshot: TargetSnapshot, **fields: Any) -> TargetSnapshot:
    assert isinstance(snapshot.objects, FakeRepository)
    return replace(snapshot, objects=replace(snapshot.objects, **fields))


def lock(snapshot: TargetSnapshot, reason: str) -> TargetSnapshot:
    """Return the snapshot with a removal draft that is proposed, or whose local changes conflict."""
    if reason == "proposed":
        heads = replace(snapshot.heads, proposed={BRANCH: build_commit_id("r1")})
        return replace(snapshot, heads=heads)
    drafts = {name: replace(draft, is_edited=True) for name, draft in snapshot.state.drafts.items()}
    return with_objects(replace(snapshot, state=replace(snapshot.state, drafts=drafts)), collide=True)


def test_removal_waits_for_a_draft_with_conflicting_local_changes() -> None:
    snapshot = with_objects(build_snapshot(DRAFTED, "v2", "d1", is_edited=True), collide=True)

    held = decide_one(snapshot, build_claims())

    assert isinstance(held, HeldRemoval)
    assert held.finding.message == (
        f"package berlin/gw is no longer requested, because {GONE}. It is not removed yet, because its draft has local"
        " changes that an update would revert. Next step: merge or delete this draft"
    )


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        pytest.param(
            "proposed",
            'package berlin/gw is requested again, but its removal is proposed on branch "removals/berlin". Next step: reject this draft. If you merge the draft, the package is removed and then drafted again',
            id="proposed",
        ),
        pytest.param(
            "conflict",
            f'package berlin/gw is requested again, but its removal draft on branch "removals/berlin" {STUCK}',
            id="conflicting-local-changes",
        ),
    ],
)
def test_locked_removal_of_a_requested_package_is_reported(reason: str, message: str) -> None:
    snapshot = lock(build_snapshot(PROPOSED), reason)

    [outcome] = find_removals_of_requested_packages(snapshot, build_claims(build_variant()))

    assert outcome.finding is not None
    assert (outcome.finding.code, outcome.finding.message) == ("RemovalWaits", message)
    assert outcome.finding.location.object == "PackageVariant/default/gw"
    assert replace(outcome, finding=None) == RemovalOutcome(
        "gw", build_owner(), "recalled", PROPOSED, "it is requested again"
    )


@pytest.mark.parametrize(
    ("record", "claims"),
    [
        pytest.param(PROPOSED, build_claims(), id="not-requested"),
        pytest.param(PUBLISHED, build_claims(build_variant()), id="no-removal"),
    ],
)
def test_other_packages_have_no_removal_that_is_reported(record: PackageRecord, claims: TargetClaims) -> None:
    snapshot = lock(build_snapshot(record), "proposed")

    assert find_removals_of_requested_packages(snapshot, claims) == ()
    assert find_removals_of_requested_packages(build_snapshot(PROPOSED), build_claims(build_variant())) == ()


@pytest.mark.parametrize("reason", ["proposed", "conflict"])
@pytest.mark.parametrize(
    ("record", "has_content", "is_kept"),
    [
        pytest.param(PROPOSED, False, True, id="used"),
        pytest.param(PUBLISHED, True, True, id="unpublished-content"),
        pytest.param(PUBLISHED, False, False, id="without-use"),
        pytest.param(replace(PROPOSED, removal=ProposedRemoval("removals/x", build_tree_id("v1"))), False, False,
                     id="used-by-another-branch"),
    ],
)  # fmt: skip
def test_locked_removal_draft_is_deleted_only_without_use(
    reason: str, record: PackageRecord, has_content: bool, is_kept: bool
) -> None:
    snapshot = lock(build_snapshot(PROPOSED), reason)
    snapshot = replace(snapshot, state=replace(snapshot.state, packages={"gw": record}))
    snapshot = with_objects(snapshot, more=has_content)
    if reason == "conflict" and not has_content:
        # The target branch contains all changes, so that the draft is not locked.
        return

    actions = plan_removal_branches(snapshot, build_claims(), RemovalDecisions(), {}, 7)

    assert actions == ((KeepBranch(BRANCH),) if is_kept else (DeleteBranch(BRANCH, build_commit_id("r1")),))


class _UnpublishedChanges(FakeRepository):
    """A repository in which only the removal draft has changes that the target branch does not contain."""

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        return (head, base, branch) == (build_commit_id("r1"), build_commit_id("b0"), build_commit_id("b1"))


def test_locked_removal_draft_is_compared_with_the_target_branch() -> None:
    snapshot = lock(build_snapshot(PROPOSED), "proposed")
    assert isinstance(snapshot.objects, FakeRepository)
    state = replace(snapshot.state, packages={"gw": PUBLISHED})
    snapshot = replace(snapshot, state=state, objects=_UnpublishedChanges(snapshot.objects.packages))

    actions = plan_removal_branches(snapshot, build_claims(), RemovalDecisions(), {}, 7)

    assert actions == (KeepBranch(BRANCH),)


def test_drafts_after_a_locked_removal_draft_are_planned() -> None:
    snapshot = lock(build_snapshot(PROPOSED), "proposed")
    later = replace(snapshot.state.drafts[BRANCH])
    heads = replace(snapshot.heads, drafts={**snapshot.heads.drafts, "removals/x": later.head})
    state = replace(snapshot.state, drafts={**snapshot.state.drafts, "removals/x": later})
    snapshot = replace(snapshot, state=state, heads=heads)

    actions = plan_removal_branches(snapshot, build_claims(), RemovalDecisions(), {}, 7)

    assert actions == (KeepBranch(BRANCH), DeleteBranch("removals/x", later.head))


def test_new_removal_on_a_closed_draft_starts_at_the_target_branch() -> None:
    snapshot = build_snapshot(PUBLISHED, closed_drafts=frozenset({BRANCH}))
    decisions = decide_removals(snapshot, build_claims(), ())

    [action] = plan_removal_branches(snapshot, build_claims(), decisions, {"gw": "gone"}, 7)

    assert isinstance(action, PushCommits)
    assert (action.start_commit, [commit.package for commit in action.commits]) == (build_commit_id("b1"), ["gw"])


def test_target_without_a_branch_has_no_removal_drafts() -> None:
    snapshot = build_snapshot(PROPOSED)
    snapshot = replace(snapshot, heads=replace(snapshot.heads, target_branch=None))

    assert plan_removal_branches(snapshot, build_claims(), RemovalDecisions(), {}, 7) == ()


def test_only_new_removals_get_a_commit() -> None:
    snapshot = build_snapshot(PUBLISHED)
    proposed = decide_removals(snapshot, build_claims(), ())
    [removal] = proposed.removals

    [action] = plan_removal_branches(snapshot, build_claims(), proposed, {"gw": "gone"}, 7)
    repeated = replace(proposed, removals=(replace(removal, removed_tree=None),))

    assert isinstance(action, PushCommits)
    assert plan_removal_branches(snapshot, build_claims(), repeated, {"gw": "gone"}, 7) == ()


def test_closed_removal_draft_is_rebuilt_from_the_target_branch() -> None:
    closed = build_snapshot(PROPOSED, closed_drafts=frozenset({BRANCH}))
    other = build_snapshot(PUBLISHED, closed_drafts=frozenset({"drafts/other"}))
    decisions = decide_removals(closed, build_claims(), ())

    [action] = plan_removal_branches(closed, build_claims(), decisions, {"gw": "gone"}, 7)

    assert action == DeleteBranch(BRANCH, build_commit_id("r1"))
    assert plan_removal_branches(other, build_claims(), RemovalDecisions(), {}, 7) == ()


@pytest.mark.parametrize(
    ("branch", "obstacle"),
    [
        pytest.param("clusters/berlin/removals", "clusters/berlin", id="target-branch"),
        pytest.param("drafts/berlin/removals", "drafts/berlin", id="draft"),
        pytest.param("removals/berlin", "", id="nothing"),
    ],
)
def test_removal_branch_below_another_branch_cannot_be_created(branch: str, obstacle: str) -> None:
    snapshot = replace(build_snapshot(PUBLISHED, "v1", "d1"), removal_template=branch)

    outcome = decide_one(snapshot, build_claims())

    message = outcome.finding.message if outcome.finding else ""
    if obstacle:
        assert message == (
            f'package berlin/gw is no longer requested, because {GONE}. It cannot be removed yet, because Git cannot create the branch "{branch}" while the branch'
            f' "{obstacle}" exists'
        )
    else:
        assert isinstance(outcome, RemovalOutcome)
        assert outcome.kind == "proposed"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        pytest.param(
            "proposed",
            f'package berlin/next is no longer requested, because {{}}. It cannot be removed yet, because branch "{BRANCH}" is proposed. Next step: approve or reject this draft',
            id="proposed",
        ),
        pytest.param(
            "conflict",
            f'package berlin/next is no longer requested, because {{}}. It cannot be removed yet, because branch "{BRANCH}" {STUCK}',
            id="conflict",
        ),
    ],
)
def test_locked_removal_draft_receives_no_package(reason: str, message: str) -> None:
    snapshot = lock(build_snapshot(PROPOSED), reason)
    packages = {"gw": PROPOSED, "next": replace(PUBLISHED, owner=build_owner("next"))}
    trees = {"b0": {"gw": "v1", "next": "v1"}, "b1": {"gw": "v1", "next": "v1"}, "r1": {"next": "v1"}}
    snapshot = with_objects(replace(snapshot, state=replace(snapshot.state, packages=packages)), packages=trees)

    [held] = decide_removals(snapshot, build_claims(), ()).held

    assert held.finding.message == message.format("PackageVariant default/next does not exist any more")


def test_requested_package_is_restored_on_the_removal_draft() -> None:
    packages = {"gw": PROPOSED, "next": replace(PROPOSED, owner=build_owner("next"))}
    trees = {"b0": {"gw": "v1", "next": "v1"}, "b1": {"gw": "v1", "next": "v1"}, "r1": {}}
    snapshot = build_snapshot(PROPOSED, is_edited=True)
    snapshot = with_objects(replace(snapshot, state=replace(snapshot.state, packages=packages)), packages=trees)

    claims = build_claims(build_variant())
    [action] = plan_removal_branches(snapshot, claims, decide_removals(snapshot, claims, ()), {}, 7)

    assert isinstance(action, PushCommits)
    assert [(commit.package, commit.content) for commit in action.commits] == [("gw", build_tree_id("v1"))]
    assert action.commits[0].message.startswith(
        "gw: remove its changes from the draft\n\nThe package is requested again.\n\nReconciler-Repository: berlin\n"
    )


# Drafts with local changes


def test_drafts_of_orphans_are_released() -> None:
    drafted = build_record(
        draft_version=build_version("d1"), draft_branch="drafts/berlin", deletion_policy="orphan", last_workspace=1
    )
    snapshot = build_snapshot(drafted, None, "d1")
    drafts = {**snapshot.state.drafts, "drafts/other": DraftBranch(build_commit_id("d1"), build_commit_id("b0"))}
    snapshot = replace(snapshot, state=replace(snapshot.state, drafts=drafts))
    decisions = decide_removals(snapshot, build_claims(), ())
    assert [removal.kind for removal in decisions.removals] == ["orphaned"]

    released = release_orphaned_drafts(snapshot, decisions)

    edited = {name: draft.is_edited for name, draft in released.state.drafts.items()}
    assert edited == {"drafts/berlin": True, "drafts/other": False}
    assert replace(released, state=snapshot.state) == snapshot
    assert released.state.packages == snapshot.state.packages


@pytest.mark.parametrize(
    ("record", "published"),
    [
        pytest.param(ORPHAN, "v1", id="orphan-without-a-draft"),
        pytest.param(DRAFTED, None, id="withdrawn-package"),
    ],
)
def test_other_drafts_are_not_released(record: PackageRecord, published: str | None) -> None:
    snapshot = build_snapshot(record, published, "d1")
    decisions = decide_removals(snapshot, build_claims(), ())

    assert release_orphaned_drafts(snapshot, decisions).state == snapshot.state


@pytest.mark.parametrize(
    ("record", "published", "expected"),
    [
        pytest.param(DRAFTED, None, {"gw"}, id="drafted"),
        pytest.param(replace(PUBLISHED, published_version=None), None, {"gw"}, id="only-on-the-draft"),
        pytest.param(PUBLISHED, "v1", set(), id="local-changes-of-a-published-package"),
        pytest.param(replace(DRAFTED, deletion_policy="orphan"), None, set(), id="orphan"),
    ],
)
def test_withdrawn_packages_are_deleted_from_their_drafts(
    record: PackageRecord, published: str | None, expected: set[str]
) -> None:
    snapshot = build_snapshot(record, published, "d1", is_edited=True)

    assert decide_removals(snapshot, build_claims(), ()).list_drafted_packages(snapshot) == expected


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(build_commit_id("b1"), (build_commit_id("d1"),), id="rebuilt"),
        pytest.param(build_commit_id("d1"), (), id="appended"),
    ],
)
def test_head_is_kept_when_its_branch_is_rebuilt(start: Any, expected: tuple[str, ...]) -> None:
    snapshot = build_snapshot(DRAFTED, None, "d1", is_edited=True)
    decisions = decide_removals(snapshot, build_claims(), ())
    action = PushCommits("drafts/berlin", build_commit_id("d1"), start, (), build_commit_id("b1"))

    assert list_heads_to_keep(snapshot, decisions, (action,)) == expected


@pytest.mark.parametrize(
    ("record", "published"),
    [
        pytest.param(replace(DRAFTED, deletion_policy="orphan"), None, id="orphan"),
        pytest.param(PUBLISHED, "v1", id="local-changes-of-a-published-package"),
    ],
)
def test_head_of_a_draft_that_keeps_the_package_is_not_kept(record: PackageRecord, published: str | None) -> None:
    snapshot = build_snapshot(record, published, "d1", is_edited=True)
    deleted = DeleteBranch("drafts/berlin", build_commit_id("d1"))

    assert list_heads_to_keep(snapshot, decide_removals(snapshot, build_claims(), ()), (deleted,)) == ()


def test_heads_after_a_removal_without_local_changes_are_kept() -> None:
    snapshot = build_snapshot(DRAFTED, None, "d1", is_edited=True)
    packages = {"first": replace(PUBLISHED, owner=build_owner("first")), "gw": DRAFTED}
    trees = {"b0": {"first": "v1"}, "b1": {"first": "v1"}, "d1": {"first": "v1", "gw": "d1"}}
    snapshot = with_objects(replace(snapshot, state=replace(snapshot.state, packages=packages)), packages=trees)
    deleted = DeleteBranch("drafts/berlin", build_commit_id("d1"))

    decisions = decide_removals(snapshot, build_claims(), ())

    assert [removal.kind for removal in decisions.removals] == ["proposed", "withdrawn"]
    assert list_heads_to_keep(snapshot, decisions, (deleted,)) == (build_commit_id("d1"),)


def test_only_new_removals_keep_the_head_of_their_removal_draft() -> None:
    snapshot = build_snapshot(PROPOSED, is_edited=True)
    trees = {"b0": {"gw": "v1"}, "b1": {"gw": "v1"}, "r1": {"gw": "v1+edit"}}

    decisions = decide_removals(with_objects(snapshot, packages=trees), build_claims(), ())

    assert list_heads_to_keep(with_objects(snapshot, packages=trees), decisions, ()) == ()


@pytest.mark.parametrize(
    ("edited", "drafted", "expected"),
    [
        pytest.param(True, "v1+edit", (build_commit_id("r1"),), id="edited-package"),
        pytest.param(False, "v1+edit", (), id="draft-without-local-changes"),
        pytest.param(True, "v1", (), id="published-content"),
        pytest.param(True, "v0", (), id="content-of-the-base"),
        pytest.param(True, None, (), id="deleted-package"),
    ],
)
def test_edits_of_a_package_on_a_removal_draft_are_kept(
    edited: bool, drafted: str | None, expected: tuple[str, ...]
) -> None:
    packages = {"gw": PUBLISHED, "next": replace(PROPOSED, owner=build_owner("next"))}
    trees = {"b0": {"gw": "v0", "next": "v1"}, "b1": {"gw": "v1", "next": "v1"}, "r1": {"gw": drafted}}
    draft = DraftBranch(build_commit_id("r1"), build_commit_id("b0"), is_edited=edited, is_removal=True)
    snapshot = build_snapshot(PROPOSED)
    state = build_state(drafts={BRANCH: draft}, packages=packages)
    snapshot = with_objects(replace(snapshot, state=state), packages=trees)
    decisions = decide_removals(snapshot, build_claims(), ())
    assert [removal.is_new for removal in decisions.removals] == [True, False]

    assert list_heads_to_keep(snapshot, decisions, ()) == expected
