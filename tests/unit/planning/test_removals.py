"""What nothing wants any more: which of it goes, which stays, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.krm.findings import Severity
from reconciler.krm.identity import ObjectKey
from reconciler.planning.branches import End, Grow, Keep, Layout
from reconciler.planning.claims import Claims
from reconciler.planning.ground import Ground
from reconciler.planning.removals import find_departures, kept_heads, lay_out_removals, without_recalled
from reconciler.planning.standing import Heads
from reconciler.planning.state import DraftBranch, PackageRecord, Removal
from reconciler.rules.guards import deletion_hash
from reconciler.rules.variant import DeletionPolicy, Guard, Place, object_id
from reconciler.rules.variants.naming import TargetKey
from tests.unit.planning.values import GROUP, Tables, commit, destination, offer, owner, record, state, tree, variant

BRANCH = "removals/berlin"
FLEET = ObjectKey(GROUP, "PackageVariantSet", "default", "fleet")
SOURCES = {"gw.yaml": (object_id(owner().key),)}
PUBLISHED = record(ours=offer("v1"), workspace=2, revision=1, sources=SOURCES)
OF_SET = replace(PUBLISHED, owner=owner(made_by="fleet"))
DRAFTED = record(put=offer("d1"), draft="drafts/berlin", workspace=1)
PROPOSED = replace(PUBLISHED, removal=Removal(BRANCH, tree("v1")))
DECLINED = replace(PUBLISHED, removal=Removal(BRANCH, tree("v1"), declined=True))
HERE = Place("default", "berlin", "gw")
ELSEWHERE = Place("default", "lisbon", "gw")
HASH = deletion_hash([TargetKey("berlin", "gw")])


def claims(*variants: Any, **fields: Any) -> Claims:
    complete = fields.pop("complete", True)
    unplaced = frozenset(fields.pop("unplaced", ()))
    return Claims(variants, frozenset(), unplaced, complete, **fields)


def ground(one: PackageRecord, published: str | None = "v1", drafted: str | None = None, **heads: Any) -> Ground:
    """Berlin with one package: `published` on its branch, `drafted` on its draft, and its removal if it has one."""
    base = None if published is None else "v1"
    tables = Tables({"b0": {"gw": base}, "b1": {"gw": published}, "d1": {"gw": drafted}, "r1": {"gw": None}})
    drafts = {"drafts/berlin": DraftBranch(commit("d1"), commit("b0"))} if drafted else {}
    if one.removal and not one.removal.declined:
        drafts[BRANCH] = DraftBranch(commit("r1"), commit("b0"), removes=True)
    known = {name: draft.head for name, draft in drafts.items()}
    edited = heads.pop("edited", False)
    drafts = {name: replace(draft, edited=edited) for name, draft in drafts.items()}
    found = Heads(commit("b1"), drafts=known, removals=frozenset({BRANCH}), **heads)
    return Ground(destination(), state(drafts=drafts, packages={"gw": one}), found, tables, "drafts/{repository}")


def told(on: Ground, who: Claims, *reconciled: ObjectKey) -> str:
    """Return how the package leaves, the code of what holds it, or "" when it is nobody's business."""
    found = find_departures(on, who, reconciled)
    return " ".join([one.finding.code for one in found.held] + [one.how for one in found.leaving])


