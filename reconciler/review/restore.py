"""Restores earlier content of packages: pushes commits of a person to draft branches.

The drafts are then reviewed.
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
from reconciler.planning.model.targets import Target
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, ReviewSelection, TargetReference
from reconciler.review.drafts import DraftReview
from reconciler.review.people import Reviewer
from reconciler.review.review_requests import ReviewRequestError


@dataclass(frozen=True)
class EarlierContent:
    """Earlier content of a package, and the message of the commit that drafts it.

    Attributes:
        status: The status file. None if there was none.
    """

    package: str
    tree: TreeId
    status: BlobId | None
    message: str


@dataclass(frozen=True)
class RestoredDraft:
    """The draft with earlier content.

    Attributes:
        commits: One commit for each package. The last commit is the new head of the branch.
    """

    branch: str
    commits: tuple[CommitId, ...]
    unit: PushUnit


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
            snapshot = open_target.snapshot
            if open_target.error or snapshot is None:
                raise ReviewRequestError("TargetUnreadable", open_target.error or f"{target} has no packages")
            packages = list_target_packages(snapshot, open_target.drafts)
            found = next((candidate for candidate in packages if candidate.package == package), None)
            content = _find_revision(snapshot, check_package(found, target, package), number, person)
            draft = write_draft(review, snapshot, snapshot.find_draft_branch(package), (content,), person)
            outcome = review.push(snapshot.target, [draft.unit])[draft.unit.name]
            now = review.now()
        if not isinstance(outcome, PushDone):
            raise ReviewRequestError("PushFailed", f"{draft.branch}: {describe_push_outcome(outcome)}")
        name, message = person.git_identity[0], f"restore v{number}"
        self._record_activity([
            ActivityEvent(("draft-created",), now, now, target, package, name, message, commit=draft.commits[-1])
        ])  # fmt: skip
        self._wake_pass()
        return draft


def check_package(package: TargetPackage | None, target: str, name: str) -> TargetPackage:
    """Return the package if a draft with earlier content can be created for it.

    Raises:
        ReviewRequestError: The package does not exist, or it has an open draft.
    """
    if package is None:
        raise ReviewRequestError("UnknownPackage", f"{target} has no package {name} any more")
    if package.drafted_package is not None:
        raise ReviewRequestError(
            "DraftOpen", f"{name} has an open draft; publish or reject the draft, and restore the revision then"
        )
    return package


def _find_revision(snapshot: TargetSnapshot, package: TargetPackage, number: int, person: Reviewer) -> EarlierContent:
    name = package.package
    revision = next((revision for revision in package.record.revisions if revision.number == number), None)
    if revision is None:
        raise ReviewRequestError("UnknownRevision", f"the state records no revision {number} of {name}")
    tree, status = snapshot.find_package_at(revision.commit, name)
    if tree is None or tree == package.published_tree:
        raise ReviewRequestError("NothingToRestore", f"revision {number} is the published content of {name}")
    text = f"{person.git_identity[0]} restored the content of commit {revision.commit[:12]} in the console."
    return EarlierContent(name, tree, status, format_message(f"{name}: restore v{number}", text))


def write_draft(
    review: DraftReview, snapshot: TargetSnapshot, branch: str, contents: Sequence[EarlierContent], person: Reviewer
) -> RestoredDraft:
    """Write a commit with the earlier content of each package, on top of a draft branch. The caller must push it.

    Raises:
        ReviewRequestError: The target branch does not exist.
    """
    target, head = snapshot.target, snapshot.heads.drafts.get(branch)
    parent = head or snapshot.heads.target_branch
    if parent is None:
        raise ReviewRequestError("NothingPublished", f"{target.name} has no branch {target.branch}")
    remote = review.get_remote(target)
    seconds = max(review.now(), remote.read_commit(parent).seconds)
    commits: list[CommitId] = []
    for content in contents:
        changes = tuple(_list_changes(target, content))
        commit = NewCommit((parent,), changes, content.message, seconds, author=person.git_identity)
        parent = remote.mirror.write_commits([commit])[0]
        commits.append(parent)
    unit = PushUnit(f"{target.key.reference} {branch}", (RefUpdate(BRANCH_PREFIX + branch, parent, head),))
    return RestoredDraft(branch, tuple(commits), unit)


def format_message(title: str, text: str) -> str:
    """Return the message of a commit with earlier content."""
    return f"{to_one_line(title)}\n\n{to_one_line(text)}\n"


def _list_changes(target: Target, content: EarlierContent) -> Iterator[TreeChange]:
    path, status_path = target.get_package_path(content.package), target.get_status_file_path(content.package)
    yield DeletePath(path)
    yield DeletePath(status_path)
    yield PutObject(path, content.tree)
    if content.status:
        yield PutObject(status_path, ObjectId(content.status), FILE_MODE)
