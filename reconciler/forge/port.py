"""The Protocol `Forge` of all clients, and the model of pull requests, which is independent of the forge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from reconciler.catalog.files import CommitId
from reconciler.lazy_dataclasses import dataclass

ForgeKind = Literal["github", "gitlab", "gitea", "gitlab-push-options", "agit"]
State = Literal["open", "closed", "merged"]
Hold = Literal["", "approved", "queued", "auto-merge"]
# Reviewers set this label to accept the conflicts of a draft.
ACCEPT_CONFLICTS = "accept-conflicts"
MergeMethod = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True)
class PullRequest:
    """A pull request. GitLab calls it a merge request.

    Attributes:
        title: The title without the prefix that marks a draft on the forge.
        head: The branch to merge. It is in the same repository as `base`.
        base: The branch to merge into.
        commit: The head commit of the branch `head`.
        draft: Whether the pull request is marked as a draft on the forge.
        hold: The reason why the daemon must not push to the branch: the commit is approved, or its merge is pending.
        created: The creation time of the pull request, in seconds since 1970.
        labels: The sorted names of the labels.
    """

    number: int
    url: str
    title: str
    body: str
    head: str
    base: str
    commit: CommitId
    state: State = "open"
    draft: bool = False
    hold: Hold = ""
    created: int = 0
    labels: tuple[str, ...] = ()

    @property
    def accepts_conflicts(self) -> bool:
        """Whether the pull request has the label with which reviewers accept conflicts."""
        return ACCEPT_CONFLICTS in self.labels


@dataclass(frozen=True)
class NewRequest:
    """The input for a new pull request from branch `head` to branch `base` of the same repository."""

    head: str
    base: str
    title: str
    body: str
    draft: bool = True
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The result of a commit check for the forge.

    Attributes:
        passed: Whether the commit can be published.
        summary: The reason for the result, in one sentence.
    """

    passed: bool
    summary: str


class Forge(Protocol):
    """The pull requests of one repository on a forge.

    All methods raise ForgeError. If a rate limit is reached, they raise ForgeBusyError and do not wait.
    """

    def list_open_requests(self) -> Sequence[PullRequest]:
        """Return the open pull requests from branches of this repository, sorted by number."""
        ...

    def get_request(self, number: int) -> PullRequest:
        """Return one pull request in any state."""
        ...

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the newest pull request of these branches in any state. Return None if no pull request exists."""
        ...

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request.

        Raises:
            ForgeRefusedError: The forge rejected the pull request, for example because a pull request for these
                branches is already open.
        """
        ...

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Set title and body of a pull request. Return the pull request with the new title and body."""
        ...

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review."""
        ...

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Remove a label from a pull request. Do nothing if the pull request does not have the label."""
        ...

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        ...

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler` of a commit, which shows whether the commit can be published."""
        ...

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request if its head is still `request.commit`.

        Raises:
            HeadMovedError: The head of the branch is not `request.commit` any more.
            ForgeRefusedError: The forge rejected the merge.
        """
        ...
