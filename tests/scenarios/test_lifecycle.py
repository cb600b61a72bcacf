"""Tests of the package lifecycle as tables: states and events, deletions, review actions and ownership.

In each table, a cluster is a state and a package is an event. Therefore one world and one config commit contain all
cells of a table. A module-scoped fixture records the results, and each cell is one test.
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


def request_package(world: World, cluster: str, name: str, version: str = "v1", to: str = "", extra: str = "") -> None:
    """Write a variant for a cluster and a name. Its package has the same name by default."""
    written = variant(f"{cluster}-{name}", cluster, to or name, version, upstream="app", extra=extra)
    world.write({f"{cluster}-{name}.yaml": written})


def delete_variant(world: World, cluster: str, name: str) -> None:
    world.write({f"{cluster}-{name}.yaml": None})


def new_world(folder: Path, *clusters: str) -> World:
    """Return a world with these clusters, a catalog of one package, and a variant that is never deleted."""
    world = World.create(folder)
    world.release("app", "v1", package("app"))
    world.release("app", "v2", package("app", image="2.0"))
    world.write({"catalog.yaml": catalog(), **{f"{item}.yaml": repository(item) for item in (*clusters, "other")}})
    request_package(world, "other", "stays")
    return world


@dataclass(frozen=True)
class Cell:
    """The result of a pass for one package: the outcome, and the content of the branches.

    `task` is the task in the commit of the draft, or "" without a draft. `lifecycle` is the lifecycle state, as in Porch.
    """

    outcome: str
    lifecycle: str
    task: str = ""


def read_cell(world: World, outcomes: Mapping[str, str], cluster: str, name: str) -> Cell:
    return Cell(
        outcomes.get(f"{cluster}/{name}", ""), read_lifecycle(world, cluster, name), read_task(world, cluster, name)
    )


def read_task(world: World, cluster: str, name: str) -> str:
    """Return the task of the last draft commit of a package, or "" if the package is not on a draft."""
    draft = f"drafts/{cluster}"
    if not world.head(draft) or world.tree(draft, name) in (None, world.tree(f"clusters/{cluster}", name)):
        return ""
    trailer = "%(trailers:key=Reconciler-Task,valueonly)"
    return git(world.fleet, "log", "-1", f"--format={trailer}", draft, "--", name)


def read_lifecycle(world: World, cluster: str, name: str) -> str:
    """Return the lifecycle state of a package from refs alone. An open draft has precedence over published content."""
    published, removal, draft = (f"{kind}/{cluster}" for kind in ("clusters", "removals", "drafts"))
    stands = world.tree(published, name)
    if stands and world.head(removal) and world.tree(removal, name) is None:
        return "DeletionProposed"
    if world.head(draft) and world.tree(draft, name) not in (None, stands):
        is_proposed = world.head(f"proposed/{cluster}") == world.head(draft)
        return "Proposed" if is_proposed else "Draft"
    return "Published" if stands else "none"


# The tests of this section check the states and events of a branch.


BRANCH_STATES = ("none", "draft", "proposed", "published", "removing", "foreign")


@pytest.fixture(scope="module")
def branch_table(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Cell, Cell]]:
    """Apply each event to each state in one config commit. For moves, return the old target and the new target."""
    world = new_world(tmp_path_factory.mktemp("branches"), *BRANCH_STATES)
    for state in ("draft", "proposed", "published", "removing"):
        for event in EVENTS:
            request_package(world, state, event)
    world.sync()
    for state in ("published", "removing"):
        world.run_review_action("approve", state, should_approve_unproposed=True)
    world.run_review_action("propose", "proposed")
    foreign = {f"{name}/Kptfile": package("app")["Kptfile"] for name in (*EVENTS, "moved-on")}
    world.commit("clusters/foreign", foreign)
    for event in EVENTS:
        request_package(world, "foreign", event)
        delete_variant(world, "removing", event)
    world.sync()
    for state in BRANCH_STATES:
        request_package(world, state, "same")
        request_package(world, state, "mutated", extra=MUTATED)
        request_package(world, state, "updated", "v2")
        request_package(world, state, "moved", to="moved-on")
    outcomes = world.sync().outcomes
    cells = {
        (state, event): (read_cell(world, outcomes, state, event), read_cell(world, outcomes, state, "moved-on"))
        for state in BRANCH_STATES
        for event in EVENTS
    }
    assert world.sync().is_unchanged
    return cells


CLONED = Cell("draft", "Draft", "clone")
NOTHING = Cell("", "none")
EXISTS = Cell("DownstreamExists", "Published")
WAITS = Cell("DownstreamProposed", "Proposed", "clone")


@pytest.mark.quick_cases(every=4)
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
def test_event_in_a_state_has_the_expected_result(
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
def test_move_has_the_expected_result_at_the_new_target(
    branch_table: Mapping[tuple[str, str], tuple[Cell, Cell]], state: str, expected: Cell
) -> None:
    assert branch_table[state, "moved"][1] == expected


# The tests of this section delete variants.


DELETION_STATES = ("draft", "proposed", "published", "removing")


@pytest.fixture(scope="module")
def deletions(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Cell, bool]]:
    """Delete the variants of both policies in each state. Return the results, and whether the packages have an
    owner.
    """
    world = new_world(tmp_path_factory.mktemp("deletions"), *DELETION_STATES)
    for state in DELETION_STATES:
        request_package(world, state, "delete")
        request_package(world, state, "orphan", extra=ORPHAN)
    # These packages have a removal draft because their owner requests another target with the policy `delete`.
    request_package(world, "removing", "orphan")
    world.sync()
    for state in ("published", "removing"):
        world.run_review_action("approve", state, should_approve_unproposed=True)
    world.run_review_action("propose", "proposed")
    world.sync()
    request_package(world, "removing", "delete", to="delete-elsewhere")
    request_package(world, "removing", "orphan", to="orphan-elsewhere")
    world.sync()
    request_package(world, "removing", "orphan", to="orphan-elsewhere", extra=ORPHAN)
    world.sync()
    for state in DELETION_STATES:
        for policy in ("delete", "orphan"):
            delete_variant(world, state, policy)
    outcomes = world.sync().outcomes
    cells = {
        (state, policy): (read_cell(world, outcomes, state, policy), bool(world.record(state, policy)["owned"]))
        for state in DELETION_STATES
        for policy in ("delete", "orphan")
    }
    assert world.sync().is_unchanged
    return cells


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("state", "policy", "expected", "is_owned"),
    [
        pytest.param("draft", "delete", Cell("withdrawn", "none"), False, id="draft-delete"),
        pytest.param("draft", "orphan", Cell("orphaned", "Draft", "clone"), False, id="draft-orphan"),
        # The daemon writes nothing to a proposed draft.
        pytest.param("proposed", "delete", Cell("RemovalWaits", "Proposed", "clone"), True, id="proposed-delete"),
        pytest.param("proposed", "orphan", Cell("orphaned", "Proposed", "clone"), False, id="proposed-orphan"),
        # The record stays until a person decides. A variant that is created again before that keeps its package.
        pytest.param("published", "delete", Cell("proposed", "DeletionProposed"), True, id="published-delete"),
        pytest.param("published", "orphan", Cell("orphaned", "Published"), False, id="published-orphan"),
        pytest.param("removing", "delete", Cell("proposed", "DeletionProposed"), True, id="removing-delete"),
        pytest.param("removing", "orphan", Cell("proposed", "DeletionProposed"), True, id="removing-orphan"),
    ],
)
def test_deleted_variant_has_the_expected_result(
    deletions: Mapping[tuple[str, str], tuple[Cell, bool]], state: str, policy: str, expected: Cell, is_owned: bool
) -> None:
    assert deletions[state, policy] == (expected, is_owned)


# The tests of this section run review actions.


@dataclass(frozen=True)
class ReviewStep:
    """One action: its result, and the lifecycle state before it, after it, and after the next pass."""

    review_result: str
    before: str
    after_action: str
    after: str
    revision: int


@pytest.fixture(scope="module")
def review_steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReviewStep]:
    """Run one package through its whole life. Passes follow each action until a pass changes nothing."""
    world = new_world(tmp_path_factory.mktemp("review"), "berlin")
    world.sync_until_unchanged()
    steps: dict[str, ReviewStep] = {}

    def run_step(name: str, verb: str = "", **more: object) -> None:
        before = read_lifecycle(world, "berlin", "app")
        acted = world.run_review_action(verb, "berlin/app", **more) if verb else ()  # type: ignore[arg-type]
        text = " ".join(
            word for result in acted for word in (result.status_label, *(reason.reason for reason in result.reasons))
        )
        after_action = read_lifecycle(world, "berlin", "app")
        world.sync_until_unchanged()
        revision = int(str(world.record("berlin", "app")["revision"]))
        steps[name] = ReviewStep(text, before, after_action, read_lifecycle(world, "berlin", "app"), revision)

    request_package(world, "berlin", "app")
    run_step("created")
    run_step("approve-a-draft", "approve")
    run_step("propose", "propose")
    run_step("reject", "reject")
    run_step("propose-again", "propose")
    run_step("approve", "approve")
    run_step("approve-again", "approve")
    request_package(world, "berlin", "app", "v2")
    run_step("updated")
    run_step("approve-at-once", "approve", should_approve_unproposed=True)
    delete_variant(world, "berlin", "app")
    run_step("variant-deleted")
    run_step("approve-an-unproposed-removal", "approve")
    run_step("reject-a-removal", "drop")
    request_package(world, "berlin", "app", "v2")
    world.sync_until_unchanged()
    delete_variant(world, "berlin", "app")
    run_step("variant-deleted-again")
    run_step("propose-a-removal", "propose")
    run_step("reject-the-removal-proposal", "reject")
    run_step("propose-the-removal-again", "propose")
    run_step("approve-a-removal", "approve")
    request_package(world, "berlin", "app", "v2")
    run_step("created-again")
    run_step("approve-the-next", "approve", should_approve_unproposed=True)
    return steps


REVIEW_STEPS = {
    "created": ReviewStep("", "none", "none", "Draft", 0),
    "approve-a-draft": ReviewStep("refused NotProposed", "Draft", "Draft", "Draft", 0),
    "propose": ReviewStep("proposed", "Draft", "Proposed", "Proposed", 0),
    "reject": ReviewStep("rejected", "Proposed", "Draft", "Draft", 0),
    "propose-again": ReviewStep("proposed", "Draft", "Proposed", "Proposed", 0),
    "approve": ReviewStep("published", "Proposed", "Published", "Published", 1),
    "approve-again": ReviewStep("unchanged", "Published", "Published", "Published", 1),
    "updated": ReviewStep("", "Published", "Published", "Draft", 1),
    "approve-at-once": ReviewStep("published", "Draft", "Published", "Published", 2),
    "variant-deleted": ReviewStep("", "Published", "Published", "DeletionProposed", 2),
    "approve-an-unproposed-removal": ReviewStep(
        "refused NotProposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2
    ),
    "reject-a-removal": ReviewStep("dropped", "DeletionProposed", "Published", "Published", 2),
    "variant-deleted-again": ReviewStep("", "Published", "Published", "DeletionProposed", 2),
    "propose-a-removal": ReviewStep("proposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2),
    "reject-the-removal-proposal": ReviewStep(
        "rejected", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2
    ),
    "propose-the-removal-again": ReviewStep("proposed", "DeletionProposed", "DeletionProposed", "DeletionProposed", 2),
    "approve-a-removal": ReviewStep("published", "DeletionProposed", "none", "none", 2),
    "created-again": ReviewStep("", "none", "none", "Draft", 2),
    "approve-the-next": ReviewStep("published", "Draft", "Published", "Published", 3),
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", REVIEW_STEPS)
def test_review_action_changes_the_lifecycle_state(review_steps: Mapping[str, ReviewStep], name: str) -> None:
    assert review_steps[name] == REVIEW_STEPS[name]


def test_daemon_does_not_propose_or_approve_drafts(tmp_path: Path) -> None:
    world = new_world(tmp_path, "berlin")
    request_package(world, "berlin", "app")
    world.sync_until_unchanged()

    heads = [name for name in read_refs(world.fleet) if name.startswith("refs/heads/") and "reconciler/" not in name]
    assert sorted(name.removeprefix("refs/heads/") for name in heads) == [
        "clusters/berlin", "clusters/other", "drafts/berlin", "drafts/other",
    ]  # fmt: skip
    assert world.paths(world.fleet, "clusters/berlin") == []


# The tests of this section check the owner of a package.


CONFLICT = "DownstreamConflict"
OWNED_BY_CLAIM = Cell("NoErrors", "Published")
OWNED = ("taken", "stalled", "renamed", "left")


@pytest.fixture(scope="module")
def ownership(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Cell, str]]:
    """Create all cases in one config commit. Return the reason of each variant, and the owner of the package."""
    world = new_world(tmp_path_factory.mktemp("ownership"), "drafts", "live", "new", "branch")
    request_package(world, "drafts", "ours")
    for name in OWNED:
        request_package(world, "live", name)
    world.sync()
    world.run_review_action("approve", "live", should_approve_unproposed=True)
    world.sync()
    theirs = package("app")["Kptfile"]
    world.commit("drafts/drafts", {f"{name}/Kptfile": theirs for name in ("none", "existing")})
    world.commit("clusters/branch", {f"{name}/Kptfile": theirs for name in ("none", "existing")})
    for cluster in ("drafts", "branch"):
        request_package(world, cluster, "none", extra=MUTATED)
        request_package(world, cluster, "existing", extra=f"{ADOPTING}\n{MUTATED}")
    for name in OWNED:
        world.write({f"claim-{name}.yaml": variant(f"a-claim-{name}", "live", name, upstream="app", extra=ADOPTING)})
    request_package(world, "live", "stalled", version="v9")
    delete_variant(world, "live", "renamed")
    request_package(world, "live", "left", to="left-for-this")
    for name in ("b", "a"):
        world.write({f"claim-{name}.yaml": variant(f"claim-{name}", "new", "shared", upstream="app")})
    pass_result = world.sync()
    cells = {
        f"{cluster}-{name}": (read_cell(world, pass_result.outcomes, cluster, name), read_owner(world, cluster, name))
        for cluster in ("drafts", "branch")
        for name in ("none", "existing")
    }
    claims = {f"a-claim-{name}": ("live", name) for name in OWNED}
    claims |= {f"claim-{name}": ("new", "shared") for name in ("a", "b")}
    for claim, (cluster, name) in claims.items():
        reported_cell = Cell(world.reason(claim), read_lifecycle(world, cluster, name), read_task(world, cluster, name))
        cells[claim] = (reported_cell, read_owner(world, cluster, name))
    assert world.sync().is_unchanged
    return cells


def read_owner(world: World, cluster: str, name: str) -> str:
    """Return the name of the variant that owns a package, or "" if the package has no owner."""
    record = world.record(cluster, name)
    return str(record["owner"]["name"]) if record["owned"] else ""  # type: ignore[index]


@pytest.mark.parametrize(
    ("case", "expected", "owned_by"),
    [
        # An unowned package on the draft counts as an existing package.
        pytest.param("drafts-none", Cell("DownstreamExists", "Draft"), "", id="adoptNone-unowned-draft"),
        pytest.param(
            "drafts-existing", Cell("draft", "Draft", "adopt"), "drafts-existing", id="adoptExisting-unowned-draft"
        ),
        pytest.param("branch-none", EXISTS, "", id="adoptNone-unowned-published"),
        pytest.param(
            "branch-existing", Cell("draft", "Draft", "adopt"), "branch-existing", id="adoptExisting-unowned-published"
        ),
        pytest.param("a-claim-taken", Cell(CONFLICT, "Published"), "live-taken", id="existing-owner"),
        pytest.param("a-claim-stalled", Cell("OwnershipConflict", "Published"), "live-stalled", id="owner-is-stalled"),
        pytest.param("a-claim-renamed", OWNED_BY_CLAIM, "a-claim-renamed", id="owner-is-deleted-at-the-same-time"),
        pytest.param("a-claim-left", OWNED_BY_CLAIM, "a-claim-left", id="owner-moves-at-the-same-time"),
        pytest.param("claim-a", Cell("NoErrors", "Draft", "clone"), "claim-a", id="first-of-two-by-name-is-owner"),
        pytest.param("claim-b", Cell(CONFLICT, "Draft", "clone"), "claim-a", id="second-of-two-is-rejected"),
    ],
)
def test_package_has_the_expected_owner(
    ownership: Mapping[str, tuple[Cell, str]], case: str, expected: Cell, owned_by: str
) -> None:
    assert ownership[case] == (expected, owned_by)
