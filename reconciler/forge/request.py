"""Pull requests as values, in words that every forge's are translated to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reconciler.snapshot.objects import CommitId

State = Literal["open", "closed", "merged"]
Hold = Literal["", "approved", "queued", "auto-merge"]
# the label with which a reviewer accepts the conflicts of a draft
ACCEPT_CONFLICTS = "accept-conflicts"
MergeMethod = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True)
class PullRequest:
    """A pull request as its forge shows it; GitLab calls it a merge request.

    `head` and `base` are branch names of one repository, `commit` is the head's. `draft`: it says of itself that it is
    not ready. `hold` is why nothing may be pushed to it any more: people approved this very commit, or it is on its
    way to be merged (git.md 3, finding 17). `created` is in seconds since 1970. `title` is without the forge's own
    mark of drafts. `labels` are names, sorted.
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
        """Whether it has the label with which reviewers accept the conflicts of a draft."""
        return ACCEPT_CONFLICTS in self.labels


@dataclass(frozen=True)
class NewRequest:
    """A pull request to be opened: from branch `head` into branch `base` of the same repository."""

    head: str
    base: str
    title: str
    body: str
    draft: bool = True
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What the check on a commit says: whether it may be published, and why not in one line."""

    passed: bool
    summary: str
