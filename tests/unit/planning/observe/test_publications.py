"""Tests of the observation of branches: which commits publish, roll back, decline or end a draft."""

from dataclasses import replace

import pytest

from reconciler.planning.model.state import (
    DraftBranch,
    PackageRecord,
    ProposedRemoval,
    PublishedRevision,
    RenderedVersion,
)
from reconciler.planning.observe.target_snapshot import (
    TargetHeads,
    list_removal_branches,
    track_drafts,
    track_publications,
)
from tests.unit.planning.builders import (
    FakeRepository,
    build_commit_id,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_version,
)

V1, V2, V3 = build_version("v1"), build_version("v2", against="v1"), build_version("v3", against="v1")
PUBLISHED = build_record(
    published_version=V1, last_revision=1, revisions=(PublishedRevision(1, build_commit_id("b0"), V1),)
)
OFFERED = PUBLISHED.with_draft_version(V2, "drafts/berlin")
AT_V2 = build_record(
    published_version=V2,
    last_revision=2,
    revisions=(*PUBLISHED.revisions, PublishedRevision(2, build_commit_id("b0"), V2)),
)


def track_branch(
    known: PackageRecord, *line: str | None, statuses: dict[str, dict[str, str]] | None = None
) -> PackageRecord:
    """Return the record after the target branch had these trees. The first tree is the last observed tree."""
    names = [f"b{index}" for index in range(len(line))]
    tables = FakeRepository(
        {name: {"gw": content} for name, content in zip(names, line, strict=True)}, names, statuses or {}
    )
    before = build_state(packages={"gw": known})
    return track_publications(before, build_target(), TargetHeads(build_commit_id(names[-1])), tables).packages["gw"]


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
def test_history_of_the_target_branch_decides_the_published_version(
    line: list[str | None], ours: object, revision: int, put: object
) -> None:
    after = track_branch(OFFERED, *line)

    assert (after.published_version, after.last_revision, after.draft_version) == (ours, revision, put)


def test_merge_with_local_changes_is_recognized_by_its_status_file() -> None:
    after = track_branch(OFFERED, "v1", "v2+theirs", statuses={"b1": {"gw": "status-v2"}})

    assert (after.published_version, after.last_revision) == (V2, 2)


@pytest.mark.parametrize(
    ("line", "statuses", "published"),
    [
        pytest.param(["v1", "v1"], {"b0": "status-v1", "b1": "status-v2"}, V2, id="only-the-status-file-changed"),
        pytest.param(
            ["v1", "v1+fix"], {"b0": "status-v2", "b1": "status-v2"}, V1, id="status-file-is-older-than-the-commit"
        ),
        pytest.param(["v1", "v1"], {"b0": "status-v2", "b1": "status-v1"}, V1, id="status-file-of-the-older-version"),
        pytest.param(["v2", "v2"], {"b0": "other", "b1": "another"}, V1, id="tree-is-older-than-the-commit"),
    ],
)
def test_commit_publishes_a_version_only_if_it_introduces_its_status_file(
    line: list[str], statuses: dict[str, str], published: RenderedVersion
) -> None:
    after = track_branch(OFFERED, *line, statuses={name: {"gw": status} for name, status in statuses.items()})

    assert after.published_version == published


def test_version_is_recognized_by_its_status_file_without_an_observed_commit() -> None:
    tables = FakeRepository({"b1": {"gw": "v2+theirs"}}, ["b1"], {"b1": {"gw": "status-v2"}})
    state = build_state(text=None, packages={"gw": OFFERED})

    after = track_publications(state, build_target(), TargetHeads(build_commit_id("b1")), tables)

    assert after.packages["gw"].published_version == V2


def test_revision_contains_the_commit_that_published_it() -> None:
    assert track_branch(OFFERED, "v1", "v1+fix", "v2", "v2+fix").revisions[-1].commit == "b2"


