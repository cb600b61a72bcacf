"""Snapshot of a target at the start of a pass: its branches, its recorded state, and changes since the last pass.

`track_publications` and `track_drafts` detect which versions were published or declined, and update the recorded state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from reconciler.catalog.files import BlobId, CommitId, FileTree, TreeId
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.layout.refs import DraftHistory, TaggedRevision
from reconciler.planning.model.branch_names import format_draft_branch
from reconciler.planning.model.state import (
    MAX_REVISIONS,
    DraftBranch,
    ObservedPackage,
    PackageRecord,
    PublishedRevision,
    RenderedVersion,
    TargetState,
)
from reconciler.planning.model.targets import PackagePathIndex, Target, are_paths_nested
from reconciler.planning.observe.base_recovery import UnavailableBase


class GitObjectReader(Protocol):
    """Access to the Git objects of one remote. Every object that a ref can reach is available."""

    def find_tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree at a path of a commit. Return None if there is no tree at this path."""
        ...

    def find_blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        """Return the blob at a path of a commit. Return None if there is no blob at this path."""
        ...

    def find_obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        """Return the path of an existing entry that prevents the creation of a folder at `path`.

        If `is_file` is True, a regular file is created instead of a folder. Return None if no entry prevents the
        creation.
        """
        ...

    def read_files(self, tree: TreeId) -> FileTree:
        """Return the regular files of a tree."""
        ...

    def list_first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        """Return the commits after `old` up to `new`, oldest first. Only first parents are followed.

        Return None if `old` is not reached.
        """
        ...

    def find_merge_base(self, head: CommitId, branch: CommitId) -> CommitId | None:
        """Return the last common ancestor of two commits. Return None if they have no common ancestor."""
        ...

    def read_commit_seconds(self, commit: CommitId) -> int:
        """Return the committer date of a commit, in seconds since 1970."""
        ...

    def is_reconciler_commit(self, commit: CommitId) -> bool:
        """Return whether the reconciler created a commit.

        Such a commit has the date of its inputs, not of its creation.
        """
        ...


@dataclass(frozen=True)
class TargetHeads:
    """Fetched heads of the branches of one target. All mappings map names of draft branches to commits.

    Attributes:
        is_absent: Whether the target branch does not exist. Then `target_branch` is the root commit of the new branch.
        removal_branches: The names of the draft branches that delete packages.
        approved: The commits whose pull requests are approved, or about to be merged.
        closed_drafts: The draft branches whose pull requests were closed without a merge.
        promoter_head: The head of the branch that GitOps Promoter requires, if the branch contains no draft.
    """

    target_branch: CommitId | None = None
    is_absent: bool = False
    drafts: Mapping[str, CommitId] = field(default_factory=dict)
    proposed: Mapping[str, CommitId] = field(default_factory=dict)
    removal_branches: frozenset[str] = frozenset()
    approved: Mapping[str, CommitId] = field(default_factory=dict)
    closed_drafts: frozenset[str] = frozenset()
    promoter_head: CommitId | None = None

    def find_open_head(self, draft: str) -> CommitId | None:
        """Return the head of a draft branch.

        Return None if the branch does not exist or its pull request was closed.
        """
        return None if draft in self.closed_drafts else self.drafts.get(draft)


def list_removal_branches(template: str, target: Target, state: TargetState) -> frozenset[str]:
    """Return the names of all removal drafts that a target has or can get.

    The result includes removal drafts that the recorded state does not contain.
    """
    known = (name for name, draft in state.drafts.items() if draft.is_removal)
    packages = state.packages if "{package}" in template else ("",)
    return frozenset([*known, *(format_draft_branch(template, target, package) for package in packages)])


@dataclass(frozen=True)
class PackageAtCommit:
    """The tree and the status file of a package at one commit of the target branch."""

    commit: CommitId
    tree: TreeId | None
    status: BlobId | None


def track_publications(
    state: TargetState, target: Target, heads: TargetHeads, repository: GitObjectReader
) -> TargetState:
    """Return the state with the publications since the last pass, and with the new head of the target branch.

    Each package in each new first-parent commit is compared with the recorded versions of the package:

    - A commit published a version if it introduced the tree or the status file of this version.
    - A commit deleted the package if it does not contain the package.
    - Every other change of the package is a local change.

    The head is not recorded while the target branch does not exist.
    """
    if heads.target_branch is None or heads.is_absent or heads.target_branch == state.observed_commit:
        return state
    commits = (
        repository.list_first_parents(state.observed_commit, heads.target_branch) if state.observed_commit else None
    )
    start = state.observed_commit if commits is not None else None
    packages = {
        package: _track_package(
            record,
            _read_package_at(repository, target, package, start) if start else None,
            [_read_package_at(repository, target, package, commit) for commit in commits or (heads.target_branch,)],
        )
        for package, record in state.packages.items()
    }
    return replace(state, observed_commit=heads.target_branch, packages=packages)