@pytest.mark.parametrize(
    ("known", "published", "drafted", "expected"),
    [
        pytest.param(PUBLISHED, "v1", None, "proposed", id="published"),
        pytest.param(PROPOSED, "v1", None, "proposed", id="proposed-before"),
        pytest.param(DECLINED, "v1", None, "declined", id="declined-before"),
        pytest.param(DECLINED, "v2", None, "proposed", id="declined-and-another-now"),
        pytest.param(PUBLISHED, None, None, "withdrawn", id="gone-from-the-branch"),
        pytest.param(DRAFTED, None, "d1", "withdrawn", id="never-published"),
        pytest.param(replace(PUBLISHED, put=offer("d1"), draft="drafts/berlin"), "v1", "d1", "proposed", id="both"),
        pytest.param(replace(PUBLISHED, deletion="orphan"), "v1", None, "orphaned", id="orphan"),
        pytest.param(replace(DRAFTED, deletion="orphan"), None, "d1", "orphaned", id="an-orphan-that-is-a-draft"),
        pytest.param(replace(PUBLISHED, owned=False), "v1", None, "", id="nobodys"),
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
        pytest.param(claims(stalled=frozenset({"gw"})), "", id="wanted-by-one-that-stalls"),
        pytest.param(claims(unplaced=[owner().key]), "", id="its-owner-stalls"),
        pytest.param(claims(complete=False), "DeletionHeld", id="a-file-is-unreadable"),
        pytest.param(claims(ownerless=True), "DeletionHeld", id="no-owner-at-all"),
        pytest.param(
            claims(ownerless=True, acknowledged=frozenset({HASH})), "proposed", id="no-owner-at-all-and-acknowledged"
        ),
        pytest.param(
            claims(ownerless=True, acknowledged=frozenset({"f00"})), "DeletionHeld", id="another-acknowledgement"
        ),
        pytest.param(
            claims(alike={("default", "gw"): ObjectKey(GROUP, "PackageVarient", "default", "gw")}),
            "DeletionHeld",
            id="a-misspelt-kind",
        ),
        pytest.param(
            claims(homes={owner().key: frozenset({ELSEWHERE})}), "RemovalWaits", id="its-new-place-is-not-there-yet"
        ),
        pytest.param(claims(dependents={"gw": owner("chained").key}), "RemovalWaits", id="the-upstream-of-another"),
    ],
)
def test_what_is_not_proved_gone_stays(who: Claims, expected: str) -> None:
    assert told(ground(PUBLISHED), who) == expected


@pytest.mark.parametrize(
    ("home", "reconciled", "expected"),
    [
        pytest.param(ELSEWHERE, [owner().key], "proposed", id="its-new-place-is-there"),
        pytest.param(replace(HERE, package="gw/inner"), [], "proposed", id="the-old-place-is-in-the-way"),
        pytest.param(replace(ELSEWHERE, package="gw/inner"), [], "RemovalWaits", id="not-on-another-cluster"),
    ],
)
def test_a_package_that_moved(home: Place, reconciled: list[ObjectKey], expected: str) -> None:
    assert told(ground(PUBLISHED), claims(homes={owner().key: frozenset({home})}), *reconciled) == expected


@pytest.mark.parametrize(
    ("known", "guard", "expected"),
    [
        pytest.param(OF_SET, Guard(frozenset({HERE})), "proposed", id="released"),
        pytest.param(OF_SET, Guard(frozenset({ELSEWHERE})), "DeletionHeld", id="another-place-is-released"),
        pytest.param(OF_SET, Guard(why="too many"), "DeletionHeld", id="held"),
        pytest.param(replace(OF_SET, removal=PROPOSED.removal), Guard(), "proposed", id="under-way-already"),
        pytest.param(replace(OF_SET, deletion="orphan"), Guard(), "DeletionHeld", id="orphans-are-held-too"),
        pytest.param(OF_SET, None, "proposed", id="the-set-is-gone"),
    ],
)
def test_a_set_that_is_there_has_to_let_go(known: PackageRecord, guard: Guard | None, expected: str) -> None:
    assert told(ground(known), claims(guards={FLEET: guard} if guard else {})) == expected


def test_what_hides_an_owner_is_told_elsewhere_and_its_consequence_is_a_warning() -> None:
    (held,) = find_departures(ground(PUBLISHED), claims(complete=False), ()).held

    assert held.finding.severity is Severity.WARNING
    assert "leaves open which objects it has" in held.finding.message