def test_older_version_is_published_while_the_newer_stays_drafted() -> None:
    after = track_branch(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v2")

    assert (after.published_version, after.draft_version, after.unpublished_versions) == (V2, V3, (V3,))


def test_draft_after_a_merged_earlier_head_has_another_workspace() -> None:
    part = track_branch(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v2")
    whole = track_branch(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v3")

    assert [
        part.last_workspace - part.revisions[-1].workspace,
        whole.last_workspace - whole.revisions[-1].workspace,
    ] == [1, 0]


def test_older_versions_are_dropped_when_a_newer_one_is_published() -> None:
    assert track_branch(OFFERED.with_draft_version(V3, "drafts/berlin"), "v1", "v3").unpublished_versions == ()


@pytest.mark.parametrize(
    ("known", "line", "ours", "declined"),
    [
        pytest.param(AT_V2, ["v2", "v1"], V1, ("v2",), id="back"),
        pytest.param(AT_V2, ["v2", "v1", "v2"], V2, (), id="back-and-forth"),
        pytest.param(AT_V2, ["v2", "v2+fix", "v2"], V2, (), id="an-edit-undone-is-no-rollback"),
    ],
)
def test_rollback_declines_the_reverted_version(
    known: PackageRecord, line: list[str], ours: object, declined: tuple[str, ...]
) -> None:
    after = track_branch(known, *line)

    assert (after.published_version, after.declined_trees, after.last_revision) == (ours, declined, 2)


def test_rollback_of_the_folder_stays_although_the_status_file_is_newer() -> None:
    statuses = {name: {"gw": "status-v2"} for name in ("b0", "b1", "b2")}

    after = track_branch(AT_V2, "v2", "v1", "v1+fix", statuses=statuses)

    assert (after.published_version, after.declined_trees) == (V1, ("v2",))


def test_rollback_keeps_earlier_declined_trees() -> None:
    known = replace(AT_V2, declined_trees=(build_tree_id("v0"),))

    assert track_branch(known, "v2", "v1").declined_trees == ("v0", "v2")


def test_rewritten_branch_is_observed_by_its_current_content() -> None:
    tables = FakeRepository({"b9": {"gw": "v2"}}, ["b9"])

    after = track_publications(
        build_state(packages={"gw": OFFERED}), build_target(), TargetHeads(build_commit_id("b9")), tables
    )

    assert after.packages["gw"].published_version == V2
    assert after.observed_commit == "b9"


def test_tree_that_was_published_before_the_draft_is_no_merge() -> None:
    rendered_version = build_version("v1", against="v1")
    tables = FakeRepository({"b9": {"gw": "v1"}}, ["b9"], {"b9": {"gw": "another"}})

    after = track_publications(
        build_state(packages={"gw": build_record().with_draft_version(rendered_version, "d")}),
        build_target(),
        TargetHeads(build_commit_id("b9")),
        tables,
    )

    assert after.packages["gw"].draft_version == rendered_version


HEAD = build_commit_id("d1")
DRAFT = {"drafts/berlin": DraftBranch(HEAD, build_commit_id("b0"))}


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
def test_draft_branch_shows_declined_and_withdrawn_versions(
    drafted: str, published: str, put: object, declined: tuple[str, ...]
) -> None:
    heads = TargetHeads(build_commit_id("b1"), drafts={} if drafted == "gone" else {"drafts/berlin": HEAD})
    tables = FakeRepository({HEAD: {"gw": drafted}, "b1": {"gw": published}})

    after = track_drafts(build_state(packages={"gw": OFFERED}, drafts=DRAFT), build_target(), heads, tables)

    assert (after.packages["gw"].draft_version, after.packages["gw"].declined_trees) == (put, declined)
    assert ("drafts/berlin" in after.drafts) == (drafted != "gone")


@pytest.mark.parametrize(
    ("known", "head", "expected"),
    [
        pytest.param(
            DraftBranch(HEAD, build_commit_id("b0")), "d1", DraftBranch(HEAD, build_commit_id("b0")), id="ours"
        ),
        pytest.param(
            DraftBranch(HEAD, build_commit_id("b0")), "d2", DraftBranch(HEAD, build_commit_id("b0"), True), id="moved"
        ),
        pytest.param(
            DraftBranch(HEAD, build_commit_id("b0"), True),
            "d1",
            DraftBranch(HEAD, build_commit_id("f0"), True),
            id="once-edited",
        ),
        pytest.param(None, "d1", DraftBranch(HEAD, build_commit_id("f0"), True), id="unknown"),
        pytest.param(
            None,
            "d9",
            DraftBranch(build_commit_id("d9"), build_commit_id("b1"), True),
            id="unknown-without-a-common-past",
        ),
    ],
)
def test_unknown_head_makes_a_draft_edited(known: DraftBranch | None, head: str, expected: DraftBranch) -> None:
    heads = TargetHeads(build_commit_id("b1"), drafts={"drafts/berlin": build_commit_id(head)})
    before = build_state(drafts={"drafts/berlin": known} if known else {})

    after = track_drafts(before, build_target(), heads, FakeRepository({}, forks={"d1": "f0"}))

    assert after.drafts == {"drafts/berlin": expected}


def test_draft_without_a_record_is_a_removal_if_its_name_is_one() -> None:
    heads = TargetHeads(
        build_commit_id("b1"),
        drafts={"removals/berlin": HEAD, "drafts/berlin": HEAD},
        removal_branches=frozenset({"removals/berlin"}),
    )

    after = track_drafts(build_state(), build_target(), heads, FakeRepository({}))

    assert {name: draft.is_removal for name, draft in after.drafts.items()} == {
        "removals/berlin": True,
        "drafts/berlin": False,
    }


def test_draft_of_a_target_without_a_branch() -> None:
    heads = TargetHeads(drafts={"drafts/berlin": build_commit_id("d2")})
    new = build_record().with_draft_version(V1, "drafts/berlin")
    tables = FakeRepository({"d2": {"gw": "v1+fix"}})

    after = track_drafts(build_state(packages={"gw": new}, drafts=DRAFT), build_target(), heads, tables)

    assert after.drafts == {"drafts/berlin": replace(DRAFT["drafts/berlin"], is_edited=True)}
    assert after.packages["gw"].draft_version == V1


@pytest.mark.parametrize(
    ("version", "source"),
    [
        pytest.param(V2, None, id="without local changes"),
        pytest.param(replace(V2, merged=build_tree_id("up1+fix")), "up1", id="with local changes"),
    ],
)
def test_source_of_a_declined_version_with_local_changes_is_recorded(
    version: RenderedVersion, source: str | None
) -> None:
    declined = PUBLISHED.with_draft_version(version, "drafts/berlin")
    tables = FakeRepository({"b1": {"gw": "v1"}})

    after = track_drafts(
        build_state(packages={"gw": declined}), build_target(), TargetHeads(build_commit_id("b1")), tables
    )

    assert after.packages["gw"].declined_source == source


def test_declined_tree_is_recorded_once() -> None:
    twice = build_record(declined_trees=(build_tree_id("v2"), build_tree_id("v0"))).with_draft_version(
        V2, "drafts/berlin"
    )

    after = track_drafts(
        build_state(packages={"gw": twice}),
        build_target(),
        TargetHeads(build_commit_id("b1")),
        FakeRepository({"b1": {"gw": "v1"}}),
    )

    assert after.packages["gw"].declined_trees == ("v0", "v2")


def test_absent_branch_is_not_observed() -> None:
    """Otherwise a new cluster with only blocked packages counts as a cluster with a deleted branch."""
    before = build_state(observed_commit=None)
    after = track_publications(
        before, build_target(), TargetHeads(build_commit_id("root"), is_absent=True), FakeRepository({}, [], {})
    )

    assert after == before


UP_FOR_REMOVAL = build_record(removal=ProposedRemoval("removals/berlin", build_tree_id("v1")), last_revision=1)


@pytest.mark.parametrize(
    ("head", "removed", "published", "expected"),
    [
        pytest.param("r1", None, "v1", ProposedRemoval("removals/berlin", build_tree_id("v1")), id="it-waits"),
        pytest.param(
            "r1",
            None,
            "v2",
            ProposedRemoval("removals/berlin", build_tree_id("v1")),
            id="it-waits-though-the-branch-moved",
        ),
        pytest.param(
            "r1", "v1", "v1", ProposedRemoval("removals/berlin", build_tree_id("v1"), True), id="put-back-is-declined"
        ),
        pytest.param(
            "r1",
            "own",
            "v1",
            ProposedRemoval("removals/berlin", build_tree_id("v1"), True),
            id="so-is-put-back-otherwise",
        ),
        pytest.param(
            "r1",
            "v1",
            "v2",
            ProposedRemoval("removals/berlin", build_tree_id("v2"), True),
            id="put-back-after-the-branch-moved",
        ),
        pytest.param(
            None, None, "v1", ProposedRemoval("removals/berlin", build_tree_id("v1"), True), id="the-branch-is-gone"
        ),
        pytest.param(None, None, "v2", None, id="with-another-package-there-it-is-another-question"),
        pytest.param("r1", None, None, None, id="approved"),
        pytest.param(None, None, None, None, id="approved-and-the-branch-deleted"),
    ],
)
def test_result_of_a_removal(
    head: str | None, removed: str | None, published: str | None, expected: ProposedRemoval | None
) -> None:
    tables = FakeRepository({"b1": {"gw": published}, "r1": {"gw": removed}})
    heads = TargetHeads(build_commit_id("b1"), drafts={"removals/berlin": build_commit_id(head)} if head else {})

    after = track_drafts(build_state(packages={"gw": UP_FOR_REMOVAL}), build_target(), heads, tables)

    assert after.packages["gw"].removal == expected


def test_approved_removal_deletes_the_recorded_revisions() -> None:
    record = replace(PUBLISHED, removal=UP_FOR_REMOVAL.removal)

    after = track_drafts(
        build_state(packages={"gw": record}),
        build_target(),
        TargetHeads(build_commit_id("b1")),
        FakeRepository({"b1": {}}),
    )

    assert (after.packages["gw"].removal, after.packages["gw"].revisions) == (None, ())


@pytest.mark.parametrize(
    ("trees", "against", "declined"),
    [
        pytest.param(["v1", None], "v1", False, id="approved"),
        pytest.param(["v1", None, "v1"], "v1", True, id="approved-and-taken-back"),
        pytest.param(["v1", None, "v2"], "v2", True, id="approved-and-replaced"),
        pytest.param(["v1", "v2"], "v1", False, id="changed"),
    ],
)
def test_removal_that_was_reverted_before_the_next_pass(trees: list[str | None], against: str, declined: bool) -> None:
    line = [f"b{number}" for number in range(len(trees))]
    tables = FakeRepository({name: {"gw": content} for name, content in zip(line, trees, strict=True)}, line)

    after = track_publications(
        build_state(packages={"gw": UP_FOR_REMOVAL}), build_target(), TargetHeads(build_commit_id(line[-1])), tables
    )

    assert after.packages["gw"].removal == ProposedRemoval("removals/berlin", build_tree_id(against), declined)


@pytest.mark.parametrize(
    ("template", "packages", "expected"),
    [
        pytest.param("removals/{repository}", [], {"removals/berlin", "old"}, id="known-without-any-package"),
        pytest.param("gone/{repository}/{package}", ["a/b"], {"gone/berlin/a_b", "old"}, id="one-for-each-package"),
    ],
)
def test_removal_branches(template: str, packages: list[str], expected: set[str]) -> None:
    drafts = {
        "old": DraftBranch(HEAD, build_commit_id("b0"), is_removal=True),
        "drafts/berlin": DraftBranch(HEAD, build_commit_id("b0")),
    }
    before = build_state(drafts=drafts, packages={package: build_record() for package in packages})

    assert list_removal_branches(template, build_target(), before) == expected
