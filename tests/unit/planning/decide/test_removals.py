"""What nothing wants any more: which of it goes, which stays, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.results import DeletionGuard, DeletionPolicy, PackageTarget, format_object_id
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.removals import (
    cancel_removals,
    decide_removals,
    list_heads_to_keep,
    plan_removal_branches,
)
from reconciler.planning.decide.target_inputs import TargetClaims
from reconciler.planning.layout.refs import BranchAction, DeleteBranch, KeepBranch, PushCommits
from reconciler.planning.model.state import DraftBranch, PackageRecord, ProposedRemoval
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.values import GROUP, Tables, commit, destination, offer, owner, record, state, tree, variant

BRANCH = "removals/berlin"
FLEET = ObjectKey(GROUP, "PackageVariantSet", "default", "fleet")
SOURCES = {"gw.yaml": (format_object_id(owner().key),)}
PUBLISHED = record(published_version=offer("v1"), last_workspace=2, last_revision=1, config_sources=SOURCES)
OF_SET = replace(PUBLISHED, owner=owner(made_by="fleet"))
DRAFTED = record(draft_version=offer("d1"), draft_branch="drafts/berlin", last_workspace=1)
PROPOSED = replace(PUBLISHED, removal=ProposedRemoval(BRANCH, tree("v1")))
DECLINED = replace(PUBLISHED, removal=ProposedRemoval(BRANCH, tree("v1"), is_declined=True))
HERE = PackageTarget("default", "berlin", "gw")
ELSEWHERE = PackageTarget("default", "lisbon", "gw")
HASH = compute_deletion_hash([DownstreamKey("berlin", "gw")])


def claims(*variants: Any, **fields: Any) -> TargetClaims:
    complete = fields.pop("is_complete", True)
    unplaced = frozenset(fields.pop("unresolved_owners", ()))
    return TargetClaims(variants, frozenset(), unplaced, complete, **fields)


def ground(
    package_record: PackageRecord, published: str | None = "v1", drafted: str | None = None, **heads: Any
) -> TargetSnapshot:
    """Berlin with one package: `published` on its branch, `drafted` on its draft, and its removal if it has one."""
    base = None if published is None else "v1"
    tables = Tables({"b0": {"gw": base}, "b1": {"gw": published}, "d1": {"gw": drafted}, "r1": {"gw": None}})
    drafts = {"drafts/berlin": DraftBranch(commit("d1"), commit("b0"))} if drafted else {}
    if package_record.removal and not package_record.removal.is_declined:
        drafts[BRANCH] = DraftBranch(commit("r1"), commit("b0"), is_removal=True)
    known = {name: draft.head for name, draft in drafts.items()}
    edited = heads.pop("is_edited", False)
    drafts = {name: replace(draft, is_edited=edited) for name, draft in drafts.items()}
    target_heads = TargetHeads(commit("b1"), drafts=known, removal_branches=frozenset({BRANCH}), **heads)
    return TargetSnapshot(
        destination(),
        state(drafts=drafts, packages={"gw": package_record}),
        target_heads,
        tables,
        "drafts/{repository}",
    )


def told(on: TargetSnapshot, who: TargetClaims, *reconciled: ObjectKey) -> str:
    """Return how the package leaves, the code of what holds it, or "" when it is nobody's business."""
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
            replace(PUBLISHED, draft_version=offer("d1"), draft_branch="drafts/berlin"),
            "v1",
            "d1",
            "proposed",
            id="both",
        ),
        pytest.param(replace(PUBLISHED, deletion_policy="orphan"), "v1", None, "orphaned", id="orphan"),
        pytest.param(
            replace(DRAFTED, deletion_policy="orphan"), None, "d1", "orphaned", id="an-orphan-that-is-a-draft"
        ),
        pytest.param(replace(PUBLISHED, is_owned=False), "v1", None, "", id="nobodys"),
    ],
)
def test_by_policy_and_by_what_stands_there(
    known: PackageRecord, published: str | None, drafted: str | None, expected: str
) -> None:
    assert told(ground(known, published, drafted), claims()) == expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        pytest.param(claims(variant()), "", id="wanted"),
        pytest.param(claims(variant("other")), "", id="wanted-by-another"),
        pytest.param(claims(stalled_packages=frozenset({"gw"})), "", id="wanted-by-one-that-stalls"),
        pytest.param(claims(unresolved_owners=[owner().key]), "", id="its-owner-stalls"),
        pytest.param(claims(is_complete=False), "DeletionHeld", id="a-file-is-unreadable"),
        pytest.param(claims(has_no_owners=True), "DeletionHeld", id="no-owner-at-all"),
        pytest.param(
            claims(has_no_owners=True, acknowledged_hashes=frozenset({HASH})),
            "proposed",
            id="no-owner-at-all-and-acknowledged",
        ),
        pytest.param(
            claims(has_no_owners=True, acknowledged_hashes=frozenset({"f00"})),
            "DeletionHeld",
            id="another-acknowledgement",
        ),
        pytest.param(
            claims(similar_objects={("default", "gw"): ObjectKey(GROUP, "PackageVarient", "default", "gw")}),
            "DeletionHeld",
            id="a-misspelt-kind",
        ),
        pytest.param(
            claims(targets_by_owner={owner().key: frozenset({ELSEWHERE})}),
            "RemovalWaits",
            id="its-new-place-is-not-there-yet",
        ),
        pytest.param(claims(dependents={"gw": owner("chained").key}), "RemovalWaits", id="the-upstream-of-another"),
    ],
)
def test_what_is_not_proved_gone_stays(who: TargetClaims, expected: str) -> None:
    assert told(ground(PUBLISHED), who) == expected