def _read_package_at(repository: GitObjectReader, target: Target, package: str, commit: CommitId) -> PackageAtCommit:
    tree = repository.find_tree_at(commit, target.get_package_path(package))
    return PackageAtCommit(commit, tree, repository.find_blob_at(commit, target.get_status_file_path(package)))


def _track_package(
    record: PackageRecord, previous: PackageAtCommit | None, versions: Sequence[PackageAtCommit]
) -> PackageRecord:
    for version in versions:
        if previous is None or (version.tree, version.status) != (previous.tree, previous.status):
            record = _apply_commit(record, previous, version)
        previous = version
    return _decline_reverted_removal(record, [version.tree for version in versions])


def _decline_reverted_removal(record: PackageRecord, trees: Sequence[TreeId | None]) -> PackageRecord:
    removal, last = record.removal, trees[-1] if trees else None
    if removal is None or last is None or None not in trees:
        return record
    return replace(record, removal=replace(removal, against=last, is_declined=True))


def _apply_commit(record: PackageRecord, previous: PackageAtCommit | None, current: PackageAtCommit) -> PackageRecord:
    if current.tree is None:
        return replace(record, published_version=None)
    for version in reversed(record.unpublished_versions):
        if _is_new_publication(version, previous, current):
            return _publish_version(record, version, current.commit)
    for revision in reversed(record.revisions):
        if _is_new_publication(revision.version, previous, current):
            return _return_to_revision(record, revision)
    return record


def _is_new_publication(version: RenderedVersion, previous: PackageAtCommit | None, current: PackageAtCommit) -> bool:
    if current.status == version.status and (previous is None or previous.status != current.status):
        return True
    # If there is no previous commit, compare with `against`: the tree that was published when the version was drafted.
    # A current tree that is equal to `against` is not a publication of the version.
    known_tree = previous.tree if previous else version.against
    return current.tree == version.rendered and current.tree != known_tree


def _publish_version(record: PackageRecord, version: RenderedVersion, commit: CommitId) -> PackageRecord:
    newer = record.unpublished_versions[record.unpublished_versions.index(version) + 1 :]
    revision = PublishedRevision(record.last_revision + 1, commit, version, record.last_workspace)
    draft_version = None if record.draft_version == version else record.draft_version
    return replace(
        record,
        last_revision=revision.number,
        published_version=version,
        draft_version=draft_version,
        unpublished_versions=newer,
        revisions=(*record.revisions, revision)[-MAX_REVISIONS:],
        # If the draft contains a newer version, give this version a new workspace number, because a workspace belongs
        # to only one revision.
        last_workspace=record.last_workspace + 1 if draft_version else record.last_workspace,
    )


def _return_to_revision(record: PackageRecord, revision: PublishedRevision) -> PackageRecord:
    """Return the record after the content of the target branch changed back to the older `revision`.

    The newer revision that was published before is recorded as declined.
    """
    versions = [entry.version for entry in record.revisions]
    reverted = (
        record.published_version
        if record.published_version in versions
        and versions.index(record.published_version) > versions.index(revision.version)
        else None
    )
    declined = [tree for tree in record.declined_trees if tree != revision.version.rendered]
    declined += [reverted.rendered] if reverted and reverted.rendered not in declined else []
    return replace(record, published_version=revision.version, declined_trees=tuple(declined)[-MAX_REVISIONS:])


def track_drafts(state: TargetState, target: Target, heads: TargetHeads, repository: GitObjectReader) -> TargetState:
    """Return the state with the changes of the draft branches since the last pass.

    - If a draft branch was deleted, or its pull request was closed, the versions on this branch are declined. There is
      one exception: if the published tree of a package has also changed, this package is planned again.
    - If a package was removed from a draft, its version is declined.
    - If someone else pushed to a draft branch, the branch is recorded as edited.
    """
    packages = {
        package: _track_removal(
            _track_draft_version(record, record.draft_version, target.get_package_path(package), heads, repository)
            if record.draft_version
            else record,
            target.get_package_path(package),
            heads,
            repository,
        )
        for package, record in state.packages.items()
    }
    drafts = {
        name: _track_branch(name, state.drafts.get(name), head, heads, repository)
        for name, head in heads.drafts.items()
        if name not in heads.closed_drafts
    }
    return replace(state, packages=packages, drafts=drafts)


