"""Reads the commits that published the revisions of packages."""

from __future__ import annotations

from reconciler.krm.git_formats import APPROVED_VIA_TRAILER, parse_trailers
from reconciler.output.commit_messages import parse_change_key, parse_reason
from reconciler.output.fleet.publications import Publication
from reconciler.planning.model.state import PublishedRevision
from reconciler.reconcile.remotes.repository import Remote


def read_publication(revision: PublishedRevision, remote: Remote) -> Publication:
    """Return the publication of a revision.

    Raises:
        GitError: The commit cannot be read.
    """
    commit = remote.read_commit(revision.commit)
    subject, reason = commit.message.partition("\n")[0], parse_reason(commit.message)
    return Publication(
        revision.number, revision.commit, commit.author.name, commit.seconds, subject, reason,
        parse_change_key(commit.message), via=parse_trailers(commit.message).get(APPROVED_VIA_TRAILER, ""),
    )  # fmt: skip
