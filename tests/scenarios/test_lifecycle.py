"""The lifecycle as tables: each cell of porch 5 and 6.2, each arrow of porch 7, each case of porch 4.1 and 4.2.

A cluster is a row's state and a package its event, so that all cells of a table are one world and one config commit;
what came of each is noted once, and every cell is a test of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.git_repositories import git, read_refs
from tests.support.world import World, catalog, package, repository, variant

MUTATED = "packageContext: {data: {zone: b}}"
ADOPTING = "adoptionPolicy: adoptExisting"
ORPHAN = "deletionPolicy: orphan"
EVENTS = ("same", "mutated", "updated", "moved")


def wants(world: World, cluster: str, name: str, version: str = "v1", to: str = "", extra: str = "") -> None:
    """Have a variant, one for each cluster and name, want the package of its name there, or another."""
    written = variant(f"{cluster}-{name}", cluster, to or name, version, upstream="app", extra=extra)
    world.write({f"{cluster}-{name}.yaml": written})


def gone(world: World, cluster: str, name: str) -> None:
    world.write({f"{cluster}-{name}.yaml": None})


def new_world(folder: Path, *clusters: str) -> World:
    """Return a world with these clusters, a catalog of one package, and a variant that always stays."""
    world = World.create(folder)
    world.release("app", "v1", package("app"))
    world.release("app", "v2", package("app", image="2.0"))
    world.write({"catalog.yaml": catalog(), **{f"{item}.yaml": repository(item) for item in (*clusters, "other")}})
    wants(world, "other", "stays")
    return world


@dataclass(frozen=True)
class Cell:
    """What a pass came to for one package: the outcome, and what stands where.

    `task` is what the commit on the draft says it does, "" without one; `lifecycle` is porch 7's word.
    """

    outcome: str
    lifecycle: str
    task: str = ""


def cell(world: World, outcomes: Mapping[str, str], cluster: str, name: str) -> Cell:
    return Cell(outcomes.get(f"{cluster}/{name}", ""), lifecycle(world, cluster, name), task(world, cluster, name))


def task(world: World, cluster: str, name: str) -> str:
    """Return the task of the last commit that put a package on its draft; "" when it is not on one."""
    draft = f"drafts/{cluster}"
    if not world.head(draft) or world.tree(draft, name) in (None, world.tree(f"clusters/{cluster}", name)):
        return ""
    trailer = "%(trailers:key=Reconciler-Task,valueonly)"
    return git(world.fleet, "log", "-1", f"--format={trailer}", draft, "--", name)


def lifecycle(world: World, cluster: str, name: str) -> str:
    """Return where a package is in its life, from refs alone: its draft, if it has one, before what is published."""
    published, removal, draft = (f"{kind}/{cluster}" for kind in ("clusters", "removals", "drafts"))
    stands = world.tree(published, name)
    if stands and world.head(removal) and world.tree(removal, name) is None:
        return "DeletionProposed"
    if world.head(draft) and world.tree(draft, name) not in (None, stands):
        is_proposed = world.head(f"proposed/{cluster}") == world.head(draft)
        return "Proposed" if is_proposed else "Draft"
    return "Published" if stands else "none"


# porch 5: the branch table


BRANCH_STATES = ("none", "draft", "proposed", "published", "removing", "foreign")


@pytest.fixture(scope="module")
def branch_table(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Cell, Cell]]:
    """Each state meets each event in one config commit; for moves, the old place and the new one."""
    world = new_world(tmp_path_factory.mktemp("branches"), *BRANCH_STATES)
    for state in ("draft", "proposed", "published", "removing"):
        for event in EVENTS:
            wants(world, state, event)
    world.sync()
    for state in ("published", "removing"):
        world.run_review_action("approve", state, should_approve_unproposed=True)
    world.run_review_action("propose", "proposed")
    foreign = {f"{name}/Kptfile": package("app")["Kptfile"] for name in (*EVENTS, "moved-on")}
    world.commit("clusters/foreign", foreign)
    for event in EVENTS:
        wants(world, "foreign", event)
        gone(world, "removing", event)
    world.sync()
    for state in BRANCH_STATES:
        wants(world, state, "same")
        wants(world, state, "mutated", extra=MUTATED)
        wants(world, state, "updated", "v2")
        wants(world, state, "moved", to="moved-on")
    outcomes = world.sync().outcomes
    cells = {
        (state, event): (cell(world, outcomes, state, event), cell(world, outcomes, state, "moved-on"))
        for state in BRANCH_STATES
        for event in EVENTS
    }
    assert world.sync().is_unchanged
    return cells


CLONED = Cell("draft", "Draft", "clone")
NOTHING = Cell("", "none")
EXISTS = Cell("DownstreamExists", "Published")
WAITS = Cell("DownstreamProposed", "Proposed", "clone")


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        *(pytest.param("none", event, CLONED, id=f"none-{event}") for event in EVENTS[:3]),
        pytest.param("draft", "same", Cell("drafted", "Draft", "clone"), id="draft-same"),
        pytest.param("draft", "mutated", Cell("draft", "Draft", "mutate"), id="draft-mutated"),
        pytest.param("draft", "updated", Cell("draft", "Draft", "update"), id="draft-updated"),
        pytest.param("draft", "moved", Cell("withdrawn", "none"), id="draft-moved"),
        pytest.param("proposed", "same", Cell("drafted", "Proposed", "clone"), id="proposed-same"),
        pytest.param("proposed", "mutated", WAITS, id="proposed-mutated"),
        pytest.param("proposed", "updated", WAITS, id="proposed-updated"),
        pytest.param("proposed", "moved", Cell("RemovalWaits", "Proposed", "clone"), id="proposed-moved"),
        pytest.param("published", "same", Cell("published", "Published"), id="published-same"),
        pytest.param("published", "mutated", Cell("draft", "Draft", "edit"), id="published-mutated"),
        pytest.param("published", "updated", Cell("draft", "Draft", "upgrade"), id="published-updated"),
        pytest.param("published", "moved", Cell("proposed", "DeletionProposed"), id="published-moved"),
        pytest.param("removing", "same", Cell("published", "Published"), id="removing-same"),
        pytest.param("removing", "mutated", Cell("draft", "Draft", "edit"), id="removing-mutated"),
        pytest.param("removing", "updated", Cell("draft", "Draft", "upgrade"), id="removing-updated"),
        pytest.param("removing", "moved", Cell("proposed", "DeletionProposed"), id="removing-moved"),
        *(pytest.param("foreign", event, EXISTS, id=f"foreign-{event}") for event in EVENTS[:3]),
        pytest.param("foreign", "moved", Cell("", "Published"), id="foreign-moved"),
    ],
)
def test_the_branch_table(
    branch_table: Mapping[tuple[str, str], tuple[Cell, Cell]], state: str, event: str, expected: Cell
) -> None:
    assert branch_table[state, event][0] == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param("none", CLONED, id="none"),
        pytest.param("draft", CLONED, id="draft"),
        pytest.param("proposed", Cell("DownstreamProposed", "none"), id="proposed-waits-with-its-draft"),
        pytest.param("published", CLONED, id="published"),
        pytest.param("removing", CLONED, id="removing"),
        pytest.param("foreign", EXISTS, id="foreign"),
    ],
)
def test_the_place_that_a_package_moves_to(
    branch_table: Mapping[tuple[str, str], tuple[Cell, Cell]], state: str, expected: Cell
) -> None:
    assert branch_table[state, "moved"][1] == expected


# porch 6.2: a variant goes


GOING = ("draft", "proposed", "published", "removing")


@pytest.fixture(scope="module")
def deletions(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Cell, bool]]:
    """Each state loses its variants, of either policy, in one config commit; noted is whether it is owned still."""
    world = new_world(tmp_path_factory.mktemp("deletions"), *GOING)
    for state in GOING:
        wants(world, state, "delete")
        wants(world, state, "orphan", extra=ORPHAN)
    # what is proposed to go is so because its owner wants another place, and asked to have it deleted then
    wants(world, "removing", "orphan")
    world.sync()
    for state in ("published", "removing"):
        world.run_review_action("approve", state, should_approve_unproposed=True)
    world.run_review_action("propose", "proposed")
    world.sync()
    wants(world, "removing", "delete", to="delete-elsewhere")
    wants(world, "removing", "orphan", to="orphan-elsewhere")
    world.sync()
    wants(world, "removing", "orphan", to="orphan-elsewhere", extra=ORPHAN)
    world.sync()
    for state in GOING:
        for policy in ("delete", "orphan"):
            gone(world, state, policy)
    outcomes = world.sync().outcomes
    cells = {
        (state, policy): (cell(world, outcomes, state, policy), bool(world.record(state, policy)["owned"]))
        for state in GOING
        for policy in ("delete", "orphan")
    }
    assert world.sync().is_unchanged
    return cells


@pytest.mark.parametrize(
    ("state", "policy", "expected", "is_owned"),
    [
        pytest.param("draft", "delete", Cell("withdrawn", "none"), False, id="draft-delete"),
        pytest.param("draft", "orphan", Cell("orphaned", "Draft", "clone"), False, id="draft-orphan"),
        # design 10.12: nothing is written to a draft while it is proposed
        pytest.param("proposed", "delete", Cell("RemovalWaits", "Proposed", "clone"), True, id="proposed-delete"),
        pytest.param("proposed", "orphan", Cell("orphaned", "Proposed", "clone"), False, id="proposed-orphan"),
        # the record goes when people have decided: until then a variant that comes back finds its package
        pytest.param("published", "delete", Cell("proposed", "DeletionProposed"), True, id="published-delete"),
        pytest.param("published", "orphan", Cell("orphaned", "Published"), False, id="published-orphan"),
        pytest.param("removing", "delete", Cell("proposed", "DeletionProposed"), True, id="removing-delete"),
        pytest.param("removing", "orphan", Cell("proposed", "DeletionProposed"), True, id="removing-orphan"),
    ],
)
def test_what_becomes_of_a_package_whose_variant_goes(
    deletions: Mapping[tuple[str, str], tuple[Cell, bool]], state: str, policy: str, expected: Cell, is_owned: bool
) -> None:
    assert deletions[state, policy] == (expected, is_owned)


# porch 7: the state machine


@dataclass(frozen=True)
class Step:
    """One act: what became of it by command, and where the package was before, at once, and after the next pass."""

    told: str
    before: str
    at_once: str
    after: str
    revision: int


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """Walk one package through all of its life; each act is followed by a pass, and that by a silent one."""
    world = new_world(tmp_path_factory.mktemp("walk"), "berlin")
    world.sync_until_unchanged()
    steps: dict[str, Step] = {}

    def take(name: str, verb: str = "", **more: object) -> None:
        before = lifecycle(world, "berlin", "app")
        acted = world.run_review_action(verb, "berlin/app", **more) if verb else ()  # type: ignore[arg-type]
        text = " ".join(
            word for result in acted for word in (result.status_label, *(reason.reason for reason in result.reasons))
        )
        at_once = lifecycle(world, "berlin", "app")
        world.sync_until_unchanged()
        revision = int(str(world.record("berlin", "app")["revision"]))
        steps[name] = Step(text, before, at_once, lifecycle(world, "berlin", "app"), revision)

    wants(world, "berlin", "app")
    take("created")
    take("approve-a-draft", "approve")
    take("propose", "propose")
    take("reject", "reject")
    take("propose-again", "propose")
    take("approve", "approve")
    take("approve-again", "approve")
    wants(world, "berlin", "app", "v2")
    take("updated")
    take("approve-at-once", "approve", should_approve_unproposed=True)
    gone(world, "berlin", "app")
    take("given-up")
    take("approve-a-removal-unasked", "approve")
    take("reject-a-removal", "drop")
    wants(world, "berlin", "app", "v2")
    world.sync_until_unchanged()
    gone(world, "berlin", "app")
    take("given-up-again")
    take("propose-a-removal", "propose")
    take("take-the-proposal-back", "reject")
    take("propose-the-removal-again", "propose")
    take("approve-a-removal", "approve")
    wants(world, "berlin", "app", "v2")
    take("created-again")
    take("approve-the-next", "approve", should_approve_unproposed=True)
    return steps


WALK = {
    "created": Step("", "none", "none", "Draft", 0),
    "approve-a-draft": Step("refused NotProposed", "Draft", "Draft", "Draft", 0),
    "propose": Step("proposed", "Draft", "Proposed", "Proposed", 0),
    "reject": Step("rejected", "Proposed", "Draft", "Draft", 0),
    "propose-again": Step("proposed", "Draft", "Proposed", "Proposed", 0),
    "approve": Step("published", "Proposed", "Published", "Published", 1),
    "approve-again": Step("unchanged", "Published", "Published", "Published", 1),
    "updated": Step("", "Published", "Published", "Draft", 1),
    "approve-at-once": Step("published", "Draft", "Published", "Published", 2),
    "given-up": Step("", "Published", "Published", "DeletionProposed", 2),
    "approve-a-removal-unasked": Step(
        "refused NotProposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2
    ),
    "reject-a-removal": Step("dropped", "DeletionProposed", "Published", "Published", 2),
    "given-up-again": Step("", "Published", "Published", "DeletionProposed", 2),
    "propose-a-removal": Step("proposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2),
    "take-the-proposal-back": Step("rejected", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2),
    "propose-the-removal-again": Step("proposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2),
    "approve-a-removal": Step("published", "DeletionProposed", "none", "none", 2),
    "created-again": Step("", "none", "none", "Draft", 2),
    "approve-the-next": Step("published", "Draft", "Published", "Published", 3),
}


@pytest.mark.parametrize("name", WALK)
def test_the_state_machine(walk: Mapping[str, Step], name: str) -> None:
    assert walk[name] == WALK[name]


def test_the_daemon_proposes_and_approves_nothing_itself(tmp_path: Path) -> None:
    world = new_world(tmp_path, "berlin")
    wants(world, "berlin", "app")
    world.sync_until_unchanged()

    heads = [name for name in read_refs(world.fleet) if name.startswith("refs/heads/") and "reconciler/" not in name]
    assert sorted(name.removeprefix("refs/heads/") for name in heads) == [
        "clusters/berlin", "clusters/other", "drafts/berlin", "drafts/other",
    ]  # fmt: skip
    assert world.paths(world.fleet, "clusters/berlin") == []


# porch 4.1 and 4.2: whose a package is


CONFLICT = "DownstreamConflict"
MINE = Cell("NoErrors", "Published")
OWNED = ("taken", "stalled", "renamed", "left")


@pytest.fixture(scope="module")
def ownership(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Cell, str]]:
    """All cases in one config commit; noted is what the claimant is told, and whose the package is then."""
    world = new_world(tmp_path_factory.mktemp("ownership"), "drafts", "live", "new", "branch")
    wants(world, "drafts", "ours")
    for name in OWNED:
        wants(world, "live", name)
    world.sync()
    world.run_review_action("approve", "live", should_approve_unproposed=True)
    world.sync()
    theirs = package("app")["Kptfile"]
    world.commit("drafts/drafts", {f"{name}/Kptfile": theirs for name in ("none", "existing")})
    world.commit("clusters/branch", {f"{name}/Kptfile": theirs for name in ("none", "existing")})
    for cluster in ("drafts", "branch"):
        wants(world, cluster, "none", extra=MUTATED)
        wants(world, cluster, "existing", extra=f"{ADOPTING}\n{MUTATED}")
    for name in OWNED:
        world.write({f"claim-{name}.yaml": variant(f"a-claim-{name}", "live", name, upstream="app", extra=ADOPTING)})
    wants(world, "live", "stalled", version="v9")
    gone(world, "live", "renamed")
    wants(world, "live", "left", to="left-for-this")
    for name in ("b", "a"):
        world.write({f"claim-{name}.yaml": variant(f"claim-{name}", "new", "wanted", upstream="app")})
    pass_result = world.sync()
    cells = {
        f"{cluster}-{name}": (cell(world, pass_result.outcomes, cluster, name), owner(world, cluster, name))
        for cluster in ("drafts", "branch")
        for name in ("none", "existing")
    }
    claims = {f"a-claim-{name}": ("live", name) for name in OWNED}
    claims |= {f"claim-{name}": ("new", "wanted") for name in ("a", "b")}
    for claim, (cluster, name) in claims.items():
        reported_cell = Cell(world.reason(claim), lifecycle(world, cluster, name), task(world, cluster, name))
        cells[claim] = (reported_cell, owner(world, cluster, name))
    assert world.sync().is_unchanged
    return cells


def owner(world: World, cluster: str, name: str) -> str:
    """Return the name of the variant that owns a package; "" when it is nobody's."""
    record = world.record(cluster, name)
    return str(record["owner"]["name"]) if record["owned"] else ""  # type: ignore[index]


