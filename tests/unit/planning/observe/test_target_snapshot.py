"""Tests of questions to a snapshot: the branch of a package, local changes of a draft, and obstacles at a path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.catalog.files import CommitId
from reconciler.planning.model.state import (
    DraftBranch,
    ObservedPackage,
    PackageRecord,
    ProposedRemoval,
    PublishedRevision,
)
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.builders import (
    FakeRepository,
    build_commit_id,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_version,
)

BASE, PUBLISHED, HEAD = (build_commit_id(name) for name in ("b0", "b1", "d1"))
BRANCH = "drafts/berlin"
DRAFT = DraftBranch(HEAD, BASE)
EDITED = DraftBranch(HEAD, BASE, is_edited=True)
DRAFTED = build_record().with_draft_version(build_version("v2", against="v1"), BRANCH)
Question = tuple[CommitId, CommitId, CommitId, Collection[str]]


@dataclass
class RecordingRepository(FakeRepository):
    """A repository that records its questions about changes, and has obstacles at these paths of commits."""

    obstacles: Mapping[tuple[str, str, bool], str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def find_obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        return self.obstacles.get((commit, path, is_file))

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        self.questions.append((head, base, branch, outside))
        return self.collide

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        self.questions.append((head, base, branch, besides))
        return self.more


def build_snapshot(
    packages: Mapping[str, PackageRecord],
    drafts: Mapping[str, DraftBranch] | None = None,
    *,
    draft_template: str = "drafts/{repository}",
    objects: FakeRepository | None = None,
    **heads: Any,
) -> TargetSnapshot:
    """Return a snapshot whose draft branches have the heads of `drafts`."""
    drafts = drafts or {}
    defaults = {"target_branch": PUBLISHED, "drafts": {name: draft.head for name, draft in drafts.items()}}
    return TargetSnapshot(
        build_target(),
        build_state(packages=packages, drafts=drafts),
        TargetHeads(**{**defaults, **heads}),
        objects or FakeRepository({}),
        draft_template,
    )


@pytest.mark.parametrize(
    ("packages", "drafts", "template", "expected"),
    [
        pytest.param({}, {}, "drafts/{repository}", "drafts/berlin", id="new package"),
        pytest.param({}, {"drafts/paris": DRAFT}, "drafts/{repository}", "drafts/berlin", id="open draft elsewhere"),
        pytest.param({}, {}, "drafts/{repository}/{package}", "drafts/berlin/gw", id="branch for each package"),
        pytest.param({"gw": DRAFTED}, {BRANCH: DRAFT}, "new/{repository}", BRANCH, id="drafted package"),
        pytest.param({"gw": build_record()}, {}, "new/{repository}", "new/berlin", id="package without a draft"),
        pytest.param(
            {}, {"drafts": DRAFT}, "drafts/{repository}", "drafts", id="name inside the name of an open draft"
        ),
        pytest.param(
            {}, {"drafts/berlin/gw": DRAFT}, "drafts/{repository}", "drafts/berlin/gw", id="name above an open draft"
        ),
        pytest.param(
            {},
            {"drafts/berlin/b": DRAFT, "drafts/berlin/a": DRAFT},
            "drafts/{repository}",
            "drafts/berlin/a",
            id="first of two open drafts",
        ),
        pytest.param(
            {},
            {"drafts": DraftBranch(HEAD, BASE, is_removal=True)},
            "drafts/{repository}",
            "drafts/berlin",
            id="removal draft is not used",
        ),
    ],
)
def test_find_draft_branch(
    packages: Mapping[str, PackageRecord], drafts: Mapping[str, DraftBranch], template: str, expected: str
) -> None:
    assert build_snapshot(packages, drafts, draft_template=template).find_draft_branch("gw") == expected


@pytest.mark.parametrize(
    ("drafts", "expected"),
    [
        pytest.param({}, "removals/berlin", id="new branch"),
        pytest.param({"removals": DRAFT}, "removals/berlin", id="draft without removals is not used"),
        pytest.param({"removals": DraftBranch(HEAD, BASE, is_removal=True)}, "removals", id="open removal draft"),
    ],
)
def test_find_removal_branch(drafts: Mapping[str, DraftBranch], expected: str) -> None:
    assert build_snapshot({}, drafts).find_removal_branch("gw") == expected


def test_owned_packages_omits_packages_without_owner() -> None:
    snapshot = build_snapshot({"apps/gw": build_record(), "apps/old": build_record(is_owned=False)})

    assert snapshot.owned_packages.find_nested("apps") == ("apps/gw",)


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        pytest.param({}, False, id="no proposal"),
        pytest.param({"proposed": {BRANCH: HEAD}}, True, id="proposed"),
        pytest.param({"approved": {BRANCH: HEAD}}, True, id="approved"),
        pytest.param({"proposed": {BRANCH: BASE}, "approved": {BRANCH: BASE}}, False, id="other head"),
        pytest.param({"proposed": {"drafts/paris": HEAD}}, False, id="other branch"),
        pytest.param({"proposed": {BRANCH: HEAD}, "closed_drafts": frozenset({BRANCH})}, False, id="closed"),
    ],
)
def test_is_frozen(heads: Mapping[str, Any], expected: bool) -> None:
    assert build_snapshot({}, {BRANCH: DRAFT}, **heads).is_frozen(BRANCH) is expected


def test_branch_that_does_not_exist_is_not_frozen() -> None:
    assert not build_snapshot({}, proposed={BRANCH: HEAD}).is_frozen(BRANCH)


@pytest.mark.parametrize(
    ("draft", "target_branch", "collide", "more", "expected"),
    [
        pytest.param(EDITED, PUBLISHED, True, True, True, id="conflicting local changes"),
        pytest.param(EDITED, PUBLISHED, False, True, False, id="no conflict"),
        pytest.param(EDITED, PUBLISHED, True, False, False, id="target branch contains the changes"),
        pytest.param(EDITED, None, True, True, False, id="no target branch"),
        pytest.param(DRAFT, PUBLISHED, True, True, False, id="no local changes"),
        pytest.param(None, PUBLISHED, True, True, False, id="no draft"),
    ],
)
def test_is_stuck(
    draft: DraftBranch | None, target_branch: CommitId | None, collide: bool, more: bool, expected: bool
) -> None:
    objects = FakeRepository({}, collide=collide, more=more)
    drafts = {BRANCH: draft} if draft else {}

    snapshot = build_snapshot({"gw": DRAFTED}, drafts, objects=objects, target_branch=target_branch)

    assert snapshot.is_stuck(BRANCH) is expected


@pytest.mark.parametrize(
    ("record", "paths"),
    [
        pytest.param(DRAFTED, ["gw", ".reconciler/gw.yaml"], id="drafted on the branch"),
        pytest.param(
            build_record(removal=ProposedRemoval(BRANCH, build_tree_id("v1"))),
            ["gw", ".reconciler/gw.yaml"],
            id="removed on the branch",
        ),
        pytest.param(
            build_record(removal=ProposedRemoval(BRANCH, build_tree_id("v1"), is_declined=True)),
            [],
            id="declined removal",
        ),
        pytest.param(build_record(removal=ProposedRemoval("other", build_tree_id("v1"))), [], id="other removal"),
        pytest.param(build_record().with_draft_version(build_version("v2"), "other"), [], id="other draft"),
        pytest.param(build_record(draft_branch=BRANCH), [], id="no drafted version"),
        pytest.param(build_record(), [], id="not drafted"),
    ],
)
def test_is_stuck_ignores_conflicts_in_packages_of_the_draft(record: PackageRecord, paths: list[str]) -> None:
    objects = RecordingRepository({}, collide=True)

    build_snapshot({"gw": record}, {BRANCH: EDITED}, objects=objects).is_stuck(BRANCH)

    assert objects.questions == [(HEAD, BASE, PUBLISHED, paths), (HEAD, BASE, PUBLISHED, ())]


def test_find_package_at() -> None:
    snapshot = build_snapshot({}, objects=FakeRepository({PUBLISHED: {"gw": "v1"}}))

    assert snapshot.find_package_at(PUBLISHED, "gw") == ("v1", "status-v1")
    assert snapshot.find_package_at(PUBLISHED, "absent") == (None, None)
    assert snapshot.find_package_at(None, "gw") == (None, None)


FOLDER, STATUS_FILE = ("gw", False), (".reconciler/gw.yaml", True)


@pytest.mark.parametrize(
    ("obstacles", "packages", "expected"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({(PUBLISHED, *FOLDER): "gw"}, {}, "clusters/berlin:gw", id="on the target branch"),
        pytest.param({(HEAD, *FOLDER): "gw"}, {}, "drafts/berlin:gw", id="on the draft branch"),
        pytest.param(
            {(HEAD, *FOLDER): "gw", (PUBLISHED, *STATUS_FILE): ".reconciler"},
            {},
            "clusters/berlin:.reconciler",
            id="target branch first",
        ),
        pytest.param(
            {(PUBLISHED, *FOLDER): "gw", (PUBLISHED, *STATUS_FILE): ".reconciler"},
            {},
            "clusters/berlin:gw",
            id="folder before the status file",
        ),
        pytest.param(
            {(PUBLISHED, "gw", True): "gw", (PUBLISHED, ".reconciler/gw.yaml", False): "."},
            {},
            None,
            id="folder and file are distinct",
        ),
        pytest.param({(PUBLISHED, *FOLDER): "gw"}, {PUBLISHED: {"gw": "v1"}}, None, id="existing package"),
        pytest.param(
            {(HEAD, *FOLDER): "gw"}, {PUBLISHED: {"gw": "v1"}}, "drafts/berlin:gw", id="existing on one branch"
        ),
    ],
)
def test_find_obstacle(
    obstacles: Mapping[tuple[str, str, bool], str],
    packages: Mapping[str, Mapping[str, str | None]],
    expected: str | None,
) -> None:
    objects = RecordingRepository(packages, obstacles=obstacles)

    assert build_snapshot({}, {BRANCH: DRAFT}, objects=objects).find_obstacle("gw") == expected


def test_find_obstacle_without_branches() -> None:
    assert build_snapshot({}, target_branch=None).find_obstacle("gw") is None


def test_find_obstacle_without_draft_branch() -> None:
    objects = RecordingRepository({}, obstacles={(HEAD, *FOLDER): "gw"})

    assert build_snapshot({}, objects=objects).find_obstacle("gw") is None


@pytest.mark.parametrize(
    ("base", "published", "drafted", "record", "draft", "expected"),
    [
        pytest.param("v1", "v1", "v2", DRAFTED, DRAFT, ("v1", "v2"), id="draft changes the package"),
        pytest.param("v1", "v1", "v1", DRAFTED, DRAFT, ("v1", None), id="draft does not change the package"),
        pytest.param("v1", "v2", "v2", DRAFTED, DRAFT, ("v2", None), id="merged"),
        pytest.param(None, None, "v2", DRAFTED, DRAFT, (None, "v2"), id="new package"),
        pytest.param("v1", "v2+fix", "v1", DRAFTED, DRAFT, ("v2+fix", None), id="local change of the target branch"),
        pytest.param("v1", "v1", "v2", build_record(), DRAFT, ("v1", None), id="published without local changes"),
        pytest.param("v1", "v1", "v2", build_record(), EDITED, ("v1", "v2"), id="edited draft without a version"),
        pytest.param("v1", "v1", "v2", None, DRAFT, ("v1", "v2"), id="package without a record"),
        pytest.param(
            "v1",
            "v1",
            "v2",
            build_record(revisions=(PublishedRevision(1, BASE, build_version("v2")),)),
            EDITED,
            ("v1", None),
            id="edited draft with a published version",
        ),
        pytest.param("v1", "v1", "v2", DRAFTED, None, ("v1", None), id="no draft"),
    ],
)
def test_observe_package(
    base: str | None,
    published: str | None,
    drafted: str | None,
    record: PackageRecord | None,
    draft: DraftBranch | None,
    expected: tuple[str | None, str | None],
) -> None:
    objects = FakeRepository({BASE: {"gw": base}, PUBLISHED: {"gw": published}, HEAD: {"gw": drafted}})
    snapshot = build_snapshot({"gw": record} if record else {}, {BRANCH: draft} if draft else {}, objects=objects)

    observed = snapshot.observe_package("gw")

    assert (observed.published, observed.drafted) == expected
    assert not observed.is_frozen


@pytest.mark.parametrize(
    ("published", "proposed", "collide", "expected"),
    [
        pytest.param("v1", None, True, (False, False), id="unchanged on the target branch"),
        pytest.param("v1+fix", None, True, (False, True), id="changed on both branches"),
        pytest.param("v1+fix", None, False, (False, False), id="no conflict"),
        pytest.param("v1", HEAD, True, (True, False), id="proposed"),
    ],
)
def test_observe_package_that_waits(
    published: str, proposed: CommitId | None, collide: bool, expected: tuple[bool, bool]
) -> None:
    objects = FakeRepository({BASE: {"gw": "v1"}, PUBLISHED: {"gw": published}, HEAD: {"gw": "v2"}}, collide=collide)
    heads = {"proposed": {BRANCH: proposed}} if proposed else {}

    observed = build_snapshot({"gw": DRAFTED}, {BRANCH: EDITED}, objects=objects, **heads).observe_package("gw")

    assert observed == ObservedPackage(build_tree_id(published), build_tree_id("v2"), *expected)


@pytest.mark.parametrize(
    ("drafts", "trees", "published_change", "draft_change"),
    [
        pytest.param({BRANCH: DRAFT}, ("v1", "v1", "v1"), False, False, id="no change"),
        pytest.param({BRANCH: DRAFT}, ("v1", "v2", "v1"), True, False, id="target branch"),
        pytest.param({BRANCH: DRAFT}, ("v1", "v1", "v2"), False, True, id="draft"),
        pytest.param({}, ("v1", "v2", "v3"), False, False, id="no draft"),
    ],
)
def test_changes_since_the_start_of_the_draft(
    drafts: Mapping[str, DraftBranch], trees: tuple[str, str, str], published_change: bool, draft_change: bool
) -> None:
    packages = dict(zip((BASE, PUBLISHED, HEAD), ({"gw": tree} for tree in trees), strict=True))
    snapshot = build_snapshot({"gw": DRAFTED}, drafts, objects=FakeRepository(packages))

    assert snapshot.has_published_change("gw") is published_change
    assert snapshot.has_draft_change("gw") is draft_change


def test_changed_status_file_is_a_change() -> None:
    trees = {commit: {"gw": "v1"} for commit in (BASE, PUBLISHED, HEAD)}
    objects = FakeRepository(trees, statuses={PUBLISHED: {"gw": "other"}, HEAD: {"gw": "other"}})
    snapshot = build_snapshot({"gw": DRAFTED}, {BRANCH: DRAFT}, objects=objects)

    assert snapshot.has_published_change("gw")
    assert snapshot.has_draft_change("gw")