def _track_branch(
    name: str, draft: DraftBranch | None, head: CommitId, heads: TargetHeads, repository: GitObjectReader
) -> DraftBranch:
    if draft is not None and not draft.is_edited and draft.head == head:
        return draft
    # Treat a branch without a record as edited, because its authors are unknown, e.g. after the state ref was deleted.
    draft = draft or DraftBranch(head, heads.target_branch or head, is_removal=name in heads.removal_branches)
    # Use the merge base, because the target branch can have been merged into the draft. If the recorded base were kept,
    # a later pass would restore changes that the target branch reverted.
    base = repository.find_merge_base(head, heads.target_branch) if heads.target_branch else None
    return replace(draft, base=base or draft.base, is_edited=True)


def _track_draft_version(
    record: PackageRecord, version: RenderedVersion, path: str, heads: TargetHeads, repository: GitObjectReader
) -> PackageRecord:
    published = repository.find_tree_at(heads.target_branch, path) if heads.target_branch else None
    head = heads.find_open_head(record.draft_branch)
    if head is None:
        return (
            _decline_version(record, version) if published == version.against else replace(record, draft_version=None)
        )
    drafted = repository.find_tree_at(head, path)
    if drafted == version.rendered:
        return record
    if drafted == version.against:
        return _decline_version(record, version)
    # If both trees are equal, the target branch was merged into the draft. The draft then does not change the package.
    return replace(record, draft_version=None) if drafted == published else record


def _track_removal(record: PackageRecord, path: str, heads: TargetHeads, repository: GitObjectReader) -> PackageRecord:
    """Return the record, updated if its proposed removal was approved or declined."""
    removal = record.removal
    if removal is None or heads.target_branch is None:
        return record
    published, head = repository.find_tree_at(heads.target_branch, path), heads.find_open_head(removal.branch)
    if published is None:
        # Delete the recorded revisions, because later decisions must not use revisions of a removed package.
        return replace(record, removal=None, revisions=())
    if removal.is_declined or (head and repository.find_tree_at(head, path) is None):
        return record
    if head is None and published != removal.against:
        # Delete the proposed removal, because the published package changed. The pass then decides about the removal
        # again.
        return replace(record, removal=None)
    return replace(record, removal=replace(removal, against=published, is_declined=True))


def _decline_version(record: PackageRecord, version: RenderedVersion) -> PackageRecord:
    declined = tuple(tree for tree in record.declined_trees if tree != version.rendered)
    source = version.plain if version.merged != version.plain else None
    return replace(
        record,
        draft_version=None,
        declined_trees=(*declined, version.rendered)[-MAX_REVISIONS:],
        declined_source=source,
    )


