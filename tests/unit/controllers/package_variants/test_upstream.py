"""Tests of upstream resolution: a reference gives one commit and tree, or the reason why it gives none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from reconciler.api.porch.upstream import (
    BranchHeadReference,
    RevisionReference,
    TagPolicy,
    TagReference,
    UpstreamReference,
    UpstreamSpec,
    WorkspaceReference,
)
from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.controllers.checked_commits import CheckedCommit
from reconciler.controllers.package_variants.upstream_resolution import (
    PackageDirectory,
    ResolvedRevision,
    UnresolvedUpstream,
    UpstreamRepository,
    describe_revision,
    resolve_upstream,
)

CATALOG = UpstreamRepository("catalog", "main")


@dataclass
class FakeRefs:
    """Refs of a repository in memory. The ID of a commit is its name, the IDs of its trees are `<commit>:<path>`."""

    tag_names: dict[str, str] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=lambda: {"main": "c9"})
    without_kptfile: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    files: dict[str, bytes] = field(default_factory=dict)
    dates: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    checks: dict[str, CheckedCommit] = field(default_factory=dict)

    def read_message(self, name: str) -> str:
        return self.messages.get(name, "")

    def find_tag(self, name: str) -> CommitId | None:
        return CommitId(self.tag_names[name]) if name in self.tag_names else None

    def find_branch(self, name: str) -> CommitId | None:
        return CommitId(self.branches[name]) if name in self.branches else None

    def check_tag(self, name: str, commit: CommitId) -> CheckedCommit:
        return self.checks.get(name, CheckedCommit(commit))

    def check_branch(self, name: str, commit: CommitId) -> CheckedCommit:
        return self.checks.get(name, CheckedCommit(commit))

    def list_tags(self, prefix: str) -> Iterable[str]:
        return (name for name in self.tag_names if name.startswith(prefix))

    def find_package(self, commit: CommitId, directory: str, package: str) -> PackageDirectory | None:
        path = f"{directory}/{package}" if directory else package
        if path in self.absent:
            return None
        return PackageDirectory(TreeId(f"{commit}:{path}"), (), path not in self.without_kptfile)

    def read_package(self, tree: TreeId) -> FileTree | str:
        folder = {path.removeprefix(f"{tree}/"): File(data) for path, data in self.files.items() if tree in path}
        return FileTree(folder) if folder else "it exceeds the limit of 5 files"

    def read_kptfiles(self, tree: TreeId) -> Iterable[bytes]:
        return ()

    def read_file(self, commit: CommitId, path: str) -> bytes | None:
        return self.files.get(f"{commit}:{path}")

    def read_tag_seconds(self, name: str) -> int:
        return self.dates[name]

    def read_change_seconds(self, commit: CommitId, path: str) -> int:
        return self.dates[f"{commit}:{path}"]


TAGS = {
    "broker/v1": "c1",
    "broker/v2": "c2",
    "broker/v10": "c10",
    "broker/v3.0.0-rc.1": "c3",
    "broker/stable": "c1",
    "broker/v99/x": "c0",
}


def build_upstream(reference: UpstreamReference, package: str = "broker") -> UpstreamSpec:
    match reference:
        case BranchHeadReference():
            return UpstreamSpec(repo="catalog", package=package, revision=-1)
        case RevisionReference(suffix):
            return UpstreamSpec(repo="catalog", package=package, revision=suffix)
        case WorkspaceReference(name):
            return UpstreamSpec(repo="catalog", package=package, workspace_name=name)
        case TagReference(name):
            return UpstreamSpec(repo="catalog", package=package, tag=name)


@pytest.mark.parametrize(
    ("reference", "ref", "number", "commit", "floating"),
    [
        pytest.param(RevisionReference("v2", 2), "broker/v2", 2, "c2", False, id="numbered"),
        pytest.param(RevisionReference("v3.0.0-rc.1", -1), "broker/v3.0.0-rc.1", -1, "c3", False, id="suffix"),
        pytest.param(RevisionReference("main", -1), "main", -1, "c9", True, id="revision-named-like-the-branch"),
        pytest.param(BranchHeadReference(), "main", -1, "c9", True, id="head"),
        pytest.param(WorkspaceReference("main"), "main", -1, "c9", True, id="workspace-named-like-the-branch"),
        pytest.param(WorkspaceReference("v3.0.0-rc.1"), "broker/v3.0.0-rc.1", -1, "c3", False, id="workspace"),
        pytest.param(WorkspaceReference("v2"), "broker/v2", 2, "c2", False, id="workspace-of-a-numbered-revision"),
        pytest.param(TagReference("stable"), "broker/stable", -1, "c1", True, id="floating-tag"),
        pytest.param(TagReference("latest"), "broker/v10", 10, "c10", True, id="latest-counts-in-numbers"),
    ],
)
def test_reference_is_resolved(
    reference: UpstreamReference, ref: str, number: int, commit: str, floating: bool
) -> None:
    resolved = resolve_upstream(build_upstream(reference), CATALOG, FakeRefs(TAGS))

    tree = TreeId(f"{commit}:broker")
    assert resolved == ResolvedRevision("catalog", "broker", ref, number, CommitId(commit), tree, floating, "broker")


def build_publish_message(workspace: str, package: str = "broker") -> str:
    return f"publish(x/{package}): v1\n\nReconciler-Package: {package}\nReconciler-Workspace: {workspace}\n"


@pytest.mark.parametrize(
    ("messages", "ref"),
    [
        pytest.param({"broker/v2": build_publish_message("w")}, "broker/v2", id="a-tag-of-the-reconciler"),
        pytest.param(
            {"broker/v2": build_publish_message("w"), "broker/v10": build_publish_message("w")},
            "broker/v10",
            id="the-highest-of-several",
        ),
        pytest.param(
            {"broker/v1": 'Approving\n\nkpt:{"package":"broker","workspaceName":"w"}'}, "broker/v1", id="porch"
        ),
        pytest.param({"broker/v1": build_publish_message("w", "other")}, "", id="of-another-package"),
        pytest.param({"broker/v99/x": build_publish_message("w")}, "", id="of-a-package-below"),
        pytest.param({"broker/v1": build_publish_message("w2")}, "", id="another-workspace"),
    ],
)
def test_workspace_is_resolved_to_its_revision(messages: dict[str, str], ref: str) -> None:
    result = resolve_upstream(build_upstream(WorkspaceReference("w")), CATALOG, FakeRefs(TAGS, messages=messages))

    assert (result.ref if isinstance(result, ResolvedRevision) else "") == ref


def test_revision_named_like_a_workspace_is_preferred() -> None:
    result = resolve_upstream(
        build_upstream(WorkspaceReference("v2")),
        CATALOG,
        FakeRefs(TAGS, messages={"broker/v10": build_publish_message("v2")}),
    )

    assert isinstance(result, ResolvedRevision)
    assert result.ref == "broker/v2"


def format_missing_revision(revision: str, instead: str) -> str:
    return f"could not find upstream package revision 'broker/{revision}' in repo 'catalog'; {instead}"


@pytest.mark.parametrize(
    ("reference", "refs", "reason", "message"),
    [
        pytest.param(
            RevisionReference("v4", 4),
            FakeRefs(TAGS),
            "UpstreamNotFound",
            format_missing_revision("v4", "existing revisions: v10, v3.0.0-rc.1, v2, v1, stable"),
            id="no-such-revision",
        ),
        pytest.param(
            RevisionReference("v99/x", -1),
            FakeRefs(TAGS),
            "UpstreamNotFound",
            format_missing_revision("v99/x", "existing revisions: v10, v3.0.0-rc.1, v2, v1, stable"),
            id="a-package-below-is-another-package",
        ),
        pytest.param(
            WorkspaceReference("w"),
            FakeRefs(TAGS),
            "UpstreamNotFound",
            format_missing_revision("w", "existing revisions: v10, v3.0.0-rc.1, v2, v1, stable"),
            id="no-such-workspace",
        ),
        pytest.param(
            WorkspaceReference("w"),
            FakeRefs(TAGS, {"main": "c9", "drafts/broker/w": "c5"}),
            "UpstreamNotPublished",
            'workspace "w" of catalog/broker is not published; an upstream must be published',
            id="workspace-of-a-draft",
        ),
        pytest.param(
            WorkspaceReference("w"),
            FakeRefs(TAGS, {"proposed/catalog/broker/w": "c5"}),
            "UpstreamNotPublished",
            'workspace "w" of catalog/broker is not published; an upstream must be published',
            id="workspace-of-a-proposal",
        ),
        pytest.param(
            BranchHeadReference(),
            FakeRefs({"broker/p/v1": "c1"}, {}),
            "UpstreamNotFound",
            format_missing_revision("main", 'no tag starts with "broker/", and branch "main" does not exist'),
            id="neither-branch-nor-tag",
        ),
        pytest.param(
            RevisionReference("v1", 1),
            FakeRefs({"other/v1": "c1"}),
            "UpstreamNotFound",
            format_missing_revision("v1", 'no tag starts with "broker/", and revision -1 is the head of main'),
            id="no-tag-at-all",
        ),
        pytest.param(
            RevisionReference("v9", 9),
            FakeRefs({f"broker/v{number}": "c1" for number in range(7)}),
            "UpstreamNotFound",
            format_missing_revision("v9", "existing revisions: v6, v5, v4, v3, v2, ..."),
            id="many-tags",
        ),
        pytest.param(
            TagReference("latest"),
            FakeRefs({"broker/v2.0.0": "c1"}),
            "UpstreamNotFound",
            format_missing_revision("latest", "existing revisions: v2.0.0"),
            id="nothing-numbered",
        ),
        pytest.param(
            RevisionReference("v1", 1),
            FakeRefs(TAGS, absent=frozenset({"broker"})),
            "UpstreamNotFound",
            "no Kptfile at broker in catalog@broker/v1",
            id="no-folder",
        ),
        pytest.param(
            RevisionReference("v1", 1),
            FakeRefs(TAGS, without_kptfile=frozenset({"broker"}), files={"c1:broker/readme.md": b"text"}),
            "UpstreamEmpty",
            'folder "broker" of Repository catalog at c1 contains no Kubernetes resource',
            id="no-resource",
        ),
        pytest.param(
            RevisionReference("v1", 1),
            FakeRefs(TAGS, without_kptfile=frozenset({"broker"}), files={"c1:broker/sub/Kptfile": b"a: b"}),
            "SourceKindAmbiguous",
            'folder "broker" of Repository catalog at c1 has no package at its top level, but contains sub/Kptfile in a '
            'subfolder. Next step: use this subfolder as the package, or set the field kind to "manifests"',
            id="package-in-a-subfolder",
        ),
        pytest.param(
            RevisionReference("v1", 1),
            FakeRefs(TAGS, without_kptfile=frozenset({"broker"})),
            "SourceTooLarge",
            'folder "broker" of Repository catalog at c1 cannot be read: it exceeds the limit of 5 files',
            id="above-a-limit",
        ),
    ],
)
def test_reference_is_not_resolved(reference: UpstreamReference, refs: FakeRefs, reason: str, message: str) -> None:
    assert resolve_upstream(build_upstream(reference), CATALOG, refs) == UnresolvedUpstream(reason, message)


@pytest.mark.parametrize(
    ("repository", "tags", "ref"),
    [
        pytest.param(
            UpstreamRepository("catalog", "main", "base"), {"base/broker/v1": "a", "broker/v1": "b"}, "base/broker/v1",
            id="directory-first",
        ),
        pytest.param(
            UpstreamRepository("catalog", "main", "base"), {"broker/v1": "b"}, "broker/v1", id="then-without-directory"
        ),
        pytest.param(
            UpstreamRepository("eu-1", "clusters/eu-1", "", "eu-1/"), {"eu-1/broker/v1": "a"}, "eu-1/broker/v1",
            id="prefix-of-a-cluster",
        ),
    ],
)  # fmt: skip
def test_tag_is_found_below_the_directory_or_the_prefix(
    repository: UpstreamRepository, tags: dict[str, str], ref: str
) -> None:
    resolved = resolve_upstream(build_upstream(RevisionReference("v1", 1)), repository, FakeRefs(tags))

    assert isinstance(resolved, ResolvedRevision)
    assert resolved.ref == ref
    assert resolved.directory == (f"{repository.directory}/broker" if repository.directory else "broker")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"channels: {stable: v2}", "broker/v2", id="file-wins-over-the-tag"),
        pytest.param(b"channels: {stable: 2}", "broker/v2", id="number"),
        pytest.param(b"channels: {beta: v2}", "broker/stable", id="another-channel-leaves-the-tag"),
    ],
)
def test_channel_file_is_used(content: bytes, expected: str) -> None:
    refs = FakeRefs(TAGS, files={"c9:channels/broker.yaml": content})
    resolved = resolve_upstream(build_upstream(TagReference("stable")), CATALOG, refs)

    assert isinstance(resolved, ResolvedRevision)
    assert (resolved.ref, resolved.is_floating) == (expected, True)


def test_contradiction_of_channel_file_and_tag_is_a_warning() -> None:
    refs = FakeRefs(TAGS, files={"c9:channels/broker.yaml": b"channels: {stable: v2}"})
    resolved = resolve_upstream(build_upstream(TagReference("stable")), CATALOG, refs)

    assert isinstance(resolved, ResolvedRevision)
    assert resolved.warnings == (
        (
            'the tag "broker/stable" is ignored, because the channel file sets "stable" to "broker/v2", and the tag '
            "points to a different commit"
        ),
    )


DATES = {"broker/v2": 200, "broker/stable": 500, "broker/v10": 900, "c9:channels/broker.yaml": 400, "c9:broker": 700}


@pytest.mark.parametrize(
    ("reference", "files", "since"),
    [
        pytest.param(TagReference("stable"), {}, 500, id="a-tag-since-it-was-made"),
        pytest.param(TagReference("latest"), {}, 900, id="latest-since-its-revision-was-tagged"),
        pytest.param(RevisionReference("v2", 2), {}, 200, id="a-revision-that-may-be-tagged-anew"),
        pytest.param(
            TagReference("stable"), {"c9:channels/broker.yaml": b"channels: {stable: v2}"}, 400,
            id="a-channel-since-its-file-changed",
        ),
        pytest.param(
            TagReference("stable"), {"c9:channels/broker.yaml": b"channels: {stable: v10}"}, 900,
            id="a-channel-that-was-there-before-its-revision",
        ),
        pytest.param(BranchHeadReference(), {}, 700, id="a-branch-since-the-package-changed"),
    ],
)  # fmt: skip
def test_start_time_of_a_reference(reference: UpstreamReference, files: dict[str, bytes], since: int) -> None:
    upstream_spec = build_upstream(reference).model_copy(update={"tag_policy": TagPolicy(settle="1s")})
    resolved = resolve_upstream(upstream_spec, CATALOG, FakeRefs(TAGS, files=files, dates=DATES))

    assert isinstance(resolved, ResolvedRevision)
    assert resolved.since_seconds == since


def test_dates_are_read_only_for_settling_references() -> None:
    resolved = resolve_upstream(build_upstream(TagReference("stable")), CATALOG, FakeRefs(TAGS, dates={}))

    assert isinstance(resolved, ResolvedRevision)
    assert resolved.since_seconds == 0


def test_rewritten_tag_without_revision_is_pending() -> None:
    failure = resolve_upstream(
        UpstreamSpec(repo="catalog", package="broker", tag="stable", tag_mode="rewrite"), CATALOG, FakeRefs(TAGS)
    )

    assert isinstance(failure, UnresolvedUpstream)
    assert failure.reason == "RevisionPending"
    assert "spec.upstream.revision is missing" in failure.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            b"channels: {stable: v7}",
            format_missing_revision("v7", "existing revisions: v10, v3.0.0-rc.1, v2, v1, stable"),
            id="revision-that-is-not-there",
        ),
        pytest.param(
            b"channels: [stable]",
            "channels/broker.yaml in catalog: channels must be a mapping from channel to revision",
            id="not-a-mapping",
        ),
        pytest.param(
            b"channels: {stable: 1.5}",
            'channels/broker.yaml in catalog: channels.stable must be a revision such as "v3", but is 1.5',
            id="float",
        ),
    ],
)
def test_invalid_channel_file_is_never_ignored(content: bytes, message: str) -> None:
    refs = FakeRefs(TAGS, files={"c9:channels/broker.yaml": content})

    assert resolve_upstream(build_upstream(TagReference("stable")), CATALOG, refs) == UnresolvedUpstream(
        "UpstreamNotFound", message
    )


def test_invalid_yaml_in_a_channel_file_is_reported_with_its_line() -> None:
    refs = FakeRefs(TAGS, files={"c9:channels/broker.yaml": b"channels: {stable: [v2\n"})
    failure = resolve_upstream(build_upstream(TagReference("stable")), CATALOG, refs)

    assert isinstance(failure, UnresolvedUpstream)
    assert failure.message.startswith("channels/broker.yaml in catalog: line ")


def test_expressions_receive_the_revision_name_of_the_upstream() -> None:
    resolved = resolve_upstream(
        build_upstream(RevisionReference("v2", 2), "net/broker"), CATALOG, FakeRefs({"net/broker/v2": "c2"})
    )
    assert isinstance(resolved, ResolvedRevision)

    assert describe_revision(resolved, "edge", {"a": "b"}, {}) == {
        "name": "catalog.net.broker.v2",
        "namespace": "edge",
        "labels": {"a": "b"},
        "annotations": {},
    }


PROBLEM = "has no signature"
BLOCKED = CheckedCommit(None, PROBLEM)
CHANNELS = {"c9:channels/broker.yaml": b"channels: {stable: v2}\n"}


@pytest.mark.parametrize(
    ("reference", "checks", "files", "expected"),
    [
        pytest.param(RevisionReference("v2", 2), {}, {}, ("c2", ""), id="signed"),
        pytest.param(
            RevisionReference("v2", 2),
            {"broker/v2": CheckedCommit(CommitId("c2"), PROBLEM, is_required=False)},
            {},
            ("c2", PROBLEM),
            id="warning",
        ),
        pytest.param(
            TagReference("stable"),
            {"broker/stable": CheckedCommit(CommitId("c0"), PROBLEM)},
            {},
            ("c0", PROBLEM),
            id="last-verified-commit-of-a-tag",
        ),
        pytest.param(
            BranchHeadReference(),
            {"main": CheckedCommit(CommitId("c8"), PROBLEM)},
            {},
            ("c8", PROBLEM),
            id="last-verified-head",
        ),
        pytest.param(RevisionReference("v2", 2), {"broker/v2": BLOCKED}, {}, None, id="no-verified-commit"),
        pytest.param(TagReference("latest"), {"broker/v10": BLOCKED}, {}, ("c2", PROBLEM), id="highest-verified"),
        pytest.param(
            TagReference("latest"),
            {f"broker/v{number}": BLOCKED for number in (1, 2, 10)},
            {},
            None,
            id="latest-without-a-verified-revision",
        ),
        pytest.param(TagReference("stable"), {"main": BLOCKED}, CHANNELS, None, id="unverified-channel-file"),
        pytest.param(
            TagReference("stable"),
            {"main": CheckedCommit(CommitId("c8"), PROBLEM)},
            {**CHANNELS, "c8:channels/broker.yaml": b"channels: {stable: v1}\n"},
            ("c1", PROBLEM),
            id="channel-file-of-the-last-verified-head",
        ),
        pytest.param(TagReference("stable"), {"main": BLOCKED}, {}, ("c1", ""), id="branch-without-channel-files"),
        pytest.param(
            TagReference("stable"), {"broker/v2": BLOCKED}, CHANNELS, None, id="unverified-revision-of-a-channel"
        ),
    ],
)
def test_signatures_decide_which_commit_is_used(
    reference: UpstreamReference,
    checks: dict[str, CheckedCommit],
    files: dict[str, bytes],
    expected: tuple[str, str] | None,
) -> None:
    resolved = resolve_upstream(build_upstream(reference), CATALOG, FakeRefs(TAGS, checks=checks, files=files))

    if expected is None:
        assert isinstance(resolved, UnresolvedUpstream)
        assert resolved.reason == "UnverifiedCommit"
        assert resolved.message.startswith(PROBLEM)
    else:
        assert isinstance(resolved, ResolvedRevision)
        problem = resolved.unverified.problem if resolved.unverified else ""
        assert (resolved.commit, resolved.tree, problem) == (expected[0], f"{expected[0]}:broker", expected[1])
