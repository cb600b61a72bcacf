"""Refs of a target: the actions on its draft branches, and the tags of its published revisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from reconciler.catalog.files import BlobId, CommitId, FileTree, ObjectId, TreeId
from reconciler.controllers.results import PackageTarget
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.model.state import DraftBranch, PackageRecord, PublishedRevision, TargetState
from reconciler.planning.model.targets import Target


@dataclass(frozen=True)
class DraftCommit:
    """One planned commit on a draft branch. The commit changes one package.

    Attributes:
        content: The new tree of the package. None deletes the package.
        status: The new status file. None deletes the status file.
        min_seconds: The earliest committer date in seconds since 1970. The dates of the parents and of the config
            commit can make the date later.
    """

    package: str
    content: FileTree | TreeId | None
    status: bytes | BlobId | None
    message: str
    min_seconds: int = 0


@dataclass(frozen=True)
class TargetBranchMerge:
    """A merge of the target branch into a draft.

    At each path that differs between `base` and `commit`, the merge commit has the content of `commit`. At all other
    paths, it has the content of the draft.

    Attributes:
        commit: The head of the target branch.
        base: The commit of the target branch that the draft branch starts at.
    """

    commit: CommitId
    base: CommitId


@dataclass(frozen=True)
class PushCommits:
    """Push commits to a draft branch.

    Attributes:
        expected_head: The head that the branch must have before the push. None for a new branch.
        start_commit: The parent of the first commit: the head of the draft branch, or a commit of the target branch for
            a new or rebuilt draft.
        base_commit: The commit of the target branch that the draft branch starts at.
        is_edited: Whether the draft branch contains commits of other authors.
        merge: The merge of the target branch that precedes the commits.
        metadata_file: The path and content of the GitOps Promoter metadata file in every commit.
    """

    branch: str
    expected_head: CommitId | None
    start_commit: CommitId
    base_commit: CommitId
    commits: tuple[DraftCommit, ...]
    is_edited: bool = False
    merge: TargetBranchMerge | None = None
    metadata_file: tuple[str, bytes] | None = None


@dataclass(frozen=True)
class DeleteBranch:
    """Delete a draft branch that is not needed any more."""

    branch: str
    expected_head: CommitId


@dataclass(frozen=True)
class ResetBranch:
    """Set a draft branch to a commit of the target branch. GitOps Promoter requires the branch even without a draft."""

    branch: str
    expected_head: CommitId | None
    commit: CommitId


@dataclass(frozen=True)
class KeepBranch:
    """Do not change the draft branch."""

    branch: str


BranchAction = PushCommits | DeleteBranch | ResetBranch | KeepBranch


class DraftHistory(Protocol):
    """History of a draft branch, compared with the target branch."""

    def list_draft_commits(self, head: CommitId, base: CommitId) -> Sequence[DraftCommit]:
        """Return the commits of the reconciler after `base` up to `head`, oldest first."""
        ...

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        """Return whether `head` and `branch` changed the same path in different ways since `base`.

        Paths in `outside` are ignored.
        """
        ...

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        """Return whether any path has a content in `head` that differs from its content in both `base` and `branch`.

        Paths of the packages in `besides` are ignored.
        """
        ...


@dataclass(frozen=True)
class DraftChanges:
    """Decisions about the packages of one draft branch.

    Attributes:
        new_commits: Maps a package to the commit with its new content.
        reverts: Maps a package to the commit that restores the content of the target branch.
        open_packages: The packages with a recorded draft version.
        moved_packages: The packages that the draft changes, and that the target branch changed after the start of the
            draft branch.
        edited_packages: The packages with local changes on the target branch.
        restores: Maps a package to the commit that restores the content of the draft after the target branch is
            merged into the draft.
    """

    new_commits: Mapping[str, DraftCommit]
    reverts: Mapping[str, DraftCommit]
    open_packages: frozenset[str]
    moved_packages: frozenset[str]
    edited_packages: frozenset[str]
    restores: Mapping[str, DraftCommit] = field(default_factory=dict)

    @property
    def kept_packages(self) -> frozenset[str]:
        """The packages whose version on the draft does not change."""
        return self.open_packages - self.reverts.keys() - self.new_commits.keys()

    @property
    def stale_packages(self) -> frozenset[str]:
        """The kept packages with local changes on the target branch. A rebuilt draft would revert these changes."""
        return self.moved_packages & self.kept_packages & self.edited_packages


def plan_draft_branch(
    branch: str,
    head: CommitId | None,
    state: TargetState,
    published: CommitId,
    changes: DraftChanges,
    history: DraftHistory,
) -> BranchAction:
    """Return the action that changes a draft branch according to the decisions about its packages.

    Args:
        head: The fetched head of the draft branch, or None if the branch does not exist.
        state: The state of the target, which contains every existing draft branch.
        published: The head of the target branch.
    """
    commits = _sort_commits(changes.new_commits)
    if head is None:
        return PushCommits(branch, None, published, published, commits) if commits else KeepBranch(branch)
    draft = state.drafts[branch]
    if draft.is_edited:
        return _plan_edited_branch(branch, head, draft, published, changes, history)
    if not changes.kept_packages and not commits:
        return DeleteBranch(branch, head)
    if changes.reverts or (changes.moved_packages and not changes.stale_packages):
        return _plan_rebuilt_branch(branch, draft, published, changes, history)
    return PushCommits(branch, head, head, draft.base, commits) if commits else KeepBranch(branch)


def plan_closed_draft_branch(
    branch: str, head: CommitId | None, published: CommitId, changes: DraftChanges
) -> BranchAction:
    """Return the action for a draft branch whose pull request was closed.

    New commits start a new draft, which does not contain the commits of the old draft.
    """
    commits = _sort_commits(changes.new_commits)
    if commits:
        return PushCommits(branch, head, published, published, commits)
    return DeleteBranch(branch, head) if head else KeepBranch(branch)


def _plan_edited_branch(
    branch: str, head: CommitId, draft: DraftBranch, published: CommitId, changes: DraftChanges, history: DraftHistory
) -> BranchAction:
    """Append commits to a draft branch that contains commits of other authors.

    If the target branch contains all changes of the draft, start a new draft or delete the branch instead.
    """
    if not history.has_unpublished_changes(head, draft.base, published, changes.reverts.keys()):
        commits = _sort_commits(changes.new_commits)
        return PushCommits(branch, head, published, published, commits) if commits else DeleteBranch(branch, head)
    new = {**changes.reverts, **changes.new_commits}
    if not new:
        return KeepBranch(branch)
    if not changes.moved_packages & new.keys():
        return PushCommits(branch, head, head, draft.base, _sort_commits(new), is_edited=True)
    commits = _sort_commits({**changes.restores, **new})
    return PushCommits(
        branch, head, head, published, commits, is_edited=True, merge=TargetBranchMerge(published, draft.base)
    )


def _plan_rebuilt_branch(
    branch: str, draft: DraftBranch, published: CommitId, changes: DraftChanges, history: DraftHistory
) -> PushCommits:
    """Rebuild the draft on the head of the target branch.

    If the rebuilt draft would revert local changes on the target branch, the draft keeps its old base. When a person
    merges the draft later, Git keeps the local changes.
    """
    base = draft.base if changes.stale_packages else published
    kept_commits = [
        commit
        for commit in history.list_draft_commits(draft.head, draft.base)
        if commit.package in changes.kept_packages
    ]
    return PushCommits(branch, draft.head, base, base, (*kept_commits, *_sort_commits(changes.new_commits)))


def _sort_commits(commits: Mapping[str, DraftCommit]) -> tuple[DraftCommit, ...]:
    return tuple(commits[package] for package in sorted(commits))


@dataclass(frozen=True)
class TagPolicy:
    """Rules that decide which packages get Git tags for their revisions.

    Attributes:
        mode: Whether all packages get tags, none, or only those in `used_packages`.
        used_packages: The packages that are an upstream of another package.
    """

    mode: Literal["used", "all", "none"] = "none"
    used_packages: frozenset[PackageTarget] = frozenset()

    def should_tag(self, target: Target, package: str) -> bool:
        """Return whether the revisions of a package get tags."""
        package_target = PackageTarget(target.key.namespace, target.name, package)
        return self.mode == "all" or (self.mode == "used" and package_target in self.used_packages)


@dataclass(frozen=True)
class MissingTag:
    """A published revision that needs a tag, and that has no tag in the recorded state."""

    name: str
    package: str
    revision: PublishedRevision
    record: PackageRecord


@dataclass(frozen=True)
class TaggedRevision:
    """A published revision that was read from its Git tag.

    The number of the revision is in use, even if the reconciler did not create the tag.
    """

    number: int
    commit: CommitId
    tag: ObjectId
    message: str = ""


def format_tag_prefix(target: Target, package: str) -> str:
    """Return the start of the tag names of a package, e.g. "team/app/v". The revision number follows."""
    return f"{target.tag_prefix}{package}/v"


def find_missing_tags(target: Target, state: TargetState, policy: TagPolicy) -> tuple[MissingTag, ...]:
    """Return the recorded revisions that need a tag and have none, sorted by package and number."""
    return tuple(
        MissingTag(f"{format_tag_prefix(target, package)}{revision.number}", package, revision, record)
        for package, record in sorted(state.packages.items())
        if policy.should_tag(target, package)
        for revision in record.revisions
        if not revision.tag
    )


def record_tags(state: TargetState, tags: Mapping[tuple[str, int], ObjectId]) -> TargetState:
    """Return the state with the IDs of new tags. The keys of `tags` are package and revision number."""
    packages = {package: _record_package_tags(package, record, tags) for package, record in state.packages.items()}
    return replace(state, packages=packages)


def _record_package_tags(
    package: str, record: PackageRecord, tags: Mapping[tuple[str, int], ObjectId]
) -> PackageRecord:
    revisions = tuple(
        replace(revision, tag=tags.get((package, revision.number), revision.tag)) for revision in record.revisions
    )
    return replace(record, revisions=revisions)
