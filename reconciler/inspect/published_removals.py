"""Finds the commits that removed published packages from target branches, for the activity of the console."""

from __future__ import annotations

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitError
from reconciler.krm.git_formats import APPROVED_VIA_TRAILER, parse_trailers
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.commit_messages import parse_reason
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.planning.model.targets import Target
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import DraftReader


@dataclass(frozen=True)
class ObservedRemoval:
    """A published package that no object requests, and that a commit has removed from the target branch.

    Attributes:
        reason: The reason why no object requests the package.
        since: The last known head of the target branch with the package. None if it is unknown.
        until: The first known head without the package.
    """

    target: Target
    package: str
    reason: str
    since: CommitId | None
    until: CommitId


def read_removal_event(removal: ObservedRemoval, reader: DraftReader, now: int) -> ActivityEvent:
    """Return the event about a removal, with the author of its commit.

    If the commit cannot be read, the event has the time of the pass and no author.

    Args:
        now: The end of the pass, in seconds since 1970.
    """
    name = removal.target.name
    try:
        with repository_boundary(removal.target.title):
            reader.read_target(removal.target)
            remote = reader.get_remote(removal.target)
            commit = remote.read_commit(_find_commit(removal, remote))
    except GitError as error:
        log_if_internal(error)
        return ActivityEvent(("removed",), now, now, name, removal.package, message=removal.reason)
    is_approved = APPROVED_VIA_TRAILER in parse_trailers(commit.message)
    return ActivityEvent(
        ("approved", "removed") if is_approved else ("removed",),
        commit.seconds,
        now,
        name,
        removal.package,
        commit.author.name,
        removal.reason,
        parse_reason(commit.message),
        commit.id,
    )


def _find_commit(removal: ObservedRemoval, remote: Remote) -> CommitId:
    """Return the first commit after which the target branch never contained the package."""
    commits = remote.list_first_parents(removal.since, removal.until) if removal.since else None
    path, found = removal.target.get_package_path(removal.package), removal.until
    for commit in reversed(commits or ()):
        if remote.find_tree_at(commit, path) is not None:
            break
        found = commit
    return found
