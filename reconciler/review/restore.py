"""Restores an earlier revision of a package: pushes a commit of a person to the draft branch.

The draft is then reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from reconciler.catalog.files import FILE_MODE, BlobId, CommitId, ObjectId, TreeId
from reconciler.git.object_writer import DeletePath, NewCommit, PutObject, TreeChange
from reconciler.git.push_outcomes import PushDone, PushUnit, RefUpdate
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.text import to_one_line
from reconciler.planning.lifecycle.open_drafts import TargetPackage, list_target_packages
from reconciler.planning.model.state import PublishedRevision
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, ReviewSelection, TargetReference
from reconciler.review.drafts import DraftReview
from reconciler.review.people import Reviewer
from reconciler.review.review_requests import ReviewRequestError


@dataclass(frozen=True)
class RestoredDraft:
    """The draft with the restored content."""

    branch: str
    commit: CommitId


class Restorer:
    """Restores revisions.

    Args:
        open_review: Opens the config and the remotes.
        wake_pass: Requests a pass that records the new draft.
        record_activity: Receives the event of each restored revision.
    """

    def __init__(
        self,
        open_review: Callable[[], AbstractContextManager[DraftReview]],
        wake_pass: Callable[[], None],
        record_activity: Callable[[Sequence[ActivityEvent]], None],
    ) -> None:
        self._open_review = open_review
        self._wake_pass = wake_pass
        self._record_activity = record_activity

    def restore(self, target: str, package: str, number: int, person: Reviewer) -> RestoredDraft:
        """Push a commit with the content of a revision to the draft branch of a package.

        The published content does not change until a person approves the draft.

        Raises:
            ReviewRequestError: The revision is unknown, it is the current content, or the push failed.
            UnknownTargetError: The target does not exist.
            GitError: The repository cannot be read or written.
        """
        selection = ReviewSelection((TargetReference(target, package),))
        with self._open_review() as review:
            open_target = review.open_targets(selection)[0]
            if open_target.error or open_target.snapshot is None:
                raise ReviewRequestError("TargetUnreadable", open_target.error or f"{target} has no packages")
            packages = list_target_packages(open_target.snapshot, open_target.drafts)
            found = next((candidate for candidate in packages if candidate.package == package), None)
            draft = _push(review, open_target.snapshot, _check_package(found, target, package), number, person)
            now = review.now()
        name, message = person.git_identity[0], f"restore v{number}"
        self._record_activity([
            ActivityEvent(("draft-created",), now, now, target, package, name, message, commit=draft.commit)
        ])  # fmt: skip
        self._wake_pass()
        return draft


def _check_package(package: TargetPackage | None, target: str, name: str) -> TargetPackage:
    if package is None:
        raise ReviewRequestError("UnknownPackage", f"{target} has no package {name} any more")
    if package.drafted_package is not None:
        raise ReviewRequestError(
            "DraftOpen", f"{name} has an open draft; publish or reject the draft, and restore the revision then"
        )
    return package


def _push(
    review: DraftReview, snapshot: TargetSnapshot, package: TargetPackage, number: int, person: Reviewer
) -> RestoredDraft:
    target, name = snapshot.target, package.package
    revision = next((revision for revision in package.record.revisions if revision.number == number), None)
    if revision is None:
        raise ReviewRequestError("UnknownRevision", f"the state records no revision {number} of {name}")
    tree, status = snapshot.find_package_at(revision.commit, name)
    if tree is None or tree == package.published_tree:
        raise ReviewRequestError("NothingToRestore", f"revision {number} is the published content of {name}")
    branch = snapshot.find_draft_branch(name)
    head = snapshot.heads.drafts.get(branch)
    parent = head or snapshot.heads.target_branch
    if parent is None:
        raise ReviewRequestError("NothingPublished", f"{target.name} has no branch {target.branch}")
    remote = review.get_remote(target)
    message = _format_message(name, revision, person)
    seconds = max(review.now(), remote.read_commit(parent).seconds)
    changes = tuple(_list_changes(target, name, tree, status))
    commit = remote.mirror.write_commits([NewCommit((parent,), changes, message, seconds, author=person.git_identity)])[
        0
    ]
    ref = BRANCH_PREFIX + branch
    outcome = review.push(target, [PushUnit(ref, (RefUpdate(ref, commit, head),))])[ref]
    if not isinstance(outcome, PushDone):
        raise ReviewRequestError("PushFailed", f"{branch}: {describe_push_outcome(outcome)}")
    return RestoredDraft(branch, commit)


def _format_message(package: str, revision: PublishedRevision, person: Reviewer) -> str:
    title = to_one_line(f"{package}: restore v{revision.number}")
    return (
        f"{title}\n\n{person.git_identity[0]} restored the content of commit {revision.commit[:12]} in the console.\n"
    )


def _list_changes(target: Target, package: str, tree: TreeId, status: BlobId | None) -> Iterator[TreeChange]:
    path, status_path = target.get_package_path(package), target.get_status_file_path(package)
    yield DeletePath(path)
    yield DeletePath(status_path)
    yield PutObject(path, tree)
    if status:
        yield PutObject(status_path, ObjectId(status), FILE_MODE)