@pytest.mark.parametrize(
    ("home", "reconciled", "expected"),
    [
        pytest.param(ELSEWHERE, [owner().key], "proposed", id="its-new-place-is-there"),
        pytest.param(replace(HERE, package="gw/inner"), [], "proposed", id="the-old-place-is-in-the-way"),
        pytest.param(replace(ELSEWHERE, package="gw/inner"), [], "RemovalWaits", id="not-on-another-cluster"),
    ],
)
def test_a_package_that_moved(home: PackageTarget, reconciled: list[ObjectKey], expected: str) -> None:
    assert told(ground(PUBLISHED), claims(targets_by_owner={owner().key: frozenset({home})}), *reconciled) == expected


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
def test_a_set_that_is_there_has_to_let_go(known: PackageRecord, guard: DeletionGuard | None, expected: str) -> None:
    assert told(ground(known), claims(guards={FLEET: guard} if guard else {})) == expected


def test_what_hides_an_owner_is_told_elsewhere_and_its_consequence_is_a_warning() -> None:
    (held,) = decide_removals(ground(PUBLISHED), claims(is_complete=False), ()).held

    assert held.finding.severity is Severity.WARNING
    assert "leaves its list of objects incomplete" in held.finding.message


def test_the_hash_that_acknowledges_is_told() -> None:
    (held,) = decide_removals(ground(PUBLISHED), claims(has_no_owners=True), ()).held

    assert f'reconciler.dev/ack-deletions: "{HASH}"' in held.finding.message


@pytest.mark.parametrize(
    ("known", "drafted"),
    [
        pytest.param(DRAFTED, "d1", id="the-draft-is-proposed"),
    ],
)
def test_a_frozen_draft_waits(known: PackageRecord, drafted: str) -> None:
    frozen = ground(known, None, drafted, proposed={"drafts/berlin": commit("d1")})

    assert told(frozen, claims()) == "RemovalWaits"


def test_a_frozen_removal_draft_takes_no_more() -> None:
    on = ground(PROPOSED, proposed={BRANCH: commit("r1")})
    packages = {"gw": PROPOSED, "next": replace(PUBLISHED, owner=owner("next"))}
    assert isinstance(on.objects, Tables)
    here = replace(on.objects, packages={**on.objects.packages, "b1": {"gw": "v1", "next": "v1"}})
    on = replace(on, objects=here, state=replace(on.state, packages=packages))

    assert told(on, claims()) == "RemovalWaits proposed"


