"""Incomplete approvals: the drafts need approvals of several people (the setting `review.approvals`).

One ref for each draft branch points to the last approval. Each approval is a commit without files. Its parent is the
previous approval. If two people approve at the same time, both move the same ref, so that one push fails and must be
repeated. An approval is valid for one head of the draft branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.catalog.files import CommitId
from reconciler.git.object_writer import NewCommit
from reconciler.krm.git_formats import PACKAGE_TRAILER, list_trailers
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.commit_messages import parse_draft_head
from reconciler.planning.lifecycle.open_drafts import DraftedPackage, OpenDraft
from reconciler.reconcile.remotes.repository import Remote

_MAX_APPROVALS = 100


@dataclass(frozen=True)
class DraftApproval:
    """One person's approval of some or all packages of a draft."""

    name: str
    email: str
    packages: frozenset[str]

    @property
    def person(self) -> tuple[str, str]:
        """The name and mail address of the person."""
        return self.name, self.email


@dataclass(frozen=True)
class RecordApproval:
    """The decision to record a person's approval without a publication, because more people must approve the draft.

    Attributes:
        count: The number of approvals, including this one.
        required: The number of approvals that are necessary to publish the draft.
        has_earlier: Whether the current head has earlier approvals.
    """

    packages: tuple[DraftedPackage, ...]
    count: int
    required: int
    has_earlier: bool = False

    @property
    def message(self) -> str:
        """A message to the person about the result."""
        missing = format_count(self.required - self.count, "more approval")
        return f"{self.count} of {self.required} approvals; {missing} by other people must follow"


def approvals_ref(state_ref: str, branch: str) -> str:
    """Return the ref of the last approval of a draft branch."""
    # Use the prefix of the state refs, because every pass fetches the refs with this prefix.
    return state_ref.format(repository=f"_approved/{branch}")


def read_approvals(draft: OpenDraft, remote: Remote, state_ref: str) -> tuple[DraftApproval, ...]:
    """Return the approvals of the current head of a draft, the oldest first."""
    return tuple(reversed(tuple(_iterate_approvals(draft, remote, state_ref))))


def _iterate_approvals(draft: OpenDraft, remote: Remote, state_ref: str) -> Iterator[DraftApproval]:
    commit_id = remote.refs.get(approvals_ref(state_ref, draft.branch))
    for _ in range(_MAX_APPROVALS):
        commit = remote.read_commit(commit_id) if commit_id else None
        if commit is None or parse_draft_head(commit.message) != draft.head:
            return
        packages = frozenset(value for name, value in list_trailers(commit.message) if name == PACKAGE_TRAILER)
        yield DraftApproval(commit.author.name, commit.author.email, packages)
        commit_id = commit.parents[0] if commit.parents else None


def list_other_approvers(
    approvals: Iterable[DraftApproval], packages: Iterable[DraftedPackage], person: tuple[str, str] | None
) -> tuple[DraftApproval, ...]:
    """Return one approval of each person who has approved all packages in `packages`. Omit `person`.

    People are identified by their mail addresses.
    """
    names = {package.package for package in packages}
    own = person[1].casefold() if person else ""
    covered: dict[str, frozenset[str]] = {}
    found: dict[str, DraftApproval] = {}
    for approval in approvals:
        email = approval.email.casefold()
        covered[email] = covered.get(email, frozenset()) | approval.packages
        if email != own and names <= covered[email]:
            found.setdefault(email, approval)
    return tuple(found.values())


def has_approved(approvals: Iterable[DraftApproval], packages: Iterable[DraftedPackage], email: str) -> bool:
    """Return whether a person has approved all these packages."""
    own = [approval.packages for approval in approvals if approval.email.casefold() == email.casefold()]
    return {package.package for package in packages} <= frozenset().union(*own)


def build_approval_commit(decision: RecordApproval, last: CommitId | None, message: str) -> NewCommit:
    """Return the commit that records an approval.

    Args:
        last: The commit that the ref of the approvals points to. It can be an approval of an earlier head. None if the
            ref does not exist.
    """
    return NewCommit((last,) if last and decision.has_earlier else (), (), message, 0)
