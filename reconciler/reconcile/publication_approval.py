"""The person who published a commit of a target branch, and the source of the publication, for logs and metrics."""

from __future__ import annotations

from reconciler.git.object_reader import Commit
from reconciler.krm.git_formats import APPROVED_BY_TRAILER, APPROVED_VIA_TRAILER, parse_trailers
from reconciler.lazy_dataclasses import dataclass

# Maps the value of the trailer `Reconciler-Approved-Via` to the source of the publication in events and metrics.
_SOURCES = {"cli": "command", "forge": "forge", "console": "console", "annotation": "annotation"}


@dataclass(frozen=True)
class PublicationApproval:
    """The author of a publication as `Name <mail>`, and its source: one of `metrics.PUBLICATION_SOURCES`."""

    author: str
    source: str


def find_approval(commit: Commit) -> PublicationApproval:
    """Return the approval of a commit that published packages.

    The person in a trailer takes precedence over the author.
    """
    trailers = parse_trailers(commit.message)
    author = trailers.get(APPROVED_BY_TRAILER) or f"{commit.author.name} <{commit.author.email}>"
    return PublicationApproval(author, _SOURCES.get(trailers.get(APPROVED_VIA_TRAILER, ""), "git"))
