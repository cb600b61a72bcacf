"""The port: what the daemon asks of one repository at a forge (peers.md (d): the six calls, and no more)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reconciler.forge.request import MergeMethod, NewRequest, PullRequest, Verdict
from reconciler.snapshot.objects import CommitId


class Forge(Protocol):
    """One repository at a forge. Every call raises ForgeError; none of them waits for a budget or a limit."""

    def open_requests(self) -> Sequence[PullRequest]:
        """Return the open pull requests from branches of this repository, by number; asked conditionally."""
        ...

    def request(self, number: int) -> PullRequest:
        """Return one pull request, whatever became of it."""
        ...

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the pull request of these branches that was opened last, whatever became of it; None without one."""
        ...

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request. Raises ForgeRefusedError, also when one is open for these branches."""
        ...

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Give a pull request another title and body; return it as it is now, which on some forges is another one."""
        ...

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review."""
        ...

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Take a label off a pull request. Do nothing if it does not have the label."""
        ...

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        ...

    def report(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the check `reconciler` of a commit."""
        ...

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request whose head is still `request.commit`. Raises HeadMovedError, ForgeRefusedError."""
        ...
