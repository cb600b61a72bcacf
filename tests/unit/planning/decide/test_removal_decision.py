"""Tests of packages that are no longer requested: which are removed, which stay, and with which finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.api.porch.policies import DeletionPolicy
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import DeletionGuard, PackageTarget, format_object_id
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.removal_decision import (
    cancel_removals,
    decide_removals,
    list_heads_to_keep,
    plan_removal_branches,
)
from reconciler.planning.decide.target_inputs import TargetClaims
from reconciler.planning.layout.refs import BranchAction, DeleteBranch, KeepBranch, PushCommits
from reconciler.planning.model.state import DraftBranch, PackageRecord, ProposedRemoval
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.builders import (
    GROUP,
    INCOMPLETE_CONFIG,
    FakeRepository,
    build_commit_id,
    build_owner,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_variant,
    build_version,
)

BRANCH = "removals/berlin"
FLEET = ObjectKey(GROUP, "PackageVariantSet", "default", "fleet")
SOURCES = {"gw.yaml": (format_object_id(build_owner().key),)}
PUBLISHED = build_record(
    published_version=build_version("v1"), last_workspace=2, last_revision=1, config_sources=SOURCES
)
OF_SET = replace(PUBLISHED, owner=build_owner(made_by="fleet"))
DRAFTED = build_record(draft_version=build_version("d1"), draft_branch="drafts/berlin", last_workspace=1)
PROPOSED = replace(PUBLISHED, removal=ProposedRemoval(BRANCH, build_tree_id("v1")))
DECLINED = replace(PUBLISHED, removal=ProposedRemoval(BRANCH, build_tree_id("v1"), is_declined=True))
HERE = PackageTarget("default", "berlin", "gw")
ELSEWHERE = PackageTarget("default", "lisbon", "gw")
HASH = compute_deletion_hash([DownstreamKey("berlin", "gw")])


def build_claims(*variants: Any, **fields: Any) -> TargetClaims:
    unplaced = frozenset(fields.pop("unresolved_owners", ()))
    return TargetClaims(variants, frozenset(), unplaced, **fields)


def build_snapshot(
    package_record: PackageRecord, published: str | None = "v1", drafted: str | None = None, **heads: Any
) -> TargetSnapshot:
    """Return the snapshot of Berlin with one package: `published` on its branch, `drafted` on its draft."""
    base = None if published is None else "v1"
    tables = FakeRepository({"b0": {"gw": base}, "b1": {"gw": published}, "d1": {"gw": drafted}, "r1": {"gw": None}})
    drafts = {"drafts/berlin": DraftBranch(build_commit_id("d1"), build_commit_id("b0"))} if drafted else {}
    if package_record.removal and not package_record.removal.is_declined:
        drafts[BRANCH] = DraftBranch(build_commit_id("r1"), build_commit_id("b0"), is_removal=True)
    known = {name: draft.head for name, draft in drafts.items()}
    edited = heads.pop("is_edited", False)
    drafts = {name: replace(draft, is_edited=edited) for name, draft in drafts.items()}
    target_heads = TargetHeads(build_commit_id("b1"), drafts=known, removal_branches=frozenset({BRANCH}), **heads)
    return TargetSnapshot(
        build_target(),
        build_state(drafts=drafts, packages={"gw": package_record}),
        target_heads,
        tables,
        "drafts/{repository}",
    )


def describe_decisions(on: TargetSnapshot, who: TargetClaims, *reconciled: ObjectKey) -> str:
    """Return the kinds of removals and the codes of held removals, or "" if nothing is decided."""
    removal_decisions = decide_removals(on, who, reconciled)
    return " ".join(
        [held_removal.finding.code for held_removal in removal_decisions.held]
        + [removal_outcome.kind for removal_outcome in removal_decisions.removals]
    )


@pytest.mark.parametrize(
    ("known", "published", "drafted", "expected"),
    [
        pytest.param(PUBLISHED, "v1", None, "proposed", id="published"),
        pytest.param(PROPOSED, "v1", None, "proposed", id="proposed-before"),
        pytest.param(DECLINED, "v1", None, "declined", id="declined-before"),
        pytest.param(DECLINED, "v2", None, "proposed", id="declined-and-another-now"),
        pytest.param(PUBLISHED, None, None, "withdrawn", id="gone-from-the-branch"),
        pytest.param(DRAFTED, None, "d1", "withdrawn", id="never-published"),
        pytest.param(
            replace(PUBLISHED, draft_version=build_version("d1"), draft_branch="drafts/berlin"),
            "v1",
            "d1",
            "proposed",
            id="both",
        ),
        pytest.param(replace(PUBLISHED, deletion_policy="orphan"), "v1", None, "orphaned", id="orphan"),
        pytest.param(
            replace(DRAFTED, deletion_policy="orphan"), None, "d1", "orphaned", id="an-orphan-that-is-a-draft"
        ),
        pytest.param(replace(PUBLISHED, is_owned=False), "v1", None, "", id="no-owner"),
    ],
)
def test_removal_follows_the_deletion_policy_and_the_branch_content(
    known: PackageRecord, published: str | None, drafted: str | None, expected: str
) -> None:
    assert describe_decisions(build_snapshot(known, published, drafted), build_claims()) == expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        pytest.param(build_claims(build_variant()), "", id="wanted"),
        pytest.param(build_claims(build_variant("other")), "", id="wanted-by-another"),
        pytest.param(build_claims(stalled_packages=frozenset({"gw"})), "", id="wanted-by-one-that-stalls"),
        pytest.param(build_claims(unresolved_owners=[build_owner().key]), "", id="its-owner-stalls"),
        pytest.param(build_claims(completeness=INCOMPLETE_CONFIG), "DeletionHeld", id="a-file-is-unreadable"),
        pytest.param(build_claims(has_no_owners=True), "DeletionHeld", id="no-owner-at-all"),
        pytest.param(
            build_claims(has_no_owners=True, acknowledged_hashes=frozenset({HASH})),
            "proposed",
            id="no-owner-at-all-and-acknowledged",
        ),
        pytest.param(
            build_claims(has_no_owners=True, acknowledged_hashes=frozenset({"f00"})),
            "DeletionHeld",
            id="another-acknowledgement",
        ),
        pytest.param(
            build_claims(similar_objects={("default", "gw"): ObjectKey(GROUP, "PackageVarient", "default", "gw")}),
            "DeletionHeld",
            id="a-misspelt-kind",
        ),
        pytest.param(
            build_claims(targets_by_owner={build_owner().key: frozenset({ELSEWHERE})}),
            "RemovalWaits",
            id="its-new-place-is-not-there-yet",
        ),
        pytest.param(
            build_claims(dependents={"gw": build_owner("chained").key}), "RemovalWaits", id="the-upstream-of-another"
        ),
    ],
)
def test_package_without_evidence_of_deletion_stays(who: TargetClaims, expected: str) -> None:
    assert describe_decisions(build_snapshot(PUBLISHED), who) == expected


@pytest.mark.parametrize(
    ("home", "reconciled", "expected"),
    [
        pytest.param(ELSEWHERE, [build_owner().key], "proposed", id="its-new-place-is-there"),
        pytest.param(replace(HERE, package="gw/inner"), [], "proposed", id="the-old-place-is-in-the-way"),
        pytest.param(replace(ELSEWHERE, package="gw/inner"), [], "RemovalWaits", id="not-on-another-cluster"),
    ],
)
def test_package_that_moved_to_another_target(home: PackageTarget, reconciled: list[ObjectKey], expected: str) -> None:
    assert (
        describe_decisions(
            build_snapshot(PUBLISHED),
            build_claims(targets_by_owner={build_owner().key: frozenset({home})}),
            *reconciled,
        )
        == expected
    )


@pytest.mark.parametrize(
    ("known", "guard", "expected"),
    [
        pytest.param(OF_SET, DeletionGuard(frozenset({HERE})), "proposed", id="released"),
        pytest.param(OF_SET, DeletionGuard(frozenset({ELSEWHERE})), "DeletionHeld", id="another-place-is-released"),
        pytest.param(OF_SET, DeletionGuard(reason="too many"), "DeletionHeld", id="held"),
        pytest.param(replace(OF_SET, removal=PROPOSED.removal), DeletionGuard(), "proposed", id="under-way-already"),
        pytest.param(
            replace(OF_SET, deletion_policy="orphan"), DeletionGuard(), "DeletionHeld", id="orphans-are-held-too"
        ),
        pytest.param(OF_SET, None, "proposed", id="the-set-is-gone"),
    ],
)
def test_guard_of_an_existing_set_holds_the_removal(
    known: PackageRecord, guard: DeletionGuard | None, expected: str
) -> None:
    assert describe_decisions(build_snapshot(known), build_claims(guards={FLEET: guard} if guard else {})) == expected


def test_incomplete_object_list_holds_the_removal_with_a_warning() -> None:
    (held,) = decide_removals(build_snapshot(PUBLISHED), build_claims(completeness=INCOMPLETE_CONFIG), ()).held

    assert held.finding.severity is Severity.WARNING
    assert "makes the list of objects incomplete" in held.finding.message


def test_message_contains_the_hash_that_acknowledges() -> None:
    (held,) = decide_removals(build_snapshot(PUBLISHED), build_claims(has_no_owners=True), ()).held

    assert f'reconciler.dev/ack-deletions: "{HASH}"' in held.finding.message


@pytest.mark.parametrize(
    ("known", "drafted"),
    [
        pytest.param(DRAFTED, "d1", id="the-draft-is-proposed"),
    ],
)
def test_removal_waits_for_a_frozen_draft(known: PackageRecord, drafted: str) -> None:
    frozen = build_snapshot(known, None, drafted, proposed={"drafts/berlin": build_commit_id("d1")})

    assert describe_decisions(frozen, build_claims()) == "RemovalWaits"


def test_frozen_removal_draft_receives_no_more_packages() -> None:
    on = build_snapshot(PROPOSED, proposed={BRANCH: build_commit_id("r1")})
    packages = {"gw": PROPOSED, "next": replace(PUBLISHED, owner=build_owner("next"))}
    assert isinstance(on.objects, FakeRepository)
    here = replace(on.objects, packages={**on.objects.packages, "b1": {"gw": "v1", "next": "v1"}})
    on = replace(on, objects=here, state=replace(on.state, packages=packages))

    assert describe_decisions(on, build_claims()) == "RemovalWaits proposed"


def test_record_of_a_deleted_package_keeps_only_its_numbers() -> None:
    (leaving,) = decide_removals(build_snapshot(PUBLISHED, None), build_claims(), ()).removals

    assert leaving.record == PackageRecord(build_owner(), last_workspace=2, last_revision=1)


def plan_branches(on: TargetSnapshot, who: TargetClaims) -> tuple[BranchAction, ...]:
    return plan_removal_branches(on, who, decide_removals(on, who, ()), {"gw": "gone"}, 7)


def test_removal_is_one_commit_on_the_target_branch() -> None:
    (grow,) = plan_branches(build_snapshot(PUBLISHED), build_claims())

    assert isinstance(grow, PushCommits)
    assert (grow.branch, grow.expected_head, grow.start_commit) == (BRANCH, None, build_commit_id("b1"))
    assert [
        (
            draft_commit.package,
            draft_commit.content,
            draft_commit.status,
            draft_commit.message,
            draft_commit.min_seconds,
        )
        for draft_commit in grow.commits
    ] == [("gw", None, None, "gone", 7)]


@pytest.mark.parametrize(
    ("known", "published", "who", "expected"),
    [
        pytest.param(PROPOSED, "v1", build_claims(), KeepBranch(BRANCH), id="it-waits"),
        pytest.param(
            PROPOSED,
            "v1",
            build_claims(build_variant()),
            DeleteBranch(BRANCH, build_commit_id("r1")),
            id="wanted-again",
        ),
        pytest.param(
            PROPOSED, "v1", build_claims(completeness=INCOMPLETE_CONFIG), KeepBranch(BRANCH), id="nothing-is-known"
        ),
        pytest.param(
            PROPOSED,
            "v1",
            build_claims(unresolved_owners=[build_owner().key]),
            KeepBranch(BRANCH),
            id="its-owner-stalls",
        ),
    ],
)
def test_update_of_a_removal_branch(
    known: PackageRecord, published: str, who: TargetClaims, expected: BranchAction
) -> None:
    assert plan_branches(build_snapshot(known, published), who) == (expected,)


def test_removal_branch_is_rebased_on_the_target_branch() -> None:
    (grow,) = plan_branches(build_snapshot(PROPOSED, "v2"), build_claims())

    assert isinstance(grow, PushCommits)
    assert (grow.expected_head, grow.start_commit) == (build_commit_id("r1"), build_commit_id("b1"))


@pytest.mark.parametrize(
    ("frozen", "expected"), [pytest.param(False, None, id="open"), pytest.param(True, PROPOSED.removal, id="frozen")]
)
def test_removal_of_a_requested_package_is_cancelled(frozen: bool, expected: ProposedRemoval | None) -> None:
    on = build_snapshot(PROPOSED, proposed={BRANCH: build_commit_id("r1")} if frozen else {})

    assert cancel_removals(on.state, on, build_claims(build_variant())).packages["gw"].removal == expected


@pytest.mark.parametrize(
    ("drafted", "edited", "expected"),
    [
        pytest.param("d1", False, (), id="only-ours"),
        pytest.param("d1-with-edits", True, (build_commit_id("d1"),), id="edited-in-the-package"),
        pytest.param("d1", True, (), id="edited-elsewhere"),
    ],
)
def test_heads_with_local_changes_are_kept(drafted: str, edited: bool, expected: tuple[str, ...]) -> None:
    on = build_snapshot(DRAFTED, None, drafted, is_edited=edited)

    assert list_heads_to_keep(on, decide_removals(on, build_claims(), ()), ()) == expected


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        pytest.param("up1", (), id="no-edit"),
        pytest.param("up0", (build_commit_id("d1"),), id="an-edit-that-an-update-took-in"),
    ],
)
def test_version_with_merged_local_changes_is_kept(plain: str, expected: tuple[str, ...]) -> None:
    on = build_snapshot(
        replace(DRAFTED, draft_version=replace(build_version("d1"), plain=build_tree_id(plain))),
        None,
        "d1",
        is_edited=True,
    )

    assert list_heads_to_keep(on, decide_removals(on, build_claims(), ()), ()) == expected


def test_commits_of_people_are_kept_when_their_branch_is_deleted() -> None:
    on = build_snapshot(DRAFTED, None, "d1", is_edited=True)
    ended = (DeleteBranch("drafts/berlin", build_commit_id("d1")),)

    assert list_heads_to_keep(on, decide_removals(on, build_claims(), ()), ended) == (build_commit_id("d1"),)


# Limit of deletions per target


def build_target_with_deletions(
    published: int, deleted: int, package_record: PackageRecord = PUBLISHED
) -> tuple[TargetSnapshot, TargetClaims]:
    """Return Berlin with published packages p0, p1, …. The first `deleted` packages are not requested. 30 % can go."""
    names = [f"p{number}" for number in range(published)]
    tables = FakeRepository({"b1": dict.fromkeys(names, "v1")})
    packages = {name: replace(package_record, owner=build_owner(name)) for name in names}
    on = TargetSnapshot(
        build_target(),
        build_state(packages=packages),
        TargetHeads(build_commit_id("b1")),
        tables,
        "drafts/{repository}",
    )
    variants = [
        replace(build_variant(name), target=PackageTarget("default", "berlin", name)) for name in names[deleted:]
    ]
    return on, build_claims(*variants, max_delete_percent=30)


def list_decisions(on: TargetSnapshot, who: TargetClaims) -> list[str]:
    return describe_decisions(on, who).split()


@pytest.mark.parametrize(
    ("published", "deleted", "expected"),
    [
        pytest.param(1, 1, "DeletionHeld", id="the-only-one"),
        pytest.param(2, 1, "DeletionHeld", id="one-of-two-is-half"),
        pytest.param(3, 1, "DeletionHeld", id="one-of-three-is-a-third"),
        pytest.param(4, 1, "proposed", id="one-of-four"),
        pytest.param(10, 3, "proposed", id="exactly-the-share"),
        pytest.param(10, 4, "DeletionHeld", id="one-more-than-the-share"),
        pytest.param(10, 10, "DeletionHeld", id="all"),
    ],
)
@pytest.mark.parametrize("deletion", ["delete", "orphan"])
def test_target_deletes_at_most_its_share_in_one_pass(
    published: int, deleted: int, expected: str, deletion: DeletionPolicy
) -> None:
    on, who = build_target_with_deletions(published, deleted, replace(PUBLISHED, deletion_policy=deletion))
    leaves = "orphaned" if deletion == "orphan" and expected == "proposed" else expected

    assert list_decisions(on, who) == [leaves] * deleted


def test_finding_contains_the_annotation_that_releases_the_removals() -> None:
    on, who = build_target_with_deletions(2, 1)
    token = compute_deletion_hash([DownstreamKey("berlin", "p0")])

    (held,) = decide_removals(on, who, ()).held

    assert f'annotate Repository berlin with reconciler.dev/ack-deletions: "{token}"' in held.finding.message
    assert "1 of 2 published packages of Repository berlin would be deleted (berlin/p0)" in held.finding.message
    assert (held.target_package_count, held.finding.location) == (2, build_target().location)
    assert list_decisions(on, replace(who, acknowledged_hashes=frozenset({token}))) == ["proposed"]
    assert list_decisions(on, replace(who, acknowledged_hashes=frozenset({"f00"}))) == ["DeletionHeld"]


def test_packages_added_later_do_not_release_held_removals() -> None:
    on, who = build_target_with_deletions(10, 2)
    before = {
        name: replace(package_record, outcome={"kind": "held", "onTarget": 2})
        for name, package_record in on.state.packages.items()
    }

    assert list_decisions(on, who) == ["proposed"] * 2
    assert list_decisions(replace(on, state=build_state(packages=before)), who) == ["DeletionHeld"] * 2


def test_confirmation_stays_valid_for_the_rest_of_its_removals() -> None:
    on, who = build_target_with_deletions(2, 1)
    message = 'to confirm, annotate Repository berlin with reconciler.dev/ack-deletions: "cafe"'
    told_before = {"kind": "held", "findings": [{"message": message}], "onTarget": 3}
    packages = {**on.state.packages, "p0": replace(on.state.packages["p0"], outcome=told_before)}

    assert list_decisions(
        replace(on, state=build_state(packages=packages)), replace(who, acknowledged_hashes=frozenset({"cafe"}))
    ) == ["proposed"]


def test_removal_confirmed_at_its_set_needs_no_confirmation_at_the_target() -> None:
    on, who = build_target_with_deletions(2, 1)
    packages = {
        name: replace(package_record, owner=build_owner(name, made_by="fleet"))
        for name, package_record in on.state.packages.items()
    }
    on = replace(on, state=build_state(packages=packages))
    place = frozenset({PackageTarget("default", "berlin", "p0")})

    assert list_decisions(on, replace(who, guards={FLEET: DeletionGuard(place)})) == ["DeletionHeld"]
    assert list_decisions(on, replace(who, guards={FLEET: DeletionGuard(place, confirmed=place)})) == ["proposed"]


def test_record_without_source_file_of_its_owner_needs_a_confirmation() -> None:
    on, who = build_target_with_deletions(10, 1, replace(PUBLISHED, config_sources={}))
    token = compute_deletion_hash([DownstreamKey("berlin", "p0")])

    assert list_decisions(on, who) == ["DeletionHeld"]
    assert list_decisions(on, replace(who, acknowledged_hashes=frozenset({token}))) == ["proposed"]


def test_unpublished_drafts_do_not_count() -> None:
    assert describe_decisions(build_snapshot(DRAFTED, None, "d1"), build_claims(max_delete_percent=30)) == "withdrawn"