def test_the_hash_that_acknowledges_is_told() -> None:
    (held,) = find_departures(ground(PUBLISHED), claims(ownerless=True), ()).held

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
    (leaving,) = find_departures(ground(PUBLISHED, None), claims(), ()).leaving

    assert leaving.record == PackageRecord(owner(), workspace=2, revision=1)


def layouts(on: Ground, who: Claims) -> tuple[Layout, ...]:
    return lay_out_removals(on, who, find_departures(on, who, ()), {"gw": "gone"}, 7)


def test_a_removal_is_one_commit_on_the_cluster_branch() -> None:
    (grow,) = layouts(ground(PUBLISHED), claims())

    assert isinstance(grow, Grow)
    assert (grow.branch, grow.old, grow.start) == (BRANCH, None, commit("b1"))
    assert [(one.package, one.content, one.status, one.message, one.seconds) for one in grow.steps] == [
        ("gw", None, None, "gone", 7)
    ]


@pytest.mark.parametrize(
    ("known", "published", "who", "expected"),
    [
        pytest.param(PROPOSED, "v1", claims(), Keep(BRANCH), id="it-waits"),
        pytest.param(PROPOSED, "v1", claims(variant()), End(BRANCH, commit("r1")), id="wanted-again"),
        pytest.param(PROPOSED, "v1", claims(complete=False), Keep(BRANCH), id="nothing-is-known"),
        pytest.param(PROPOSED, "v1", claims(unplaced=[owner().key]), Keep(BRANCH), id="its-owner-stalls"),
    ],
)
def test_what_becomes_of_a_removal_draft(known: PackageRecord, published: str, who: Claims, expected: Layout) -> None:
    assert layouts(ground(known, published), who) == (expected,)


def test_a_removal_draft_follows_the_cluster_branch() -> None:
    (grow,) = layouts(ground(PROPOSED, "v2"), claims())

    assert isinstance(grow, Grow)
    assert (grow.old, grow.start) == (commit("r1"), commit("b1"))


@pytest.mark.parametrize(
    ("frozen", "expected"), [pytest.param(False, None, id="open"), pytest.param(True, PROPOSED.removal, id="frozen")]
)
def test_what_is_wanted_again_is_not_on_its_way_out(frozen: bool, expected: Removal | None) -> None:
    on = ground(PROPOSED, proposed={BRANCH: commit("r1")} if frozen else {})

    assert without_recalled(on.state, on, claims(variant())).packages["gw"].removal == expected


@pytest.mark.parametrize(
    ("drafted", "edited", "expected"),
    [
        pytest.param("d1", False, (), id="only-ours"),
        pytest.param("d1-with-edits", True, (commit("d1"),), id="edited-in-the-package"),
        pytest.param("d1", True, (), id="edited-elsewhere"),
    ],
)
def test_heads_that_are_kept(drafted: str, edited: bool, expected: tuple[str, ...]) -> None:
    on = ground(DRAFTED, None, drafted, edited=edited)

    assert kept_heads(on, find_departures(on, claims(), ()), ()) == expected


@pytest.mark.parametrize(
    ("plain", "expected"),
    [pytest.param("up1", (), id="no-edit"), pytest.param("up0", (commit("d1"),), id="an-edit-that-an-update-took-in")],
)
def test_an_offer_may_hold_what_people_changed(plain: str, expected: tuple[str, ...]) -> None:
    on = ground(replace(DRAFTED, put=replace(offer("d1"), plain=tree(plain))), None, "d1", edited=True)

    assert kept_heads(on, find_departures(on, claims(), ()), ()) == expected


def test_peoples_commits_are_kept_when_their_branch_ends() -> None:
    on = ground(DRAFTED, None, "d1", edited=True)
    ended = (End("drafts/berlin", commit("d1")),)

    assert kept_heads(on, find_departures(on, claims(), ()), ended) == (commit("d1"),)


# the share of a target


