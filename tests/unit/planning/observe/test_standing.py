"""What stands on the branches: which commits publish, roll back, decline or end an offer."""

from dataclasses import replace

import pytest

from reconciler.planning.model.state import DraftBranch, PackageRecord, ProposedRemoval, PublishedRevision
from reconciler.planning.observe.target_snapshot import (
    TargetHeads,
    list_removal_branches,
    track_drafts,
    track_publications,
)
from tests.unit.planning.values import Tables, commit, destination, offer, record, state, tree

V1, V2, V3 = offer("v1"), offer("v2", against="v1"), offer("v3", against="v1")
PUBLISHED = record(published_version=V1, last_revision=1, revisions=(PublishedRevision(1, commit("b0"), V1),))
OFFERED = PUBLISHED.with_draft_version(V2, "drafts/berlin")
AT_V2 = record(
    published_version=V2, last_revision=2, revisions=(*PUBLISHED.revisions, PublishedRevision(2, commit("b0"), V2))
)


def recognised(
    known: PackageRecord, *line: str | None, statuses: dict[str, dict[str, str]] | None = None
) -> PackageRecord:
    """Return the record after the cluster branch went through these trees, the first being what was seen last."""
    names = [f"b{index}" for index in range(len(line))]
    tables = Tables({name: {"gw": content} for name, content in zip(names, line, strict=True)}, names, statuses or {})
    before = state(packages={"gw": known})
    return track_publications(before, destination(), TargetHeads(commit(names[-1])), tables).packages["gw"]


@pytest.mark.parametrize(
    ("line", "ours", "revision", "put"),
    [
        pytest.param(["v1"], V1, 1, V2, id="nothing-new"),
        pytest.param(["v1", "v2"], V2, 2, None, id="merged"),
        pytest.param(["v1", "v1+fix", "v2"], V2, 2, None, id="hot-fix-then-merged"),
        pytest.param(["v1", "v2", "v2+fix"], V2, 2, None, id="merged-then-hot-fix"),
        pytest.param(["v1", "v2", "v1"], V1, 2, None, id="merged-then-reverted"),
        pytest.param(["v1", "v2", None], None, 2, None, id="merged-then-deleted"),
        pytest.param(["v1", "v1+fix"], V1, 1, V2, id="edited"),
        pytest.param(["v1", "v1+fix", "v1"], V1, 1, V2, id="edited-and-undone"),
        pytest.param(["v1", None], None, 1, V2, id="deleted"),
        pytest.param(["v1", None, "v1"], V1, 1, V2, id="deleted-and-restored"),
    ],
)
def test_what_the_cluster_branch_went_through_decides_what_is_ours(
    line: list[str | None], ours: object, revision: int, put: object
) -> None:
    after = recognised(OFFERED, *line)

    assert (after.published_version, after.last_revision, after.draft_version) == (ours, revision, put)


def test_a_merge_that_people_changed_is_recognised_by_its_status_file() -> None:
    after = recognised(OFFERED, "v1", "v2+theirs", statuses={"b1": {"gw": "status-v2"}})

    assert (after.published_version, after.last_revision) == (V2, 2)