class TargetObjects(GitObjectReader, DraftHistory, Protocol):
    """Git objects of a target, with the histories of its drafts and the tags of its revisions."""

    def list_tagged_revisions(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        """Return a mapping from each package to its tagged revisions.

        This method is slow. Use it only if the recorded state is missing.
        """
        ...


PackageObjectIds = tuple[TreeId | None, BlobId | None]


@dataclass(frozen=True)
class TargetSnapshot:
    """A target with its recorded state, its branch heads and its Git objects.

    Attributes:
        draft_template: The template for the names of new draft branches.
        removal_template: The template for the names of new removal drafts.
        unavailable_bases: Maps packages to the reason why their base cannot be recovered. Contains only packages
            without a recorded state.
    """

    target: Target
    state: TargetState
    heads: TargetHeads
    objects: TargetObjects
    draft_template: str
    removal_template: str = "removals/{repository}"
    unavailable_bases: Mapping[str, UnavailableBase] = field(default_factory=dict)

    @cached_property
    def owned_packages(self) -> PackagePathIndex:
        """The packages that have an owner in the recorded state."""
        return PackagePathIndex(name for name, record in self.state.packages.items() if record.is_owned)

    def find_draft_branch(self, package: str) -> str:
        """Return the draft branch of a package.

        A package with a draft keeps its draft branch. Otherwise, the package gets a new branch. Git does not allow a
        branch `a/b` next to a branch `a`. If the name of the new branch conflicts with an open draft in this way, the
        package uses the branch of the open draft.
        """
        record = self.state.packages.get(package)
        if record and record.draft_version:
            return record.draft_branch
        return self._find_usable_branch(format_draft_branch(self.draft_template, self.target, package), removes=False)

    def find_removal_branch(self, package: str) -> str:
        """Return the branch for the removal of a package.

        Git cannot have both a branch `a` and a branch `a/b`. If an open removal draft makes the usual branch name
        impossible, return the branch of this draft.
        """
        return self._find_usable_branch(format_draft_branch(self.removal_template, self.target, package), removes=True)

    def _find_usable_branch(self, name: str, removes: bool) -> str:
        branches = sorted(branch for branch, draft in self.state.drafts.items() if draft.is_removal == removes)
        return next((branch for branch in branches if are_paths_nested(branch, name)), name)

    def is_frozen(self, branch: str) -> bool:
        """Return whether the head of a draft branch was proposed, or was approved on its forge."""
        head = self.heads.find_open_head(branch)
        return head is not None and head in (self.heads.proposed.get(branch), self.heads.approved.get(branch))

    def is_stuck(self, branch: str) -> bool:
        """Return whether an update of a draft branch would revert local changes outside of the drafted packages.

        Return False if the target branch contains all changes of the draft, because the draft is then deleted.
        """
        draft, published = self.state.drafts.get(branch), self.heads.target_branch
        if draft is None or not draft.is_edited or published is None or not self._has_conflicting_files(branch, draft):
            return False
        return self.objects.has_unpublished_changes(self.heads.drafts[branch], draft.base, published)

    def find_package_at(self, commit: CommitId | None, package: str) -> PackageObjectIds:
        """Return the tree and the status file of a package at a commit."""
        if commit is None:
            return None, None
        path, status = self.target.get_package_path(package), self.target.get_status_file_path(package)
        return self.objects.find_tree_at(commit, path), self.objects.find_blob_at(commit, status)

    def find_obstacle(self, package: str) -> str | None:
        """Return an existing entry at the path of a package's folder or status file, as `<branch>:<path>`, or None.

        A new package would replace this entry. Examples are a file instead of a folder, a symbolic link or a submodule.
        The target branch and the draft branch are searched.
        """
        branch, path = self.find_draft_branch(package), self.target.get_package_path(package)
        status = self.target.get_status_file_path(package)
        for name, head in ((self.target.branch, self.heads.target_branch), (branch, self.heads.drafts.get(branch))):
            if head is None or None not in self.find_package_at(head, package):
                continue
            obstacle = self.objects.find_obstacle(head, path) or self.objects.find_obstacle(head, status, is_file=True)
            if obstacle:
                return f"{name}:{obstacle}"
        return None

    def observe_package(self, package: str) -> ObservedPackage:
        """Return the trees of a package on the target branch, and on its draft if the draft changes the package.

        A draft branch contains all packages of the target. The draft changes a package only if the tree on the draft
        branch differs from the tree at the base of the draft and from the published tree. A draft that was already
        merged does not change the package, even if the target branch later got local changes of the package.
        """
        branch = self.find_draft_branch(package)
        published, _ = self.find_package_at(self.heads.target_branch, package)
        draft = self.state.drafts.get(branch)
        if draft is None:
            return ObservedPackage(published)
        drafted, _ = self.find_package_at(self.heads.drafts[branch], package)
        at_base, _ = self.find_package_at(draft.base, package)
        stuck = self.has_published_change(package) and self.is_stuck(branch)
        is_on_draft = drafted not in (at_base, published) and not self._is_already_published(package, draft, drafted)
        return ObservedPackage(published, drafted if is_on_draft else None, self.is_frozen(branch), stuck)

    def _is_already_published(self, package: str, draft: DraftBranch, drafted: TreeId | None) -> bool:
        """Return whether the version of the package on the draft branch was published before.

        If so, the draft branch and the target branch differ only because the target branch was changed or reverted
        after the publication.
        """
        record = self.state.packages.get(package)
        if record is None or record.draft_version:
            return False
        return not draft.is_edited or drafted in {revision.version.rendered for revision in record.revisions}

    def has_published_change(self, package: str) -> bool:
        """Return whether the target branch changed a package after the start of its open draft."""
        draft = self._open_draft(package)
        return draft is not None and self.find_package_at(draft.base, package) != self.find_package_at(
            self.heads.target_branch, package
        )

    def has_draft_change(self, package: str) -> bool:
        """Return whether the open draft of a package changes the package or its status file."""
        draft = self._open_draft(package)
        head = self.heads.drafts.get(self.find_draft_branch(package))
        return draft is not None and self.find_package_at(draft.base, package) != self.find_package_at(head, package)

    def _has_conflicting_files(self, branch: str, draft: DraftBranch) -> bool:
        assert self.heads.target_branch
        packages = [package for package, record in self.state.packages.items() if _is_on_branch(record, branch)]
        paths = [
            path
            for package in packages
            for path in (self.target.get_package_path(package), self.target.get_status_file_path(package))
        ]
        return self.objects.has_conflicting_changes(
            self.heads.drafts[branch], draft.base, self.heads.target_branch, paths
        )

    def _open_draft(self, package: str) -> DraftBranch | None:
        return self.state.drafts.get(self.find_draft_branch(package))


def _is_on_branch(record: PackageRecord, branch: str) -> bool:
    is_removal = record.removal is not None and not record.removal.is_declined and record.removal.branch == branch
    return is_removal or (record.draft_version is not None and record.draft_branch == branch)
