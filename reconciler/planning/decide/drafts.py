"""Plans for the draft branches of a target, computed from the outcomes of the packages of the target.

The module `removal_decision` plans the removal drafts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from reconciler.catalog.files import BlobId, CommitId, FileTree, TreeId
from reconciler.krm.git_formats import PACKAGE_TRAILER
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.layout.refs import (
    BranchAction,
    DraftChanges,
    DraftCommit,
    KeepBranch,
    PushCommits,
    plan_closed_draft_branch,
    plan_draft_branch,
)
from reconciler.planning.model.outcomes import Draft, PackageOutcome, RemovalOutcome, Unchanged
from reconciler.planning.model.state import DraftBranch, TargetState
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot


@dataclass(frozen=True)
class DraftTexts:
    """The status file and the commit message of one draft."""

    status_file: bytes
    message: str


class DraftTextWriter(Protocol):
    """Creates the status files and commit messages of drafts and removals."""

    def write_draft_texts(self, draft: Draft, target: Target) -> DraftTexts:
        """Return the status file and the commit message of a draft."""
        ...

    def write_removal_message(self, removal: RemovalOutcome, target: Target, before: FileTree | None) -> str:
        """Return the commit message of a removal.

        `before` contains the removed files. `before` is None if the package is larger than a size limit.
        """
        ...


def plan_draft_branches(
    snapshot: TargetSnapshot,
    outcomes: Iterable[PackageOutcome],
    removed: Collection[str],
    texts: Mapping[str, DraftTexts],
    config_seconds: int,
) -> tuple[BranchAction, ...]:
    """Return the actions for all existing and new draft branches of a target, except for removal drafts.

    Args:
        outcomes: The outcomes of the packages, at most one per package.
        removed: The packages that must be deleted from their drafts.
        texts: The status files and commit messages of the drafts, by package.
        config_seconds: The date of the config commit in seconds since 1970. Draft commits have this date or a later
            date.
    """
    published = snapshot.heads.target_branch
    if published is None:
        return ()
    by_package = {outcome.variant.target.package: outcome for outcome in outcomes}
    packages_by_branch: dict[str, list[str]] = {
        name: [] for name, draft in snapshot.state.drafts.items() if not draft.is_removal
    }
    packages_by_branch |= {name: [] for name in snapshot.heads.closed_drafts - snapshot.heads.removal_branches}
    for package in {**snapshot.state.packages, **by_package}:
        packages_by_branch.setdefault(snapshot.find_draft_branch(package), []).append(package)
    return tuple(
        _plan_branch(
            snapshot,
            branch,
            published,
            _collect_changes(snapshot, packages, by_package, removed, texts, config_seconds),
        )
        for branch, packages in sorted(packages_by_branch.items())
    )


def list_closed_draft_heads(previous: TargetState, heads: TargetHeads) -> tuple[CommitId, ...]:
    """Return the heads of drafts that contain local changes and whose pull request was closed.

    The branches of these drafts will be deleted.
    """
    return tuple(
        heads.drafts[name]
        for name in sorted(heads.closed_drafts)
        if _has_local_commits(previous.drafts.get(name), heads, name)
    )


def _has_local_commits(draft: DraftBranch | None, heads: TargetHeads, name: str) -> bool:
    return name in heads.drafts and (draft is None or draft.is_edited or draft.head != heads.drafts[name])


def _plan_branch(snapshot: TargetSnapshot, branch: str, published: CommitId, changes: DraftChanges) -> BranchAction:
    head = snapshot.heads.drafts.get(branch)
    if branch in snapshot.heads.closed_drafts:
        return plan_closed_draft_branch(branch, head, published, changes)
    action = plan_draft_branch(branch, head, snapshot.state, published, changes, snapshot.objects)
    return KeepBranch(branch) if isinstance(action, PushCommits) and snapshot.is_frozen(branch) else action


def _collect_changes(
    snapshot: TargetSnapshot,
    packages: Iterable[str],
    outcomes: Mapping[str, PackageOutcome],
    removed: Collection[str],
    texts: Mapping[str, DraftTexts],
    config_seconds: int,
) -> DraftChanges:
    commits, reverts, drafted = {}, {}, set()
    for package in packages:
        match outcomes.get(package):
            case Draft() as draft:
                commits[package] = _build_commit(draft, texts[package], config_seconds)
            case Unchanged(should_withdraw=True):
                reason = "The target branch already contains the requested content, or a person declined this content."
                reverts[package] = build_revert_commit(snapshot, package, reason)
            case None if package in removed:
                reverts[package] = build_revert_commit(
                    snapshot, package, "The config does not request this package any more."
                )
            case _:
                pass
        if package in snapshot.state.packages and snapshot.state.packages[package].draft_version:
            drafted.add(package)
    moved = {
        package
        for package in packages
        if snapshot.has_published_change(package) and (package in commits or snapshot.has_draft_change(package))
    }
    edited = {package for package in moved if _has_local_changes(snapshot, package)}
    restores = {
        package: build_restore_commit(
            snapshot,
            package,
            *snapshot.find_package_at(snapshot.heads.drafts.get(snapshot.find_draft_branch(package)), package),
        )
        for package in moved & (drafted - commits.keys() - reverts.keys())
    }
    return DraftChanges(commits, reverts, frozenset(drafted), frozenset(moved), frozenset(edited), restores)


def _has_local_changes(snapshot: TargetSnapshot, package: str) -> bool:
    published, _ = snapshot.find_package_at(snapshot.heads.target_branch, package)
    record = snapshot.state.packages.get(package)
    return published is not None and not (
        record and record.published_version and record.published_version.rendered == published
    )


def _build_commit(draft: Draft, texts: DraftTexts, config_seconds: int) -> DraftCommit:
    seconds = max(config_seconds, draft.variant.source.committer_seconds)
    return DraftCommit(draft.variant.target.package, draft.rendered.files, texts.status_file, texts.message, seconds)


def build_restore_commit(
    snapshot: TargetSnapshot, package: str, content: TreeId | None, status: BlobId | None
) -> DraftCommit:
    """Return the commit that restores a package on a draft after the target branch was merged into the draft."""
    return DraftCommit(package, content, status, _format_message(snapshot, package, "keep the content of the draft"))


def _format_message(snapshot: TargetSnapshot, package: str, summary: str, reason: str = "") -> str:
    trailers = f"Reconciler-Repository: {snapshot.target.name}\n{PACKAGE_TRAILER}: {package}\n"
    return "\n\n".join(filter(None, (f"{package}: {summary}", reason, trailers)))


def build_revert_commit(snapshot: TargetSnapshot, package: str, reason: str) -> DraftCommit:
    """Return the commit that resets a package on a draft to its content on the target branch.

    The commit is used for a draft with commits of other authors, because such a draft is never rebuilt.
    """
    content, status = snapshot.find_package_at(snapshot.heads.target_branch, package)
    message = _format_message(snapshot, package, "remove its changes from the draft", reason)
    return DraftCommit(package, content, status, message)