def test_of_what_is_gone_the_numbers_are_left() -> None:
    (leaving,) = decide_removals(ground(PUBLISHED, None), claims(), ()).removals

    assert leaving.record == PackageRecord(owner(), last_workspace=2, last_revision=1)


def layouts(on: TargetSnapshot, who: TargetClaims) -> tuple[BranchAction, ...]:
    return plan_removal_branches(on, who, decide_removals(on, who, ()), {"gw": "gone"}, 7)


def test_a_removal_is_one_commit_on_the_cluster_branch() -> None:
    (grow,) = layouts(ground(PUBLISHED), claims())

    assert isinstance(grow, PushCommits)
    assert (grow.branch, grow.expected_head, grow.start_commit) == (BRANCH, None, commit("b1"))
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
        pytest.param(PROPOSED, "v1", claims(), KeepBranch(BRANCH), id="it-waits"),
        pytest.param(PROPOSED, "v1", claims(variant()), DeleteBranch(BRANCH, commit("r1")), id="wanted-again"),
        pytest.param(PROPOSED, "v1", claims(is_complete=False), KeepBranch(BRANCH), id="nothing-is-known"),
        pytest.param(
            PROPOSED, "v1", claims(unresolved_owners=[owner().key]), KeepBranch(BRANCH), id="its-owner-stalls"
        ),
    ],
)
def test_what_becomes_of_a_removal_draft(
    known: PackageRecord, published: str, who: TargetClaims, expected: BranchAction
) -> None:
    assert layouts(ground(known, published), who) == (expected,)


def test_a_removal_draft_follows_the_cluster_branch() -> None:
    (grow,) = layouts(ground(PROPOSED, "v2"), claims())

    assert isinstance(grow, PushCommits)
    assert (grow.expected_head, grow.start_commit) == (commit("r1"), commit("b1"))


@pytest.mark.parametrize(
    ("frozen", "expected"), [pytest.param(False, None, id="open"), pytest.param(True, PROPOSED.removal, id="frozen")]
)
def test_what_is_wanted_again_is_not_on_its_way_out(frozen: bool, expected: ProposedRemoval | None) -> None:
    on = ground(PROPOSED, proposed={BRANCH: commit("r1")} if frozen else {})

    assert cancel_removals(on.state, on, claims(variant())).packages["gw"].removal == expected


@pytest.mark.parametrize(
    ("drafted", "edited", "expected"),
    [
        pytest.param("d1", False, (), id="only-ours"),
        pytest.param("d1-with-edits", True, (commit("d1"),), id="edited-in-the-package"),
        pytest.param("d1", True, (), id="edited-elsewhere"),
    ],
)
def test_heads_that_are_kept(drafted: str, edited: bool, expected: tuple[str, ...]) -> None:
    on = ground(DRAFTED, None, drafted, is_edited=edited)

    assert list_heads_to_keep(on, decide_removals(on, claims(), ()), ()) == expected


@pytest.mark.parametrize(
    ("plain", "expected"),
    [pytest.param("up1", (), id="no-edit"), pytest.param("up0", (commit("d1"),), id="an-edit-that-an-update-took-in")],
)
def test_an_offer_may_hold_what_people_changed(plain: str, expected: tuple[str, ...]) -> None:
    on = ground(replace(DRAFTED, draft_version=replace(offer("d1"), plain=tree(plain))), None, "d1", is_edited=True)

    assert list_heads_to_keep(on, decide_removals(on, claims(), ()), ()) == expected


def test_peoples_commits_are_kept_when_their_branch_ends() -> None:
    on = ground(DRAFTED, None, "d1", is_edited=True)
    ended = (DeleteBranch("drafts/berlin", commit("d1")),)

    assert list_heads_to_keep(on, decide_removals(on, claims(), ()), ended) == (commit("d1"),)


# the share of a target


