"""Refs of a target: the actions on its draft branches, and the tags of its published revisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from reconciler.catalog.files import BlobId, CommitId, FileTree, ObjectId, TreeId
from reconciler.controllers.results import PackageTarget
from reconciler.planning.model.state import DraftBranch, PackageRecord, PublishedRevision, TargetState
from reconciler.planning.model.targets import Target


@dataclass(frozen=True)
class DraftCommit:
    """One planned commit of a draft branch, which changes one package.

    Attributes:
        content: New tree of the package; None deletes it.
        status: New status file; None deletes it.
        min_seconds: Earliest committer date in seconds since 1970. The dates of the parents and of the config commit
            can make it later.
    """

    package: str
    content: FileTree | TreeId | None
    status: bytes | BlobId | None
    message: str
    min_seconds: int = 0


@dataclass(frozen=True)
class TargetBranchMerge:
    """A merge commit of the target branch: it takes every path that changed between `base` and `commit`."""

    commit: CommitId
    base: CommitId


@dataclass(frozen=True)
class PushCommits:
    """Push commits to a draft branch.

    Attributes:
        expected_head: Head that the branch must have, None for a new branch.
        start_commit: Parent of the first commit: the draft's head, or a commit of the target branch for a new or
            rebuilt draft.
        base_commit: Commit of the target branch that the draft starts at.
        is_edited: Whether the draft contains commits of other authors.
        merge: Merge of the target branch before the commits.
        metadata_file: Path and content of a metadata file that every commit contains.
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
    """Delete a draft branch. The target branch has all its content."""

    branch: str
    expected_head: CommitId


@dataclass(frozen=True)
class ResetBranch:
    """Set a draft branch without a draft to a commit of the target branch, because a tool requires the branch."""

    branch: str
    expected_head: CommitId | None
    commit: CommitId


@dataclass(frozen=True)
class KeepBranch:
    """Do not change the draft branch."""

    branch: str


BranchAction = PushCommits | DeleteBranch | ResetBranch | KeepBranch


class DraftHistory(Protocol):
    """Content of a draft branch compared to the target branch."""

    def list_draft_commits(self, head: CommitId, base: CommitId) -> Sequence[DraftCommit]:
        """Return the reconciler's commits after `base` up to `head`, oldest first."""
        ...

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        """Return whether `head` and `branch` changed a path since `base` differently, except for paths in `outside`."""
        ...

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        """Return whether a path of `head` differs from both `base` and `branch`, except in the packages `besides`."""
        ...


@dataclass(frozen=True)
class DraftChanges:
    """Decisions about the packages of one draft branch.

    Attributes:
        new_commits: Commits with new content, by package.
        reverts: Commits that restore the content of the target branch, by package.
        open_packages: Packages with a recorded draft version.
        moved_packages: Packages that the draft changes, and that the target branch changed since the draft's base.
        edited_packages: Packages with local changes on the target branch.
        restores: Commits that restore the content of the draft after a merge of the target branch, by package.
    """

    new_commits: Mapping[str, DraftCommit]
    reverts: Mapping[str, DraftCommit]
    open_packages: frozenset[str]
    moved_packages: frozenset[str]
    edited_packages: frozenset[str]
    restores: Mapping[str, DraftCommit] = field(default_factory=dict)

    @property
    def kept_packages(self) -> frozenset[str]:
        """The packages whose draft version does not change."""
        return self.open_packages - self.reverts.keys() - self.new_commits.keys()

    @property
    def stale_packages(self) -> frozenset[str]:
        """The kept packages with local changes on the target branch, which a rebuilt draft would revert."""
        return self.moved_packages & self.kept_packages & self.edited_packages


def plan_draft_branch(
    branch: str,
    head: CommitId | None,
    state: TargetState,
    published: CommitId,
    changes: DraftChanges,
    history: DraftHistory,
) -> BranchAction:
    """Return the action that makes a draft branch match the decisions.

    Args:
        branch: Name of the draft branch.
        head: Fetched head of the draft branch, None if it does not exist.
        state: State of the target, which contains every existing draft branch.
        published: Head of the target branch.
        changes: Decisions for the packages of the branch.
        history: Content of the branches.
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
    """Return the action for a draft with a closed pull request: new commits start another draft without its content."""
    commits = _sort_commits(changes.new_commits)
    if commits:
        return PushCommits(branch, head, published, published, commits)
    return DeleteBranch(branch, head) if head else KeepBranch(branch)


def _plan_edited_branch(
    branch: str, head: CommitId, draft: DraftBranch, published: CommitId, changes: DraftChanges, history: DraftHistory
) -> BranchAction:
    """Append commits to a draft with commits of other authors, until the target branch has all its content."""
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
    """Return the push that rebuilds the draft on the target branch.

    While a package is stale, the draft keeps its old base. Git then merges the local changes of the target branch.
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
    """Policy for the tags of revisions: which packages get them. `used_packages` are the upstreams of all variants."""

    mode: Literal["used", "all", "none"] = "none"
    used_packages: frozenset[PackageTarget] = frozenset()

    def should_tag(self, target: Target, package: str) -> bool:
        """Return whether the revisions of a package get tags."""
        package_target = PackageTarget(target.key.namespace, target.name, package)
        return self.mode == "all" or (self.mode == "used" and package_target in self.used_packages)


@dataclass(frozen=True)
class MissingTag:
    """A published revision that needs a tag, and has none in the state."""

    name: str
    package: str
    revision: PublishedRevision
    record: PackageRecord


@dataclass(frozen=True)
class TaggedRevision:
    """A published revision as its tag describes it. Its number is in use, regardless of the author of the tag."""

    number: int
    commit: CommitId
    tag: ObjectId
    message: str = ""


def format_tag_prefix(target: Target, package: str) -> str:
    """Return the prefix of the tags of a package's revisions, which the revision number follows."""
    return f"{target.tag_prefix}{package}/v"


def find_missing_tags(target: Target, state: TargetState, policy: TagPolicy) -> tuple[MissingTag, ...]:
    """Return the recorded revisions that need a tag and have none, by package and number."""
    return tuple(
        MissingTag(f"{format_tag_prefix(target, package)}{revision.number}", package, revision, record)
        for package, record in sorted(state.packages.items())
        if policy.should_tag(target, package)
        for revision in record.revisions
        if not revision.tag
    )


def record_tags(state: TargetState, tags: Mapping[tuple[str, int], ObjectId]) -> TargetState:
    """Return the state with these tags, by package and revision number."""
    packages = {package: _record_package_tags(package, record, tags) for package, record in state.packages.items()}
    return replace(state, packages=packages)


def _record_package_tags(
    package: str, record: PackageRecord, tags: Mapping[tuple[str, int], ObjectId]
) -> PackageRecord:
    revisions = tuple(
        replace(revision, tag=tags.get((package, revision.number), revision.tag)) for revision in record.revisions
    )
    return replace(record, revisions=revisions)