def test_an_older_offer_is_published_while_the_newer_stays_on_the_draft() -> None:
    after = recognised(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v2")

    assert (after.published_version, after.draft_version, after.unpublished_versions) == (V2, V3, (V3,))


def test_what_goes_on_after_an_earlier_head_was_merged_has_another_workspace() -> None:
    part = recognised(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v2")
    whole = recognised(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v3")

    assert [
        part.last_workspace - part.revisions[-1].workspace,
        whole.last_workspace - whole.revisions[-1].workspace,
    ] == [1, 0]


def test_older_offers_are_dropped_when_a_newer_one_is_published() -> None:
    assert recognised(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v3").unpublished_versions == ()


@pytest.mark.parametrize(
    ("known", "line", "ours", "declined"),
    [
        pytest.param(AT_V2, ["v2", "v1"], V1, ("v2",), id="back"),
        pytest.param(AT_V2, ["v2", "v1", "v2"], V2, (), id="back-and-forth"),
        pytest.param(AT_V2, ["v2", "v2+fix", "v2"], V2, (), id="an-edit-undone-is-no-rollback"),
    ],
)
def test_a_rollback_declines_what_was_undone(
    known: PackageRecord, line: list[str], ours: object, declined: tuple[str, ...]
) -> None:
    after = recognised(known, *line)

    assert (after.published_version, after.declined_trees, after.last_revision) == (ours, declined, 2)


def test_without_the_last_head_in_its_history_the_branch_counts_as_it_stands() -> None:
    tables = Tables({"b9": {"gw": "v2"}}, ["b9"])

    after = track_publications(state(packages={"gw": OFFERED}), destination(), TargetHeads(commit("b9")), tables)

    assert after.packages["gw"].published_version == V2
    assert after.observed_commit == "b9"


def test_a_tree_that_stood_there_when_it_was_offered_is_no_sign_of_a_merge() -> None:
    rendered_version = offer("v1", against="v1")
    tables = Tables({"b9": {"gw": "v1"}}, ["b9"], {"b9": {"gw": "another"}})

    after = track_publications(
        state(packages={"gw": record().with_draft_version(rendered_version, "d")}),
        destination(),
        TargetHeads(commit("b9")),
        tables,
    )

    assert after.packages["gw"].draft_version == rendered_version


HEAD = commit("d1")
DRAFT = {"drafts/berlin": DraftBranch(HEAD, commit("b0"))}


@pytest.mark.parametrize(
    ("drafted", "published", "put", "declined"),
    [
        pytest.param("v2", "v1", V2, (), id="stands"),
        pytest.param("v2+fix", "v1", V2, (), id="edited"),
        pytest.param("v1", "v1", None, ("v2",), id="taken-out"),
        pytest.param("v1", "v1+fix", None, ("v2",), id="taken-out-while-the-branch-moved"),
        pytest.param("v1+fix", "v1+fix", None, (), id="brought-up-to-date"),
        pytest.param("gone", "v1", None, ("v2",), id="branch-deleted"),
        pytest.param("gone", "v1+fix", None, (), id="branch-deleted-while-the-branch-moved"),
    ],
)
def test_a_draft_tells_what_people_think_of_an_offer(
    drafted: str, published: str, put: object, declined: tuple[str, ...]
) -> None:
    heads = TargetHeads(commit("b1"), drafts={} if drafted == "gone" else {"drafts/berlin": HEAD})
    tables = Tables({HEAD: {"gw": drafted}, "b1": {"gw": published}})

    after = track_drafts(state(packages={"gw": OFFERED}, drafts=DRAFT), destination(), heads, tables)

    assert (after.packages["gw"].draft_version, after.packages["gw"].declined_trees) == (put, declined)
    assert ("drafts/berlin" in after.drafts) == (drafted != "gone")


@pytest.mark.parametrize(
    ("known", "head", "expected"),
    [
        pytest.param(DraftBranch(HEAD, commit("b0")), "d1", DraftBranch(HEAD, commit("b0")), id="ours"),
        pytest.param(DraftBranch(HEAD, commit("b0")), "d2", DraftBranch(HEAD, commit("b0"), True), id="moved"),
        pytest.param(
            DraftBranch(HEAD, commit("b0"), True), "d1", DraftBranch(HEAD, commit("f0"), True), id="once-edited"
        ),
        pytest.param(None, "d1", DraftBranch(HEAD, commit("f0"), True), id="unknown"),
        pytest.param(None, "d9", DraftBranch(commit("d9"), commit("b1"), True), id="unknown-without-a-common-past"),
    ],
)
def test_a_head_that_we_did_not_push_makes_a_draft_an_edited_one(
    known: DraftBranch | None, head: str, expected: DraftBranch
) -> None:
    heads = TargetHeads(commit("b1"), drafts={"drafts/berlin": commit(head)})
    before = state(drafts={"drafts/berlin": known} if known else {})

    after = track_drafts(before, destination(), heads, Tables({}, forks={"d1": "f0"}))

    assert after.drafts == {"drafts/berlin": expected}


def test_a_declined_tree_stands_once_however_often_it_is_declined() -> None:
    twice = record(declined_trees=(tree("v2"), tree("v0"))).with_draft_version(V2, "drafts/berlin")

    after = track_drafts(
        state(packages={"gw": twice}), destination(), TargetHeads(commit("b1")), Tables({"b1": {"gw": "v1"}})
    )

    assert after.packages["gw"].declined_trees == ("v0", "v2")


def test_a_branch_that_does_not_exist_is_not_seen() -> None:
    """Else a new cluster whose packages are all blocked would count as one whose branch is gone."""
    before = state(observed_commit=None)
    after = track_publications(before, destination(), TargetHeads(commit("root"), is_absent=True), Tables({}, [], {}))

    assert after == before


UP_FOR_REMOVAL = record(removal=ProposedRemoval("removals/berlin", tree("v1")), last_revision=1)


@pytest.mark.parametrize(
    ("head", "removed", "published", "expected"),
    [
        pytest.param("r1", None, "v1", ProposedRemoval("removals/berlin", tree("v1")), id="it-waits"),
        pytest.param(
            "r1", None, "v2", ProposedRemoval("removals/berlin", tree("v1")), id="it-waits-though-the-branch-moved"
        ),
        pytest.param("r1", "v1", "v1", ProposedRemoval("removals/berlin", tree("v1"), True), id="put-back-is-declined"),
        pytest.param(
            "r1", "own", "v1", ProposedRemoval("removals/berlin", tree("v1"), True), id="so-is-put-back-otherwise"
        ),
        pytest.param(None, None, "v1", ProposedRemoval("removals/berlin", tree("v1"), True), id="the-branch-is-gone"),
        pytest.param(None, None, "v2", None, id="with-another-package-there-it-is-another-question"),
        pytest.param("r1", None, None, None, id="approved"),
        pytest.param(None, None, None, None, id="approved-and-the-branch-deleted"),
    ],
)
def test_what_became_of_a_removal(
    head: str | None, removed: str | None, published: str | None, expected: ProposedRemoval | None
) -> None:
    tables = Tables({"b1": {"gw": published}, "r1": {"gw": removed}})
    heads = TargetHeads(commit("b1"), drafts={"removals/berlin": commit(head)} if head else {})

    after = track_drafts(state(packages={"gw": UP_FOR_REMOVAL}), destination(), heads, tables)

    assert after.packages["gw"].removal == expected


@pytest.mark.parametrize(
    ("trees", "declined"),
    [
        pytest.param(["v1", None], False, id="approved"),
        pytest.param(["v1", None, "v1"], True, id="approved-and-taken-back"),
        pytest.param(["v1", "v2"], False, id="changed"),
    ],
)
def test_a_removal_that_was_taken_back_before_anybody_looked(trees: list[str | None], declined: bool) -> None:
    line = [f"b{number}" for number in range(len(trees))]
    tables = Tables({name: {"gw": content} for name, content in zip(line, trees, strict=True)}, line)

    after = track_publications(
        state(packages={"gw": UP_FOR_REMOVAL}), destination(), TargetHeads(commit(line[-1])), tables
    )

    assert after.packages["gw"].removal == replace(UP_FOR_REMOVAL.removal, is_declined=declined)


@pytest.mark.parametrize(
    ("template", "packages", "expected"),
    [
        pytest.param("removals/{repository}", [], {"removals/berlin", "old"}, id="known-without-any-package"),
        pytest.param("gone/{repository}/{package}", ["a/b"], {"gone/berlin/a_b", "old"}, id="one-for-each-package"),
    ],
)
def test_the_names_of_removal_drafts(template: str, packages: list[str], expected: set[str]) -> None:
    drafts = {"old": DraftBranch(HEAD, commit("b0"), is_removal=True), "drafts/berlin": DraftBranch(HEAD, commit("b0"))}
    before = state(drafts=drafts, packages={package: record() for package in packages})

    assert list_removal_branches(template, destination(), before) == expected
