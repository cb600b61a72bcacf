"""The model of pull requests that is independent of the forge, and the Protocol `Forge` of the clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from reconciler.catalog.files import CommitId

State = Literal["open", "closed", "merged"]
Hold = Literal["", "approved", "queued", "auto-merge"]
# With this label, a reviewer accepts the conflicts of a draft.
ACCEPT_CONFLICTS = "accept-conflicts"
MergeMethod = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True)
class PullRequest:
    """A pull request. GitLab calls it a merge request.

    `head` and `base` are branches of one repository, and `commit` is the commit of `head`. `draft` is whether the pull
    request is marked as a draft. `hold` is the reason why the reconciler must not push to it: reviewers approved this
    commit, or its merge is pending. `created` is in seconds since 1970. `title` does not contain the draft mark of the
    forge. `labels` are sorted names.
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
    """The result of the check of a commit: whether it can be published, and otherwise the reason in one line."""

    passed: bool
    summary: str


class Forge(Protocol):
    """The pull requests of one repository on a forge.

    All methods raise ForgeError. No method waits for a rate limit.
    """

    def list_open_requests(self) -> Sequence[PullRequest]:
        """Return the open pull requests from branches of this repository, sorted by number."""
        ...

    def get_request(self, number: int) -> PullRequest:
        """Return one pull request in any state."""
        ...

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the newest pull request of these branches in any state, or None."""
        ...

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request.

        Raises:
            ForgeRefusedError: For example, a pull request for these branches is already open.
        """
        ...

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Set title and body of a pull request. Return the result, which on some forges is a new pull request."""
        ...

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review."""
        ...

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Remove a label from a pull request. Do nothing if it does not have the label."""
        ...

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        ...

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the check `reconciler` of a commit."""
        ...

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request if its head is still `request.commit`.

        Raises:
            HeadMovedError: The head is another commit.
            ForgeRefusedError: The forge rejected the merge.
        """
        ...