def several(
    published: int, deleted: int, package_record: PackageRecord = PUBLISHED
) -> tuple[TargetSnapshot, TargetClaims]:
    """Berlin with published packages p0, p1, … of which the first `gone` are wanted no more, and 30 % may go."""
    names = [f"p{number}" for number in range(published)]
    tables = Tables({"b1": dict.fromkeys(names, "v1")})
    packages = {name: replace(package_record, owner=owner(name)) for name in names}
    on = TargetSnapshot(
        destination(), state(packages=packages), TargetHeads(commit("b1")), tables, "drafts/{repository}"
    )
    variants = [replace(variant(name), target=PackageTarget("default", "berlin", name)) for name in names[deleted:]]
    return on, claims(*variants, max_delete_percent=30)


def how(on: TargetSnapshot, who: TargetClaims) -> list[str]:
    return told(on, who).split()


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
def test_a_target_gives_up_no_more_than_its_share_at_once(
    published: int, deleted: int, expected: str, deletion: DeletionPolicy
) -> None:
    on, who = several(published, deleted, replace(PUBLISHED, deletion_policy=deletion))
    leaves = "orphaned" if deletion == "orphan" and expected == "proposed" else expected

    assert how(on, who) == [leaves] * deleted


def test_the_finding_names_the_line_that_releases_the_removals_of_a_target() -> None:
    on, who = several(2, 1)
    token = compute_deletion_hash([DownstreamKey("berlin", "p0")])

    (held,) = decide_removals(on, who, ()).held

    assert f'annotate Repository berlin with reconciler.dev/ack-deletions: "{token}"' in held.finding.message
    assert "1 of 2 published packages of Repository berlin would be deleted (berlin/p0)" in held.finding.message
    assert (held.target_package_count, held.finding.location) == (2, destination().location)
    assert how(on, replace(who, acknowledged_hashes=frozenset({token}))) == ["proposed"]
    assert how(on, replace(who, acknowledged_hashes=frozenset({"f00"}))) == ["DeletionHeld"]


def test_packages_that_come_later_are_no_reason_to_release_what_is_held() -> None:
    on, who = several(10, 2)
    before = {
        name: replace(package_record, outcome={"kind": "held", "onTarget": 2})
        for name, package_record in on.state.packages.items()
    }

    assert how(on, who) == ["proposed"] * 2
    assert how(replace(on, state=state(packages=before)), who) == ["DeletionHeld"] * 2


def test_a_confirmation_counts_for_what_is_left_of_the_removals_that_it_named() -> None:
    on, who = several(2, 1)
    message = 'to confirm, annotate Repository berlin with reconciler.dev/ack-deletions: "cafe"'
    told_before = {"kind": "held", "findings": [{"message": message}], "onTarget": 3}
    packages = {**on.state.packages, "p0": replace(on.state.packages["p0"], outcome=told_before)}

    assert how(replace(on, state=state(packages=packages)), replace(who, acknowledged_hashes=frozenset({"cafe"}))) == [
        "proposed"
    ]


def test_what_is_confirmed_at_its_set_is_not_asked_about_at_the_target() -> None:
    on, who = several(2, 1)
    packages = {
        name: replace(package_record, owner=owner(name, made_by="fleet"))
        for name, package_record in on.state.packages.items()
    }
    on = replace(on, state=state(packages=packages))
    place = frozenset({PackageTarget("default", "berlin", "p0")})

    assert how(on, replace(who, guards={FLEET: DeletionGuard(place)})) == ["DeletionHeld"]
    assert how(on, replace(who, guards={FLEET: DeletionGuard(place, confirmed=place)})) == ["proposed"]


def test_a_record_without_the_file_of_its_owner_waits_for_a_confirmation() -> None:
    on, who = several(10, 1, replace(PUBLISHED, config_sources={}))
    token = compute_deletion_hash([DownstreamKey("berlin", "p0")])

    assert how(on, who) == ["DeletionHeld"]
    assert how(on, replace(who, acknowledged_hashes=frozenset({token}))) == ["proposed"]


def test_drafts_that_were_never_published_do_not_count() -> None:
    assert told(ground(DRAFTED, None, "d1"), claims(max_delete_percent=30)) == "withdrawn"