def several(published: int, gone: int, one: PackageRecord = PUBLISHED) -> tuple[Ground, Claims]:
    """Berlin with published packages p0, p1, … of which the first `gone` are wanted no more, and 30 % may go."""
    names = [f"p{number}" for number in range(published)]
    tables = Tables({"b1": dict.fromkeys(names, "v1")})
    packages = {name: replace(one, owner=owner(name)) for name in names}
    on = Ground(destination(), state(packages=packages), Heads(commit("b1")), tables, "drafts/{repository}")
    wanted = [replace(variant(name), place=Place("default", "berlin", name)) for name in names[gone:]]
    return on, claims(*wanted, max_delete_percent=30)


def how(on: Ground, who: Claims) -> list[str]:
    return told(on, who).split()


@pytest.mark.parametrize(
    ("published", "gone", "expected"),
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
    published: int, gone: int, expected: str, deletion: DeletionPolicy
) -> None:
    on, who = several(published, gone, replace(PUBLISHED, deletion=deletion))
    leaves = "orphaned" if deletion == "orphan" and expected == "proposed" else expected

    assert how(on, who) == [leaves] * gone


def test_the_finding_names_the_line_that_releases_the_removals_of_a_target() -> None:
    on, who = several(2, 1)
    token = deletion_hash([TargetKey("berlin", "p0")])

    (held,) = find_departures(on, who, ()).held

    assert f'annotate Repository berlin with reconciler.dev/ack-deletions: "{token}"' in held.finding.message
    assert "1 of 2 published packages of Repository berlin would be deleted (berlin/p0)" in held.finding.message
    assert (held.on_target, held.finding.where) == (2, destination().where)
    assert how(on, replace(who, acknowledged=frozenset({token}))) == ["proposed"]
    assert how(on, replace(who, acknowledged=frozenset({"f00"}))) == ["DeletionHeld"]


def test_packages_that_come_later_are_no_reason_to_release_what_is_held() -> None:
    on, who = several(10, 2)
    before = {name: replace(one, outcome={"kind": "held", "onTarget": 2}) for name, one in on.state.packages.items()}

    assert how(on, who) == ["proposed"] * 2
    assert how(replace(on, state=state(packages=before)), who) == ["DeletionHeld"] * 2


def test_a_confirmation_counts_for_what_is_left_of_the_removals_that_it_named() -> None:
    on, who = several(2, 1)
    message = 'to confirm, annotate Repository berlin with reconciler.dev/ack-deletions: "cafe"'
    told_before = {"kind": "held", "findings": [{"message": message}], "onTarget": 3}
    packages = {**on.state.packages, "p0": replace(on.state.packages["p0"], outcome=told_before)}

    assert how(replace(on, state=state(packages=packages)), replace(who, acknowledged=frozenset({"cafe"}))) == [
        "proposed"
    ]


def test_what_is_confirmed_at_its_set_is_not_asked_about_at_the_target() -> None:
    on, who = several(2, 1)
    packages = {name: replace(one, owner=owner(name, made_by="fleet")) for name, one in on.state.packages.items()}
    on = replace(on, state=state(packages=packages))
    place = frozenset({Place("default", "berlin", "p0")})

    assert how(on, replace(who, guards={FLEET: Guard(place)})) == ["DeletionHeld"]
    assert how(on, replace(who, guards={FLEET: Guard(place, confirmed=place)})) == ["proposed"]


def test_a_record_without_the_file_of_its_owner_waits_for_a_confirmation() -> None:
    on, who = several(10, 1, replace(PUBLISHED, sources={}))
    token = deletion_hash([TargetKey("berlin", "p0")])

    assert how(on, who) == ["DeletionHeld"]
    assert how(on, replace(who, acknowledged=frozenset({token}))) == ["proposed"]


def test_drafts_that_were_never_published_do_not_count() -> None:
    assert told(ground(DRAFTED, None, "d1"), claims(max_delete_percent=30)) == "withdrawn"