@pytest.mark.parametrize(
    ("case", "expected", "owned_by"),
    [
        # design 10.12: a foreign package on the draft counts as existing
        pytest.param("drafts-none", Cell("DownstreamExists", "Draft"), "", id="adoptNone-unowned-draft"),
        pytest.param(
            "drafts-existing", Cell("draft", "Draft", "adopt"), "drafts-existing", id="adoptExisting-unowned-draft"
        ),
        pytest.param("branch-none", EXISTS, "", id="adoptNone-unowned-published"),
        pytest.param(
            "branch-existing", Cell("draft", "Draft", "adopt"), "branch-existing", id="adoptExisting-unowned-published"
        ),
        pytest.param("a-claim-taken", Cell(CONFLICT, "Published"), "live-taken", id="two-and-one-has-it"),
        pytest.param("a-claim-stalled", Cell("OwnershipConflict", "Published"), "live-stalled", id="a-live-one-has-it"),
        pytest.param("a-claim-renamed", MINE, "a-claim-renamed", id="its-owner-goes-as-it-comes"),
        pytest.param("a-claim-left", MINE, "a-claim-left", id="its-owner-wants-another-as-it-comes"),
        pytest.param("claim-a", Cell("NoErrors", "Draft", "clone"), "claim-a", id="two-and-the-first-by-name-wins"),
        pytest.param("claim-b", Cell(CONFLICT, "Draft", "clone"), "claim-a", id="two-and-the-other-is-told"),
    ],
)
def test_whose_a_package_is(
    ownership: Mapping[str, tuple[Cell, str]], case: str, expected: Cell, owned_by: str
) -> None:
    assert ownership[case] == (expected, owned_by)
