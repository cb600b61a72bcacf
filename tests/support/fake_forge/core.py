"""Behavior of all forges: pull requests between branches of a bare repository, and real merges."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Literal

from tests.support.git_repositories import git, make_bare

RequestState = Literal["open", "closed", "merged"]
ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED"]
TroubleKind = Literal["", "busy", "spent", "down", "forbidden"]


class RefusalError(Exception):
    """The forge refuses a request. Each product has its own text for it."""


class NoSuchRequestError(RefusalError):
    pass


class NoSuchBranchError(RefusalError):
    """`which` is head or base."""

    def __init__(self, which: str) -> None:
        super().__init__(which)
        self.which = which


class NothingToMergeError(RefusalError):
    pass


class AlreadyOpenError(RefusalError):
    def __init__(self, number: int) -> None:
        super().__init__(str(number))
        self.number = number


class NotOpenError(RefusalError):
    pass


class DraftError(RefusalError):
    pass


class HeadMovedError(RefusalError):
    pass


class ConflictError(RefusalError):
    pass


class ReopenError(RefusalError):
    """A merged request, or a request without a branch, cannot be reopened."""


@dataclass
class Review:
    user: str
    state: ReviewState
    commit: str
    at: int


@dataclass
class Status:
    context: str
    state: str
    description: str
    target_url: str | None = None


@dataclass
class FakePullRequest:
    """A pull request. `commit` is the last observed head, `ground` the commit of its base."""

    number: int
    head: str
    base: str
    title: str
    body: str
    draft: bool
    commit: str
    ground: str
    created: int
    updated: int
    state: RequestState = "open"
    labels: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    auto_merge: bool = False
    queued: bool = False
    ended: int = 0
    merge_commit: str = ""
    from_fork: str = ""


@dataclass
class Outage:
    """An outage of the forge that ends at a time of its clock."""

    kind: TroubleKind = ""
    until: float = 0
    words: str = ""


class FakeForge:
    """A forge with repositories below a folder, one account with a token, and a manual clock.

    `calls` contains each request as (method, path without query).
    """

    def __init__(
        self, root: Path, clock: Callable[[], float], token: str = "s3cr3t-of-the-bot", user: str = "bot"
    ) -> None:
        self.root = root
        self.clock = clock
        self.token = token
        self.user = user
        self.url = ""
        self.calls: list[tuple[str, str]] = []
        self.repositories: dict[str, FakeRepository] = {}
        self.lock = RLock()
        self._trouble = Outage()

    def create_repository(self, path: str, like: Path | None = None) -> FakeRepository:
        """Create a repository such as `acme/fleet`, empty or as a copy of another bare repository."""
        bare = self.root / f"{path}.git"
        if like:
            shutil.copytree(like, bare)
        else:
            make_bare(bare)
        self.repositories[path] = FakeRepository(self, path, bare, len(self.repositories) + 1)
        return self.repositories[path]

    @property
    def outage(self) -> Outage:
        """The current outage. A `kind` of "" means none."""
        over = self._trouble.until and self.clock() >= self._trouble.until
        return Outage() if over else self._trouble

    def busy_for(self, seconds: float) -> None:
        """Refuse all requests for a number of seconds and return Retry-After."""
        self._trouble = Outage("busy", self.clock() + seconds)

    def limit_until(self, moment: float) -> None:
        """Refuse all requests until the rate limit resets, and return the time of the reset."""
        self._trouble = Outage("spent", moment)

    def break_down(self) -> None:
        """Answer all requests with a server error."""
        self._trouble = Outage("down")

    def forbid(self, words: str) -> None:
        """Refuse each write with this text."""
        self._trouble = Outage("forbidden", words=words)

    def recover(self) -> None:
        """End the outage."""
        self._trouble = Outage()


class FakeRepository:
    """A repository on a forge: a bare repository and its pull requests."""

    def __init__(self, forge: FakeForge, path: str, bare: Path, number: int) -> None:
        self.forge = forge
        self.path = path
        self.bare = bare
        self.number = number
        self.statuses: dict[str, list[Status]] = {}
        self.labels: dict[str, int] = {}
        self._requests: dict[int, FakePullRequest] = {}
        self._seen: dict[str, str] = {}
        self._contained: dict[tuple[str, str], bool] = {}

    @property
    def now(self) -> int:
        return int(self.forge.clock())

    def branch(self, name: str) -> str | None:
        """Return the commit of a branch."""
        return self._branches().get(name)

    def has_commit(self, commit: str) -> bool:
        """Return whether the repository contains a commit."""
        return len(commit) == 40 and git(self.bare, "cat-file", "-t", commit, check=False) == "commit"

    def label(self, name: str) -> int:
        """Create a label in the repository and return its id."""
        return self.labels.setdefault(name, len(self.labels) + 1)

    def set_label(self, number: int, name: str) -> None:
        """Set a label on a pull request."""
        self.label(name)
        request = self.request(number)
        request.labels = [*request.labels, name] if name not in request.labels else request.labels
        self.touch(request)

    def requests(self) -> list[FakePullRequest]:
        """Return all pull requests in their current state, the newest first."""
        self._follow_branches()
        return sorted(self._requests.values(), key=lambda request: -request.number)

    def request(self, number: int) -> FakePullRequest:
        """Return a pull request in its current state."""
        self._follow_branches()
        if number not in self._requests:
            raise NoSuchRequestError
        return self._requests[number]

    def find_open_request(self, head: str, base: str) -> FakePullRequest | None:
        """Return the open pull request of two branches."""
        generator_type = (
            pull_request
            for pull_request in self.requests()
            if (pull_request.head, pull_request.base, pull_request.from_fork) == (head, base, "")
        )
        return next((pull_request for pull_request in generator_type if pull_request.state == "open"), None)

    def open(self, head: str, base: str, title: str, body: str, draft: bool, from_fork: str = "") -> FakePullRequest:
        """Open a pull request. With `from_fork` the head is the same commit in another repository."""
        if self.branch(base) is None:
            raise NoSuchBranchError("base")
        if self.branch(head) is None:
            raise NoSuchBranchError("head")
        if not from_fork and (standing := self.find_open_request(head, base)):
            raise AlreadyOpenError(standing.number)
        commit, ground = self._commit(head), self._commit(base)
        if self.contains(ground, commit):
            raise NothingToMergeError
        number = max(self._requests, default=0) + 1
        new_pull_request = FakePullRequest(number, head, base, title, body, draft, commit, ground, self.now, self.now)
        new_pull_request.from_fork = from_fork
        self._requests[number] = new_pull_request
        return new_pull_request

    def touch(self, request: FakePullRequest) -> None:
        """Record the time of a change of a pull request."""
        request.updated = self.now

    def close(self, request: FakePullRequest) -> None:
        """Close a pull request. Closing it again has no effect."""
        if request.state == "open":
            self._end(request, "closed")

    def delete(self, request: FakePullRequest) -> None:
        """Delete a pull request, as owners on GitLab and Gitea can."""
        del self._requests[request.number]

    def reopen(self, request: FakePullRequest) -> None:
        """Reopen a closed pull request."""
        if request.state == "open":
            return
        if (
            request.state == "merged"
            or self.branch(request.head) is None
            or self.find_open_request(request.head, request.base)
        ):
            raise ReopenError
        request.state, request.ended = "open", 0
        request.commit, request.ground = self._commit(request.head), self._commit(request.base)
        self.touch(request)

    def review(self, number: int, user: str, state: ReviewState) -> None:
        """Add a review of the current head by a person."""
        request = self.request(number)
        request.reviews.append(Review(user, state, request.commit, self.now))
        self.touch(request)

    def set_status(self, commit: str, status: Status) -> None:
        """Add a status to a commit. The last status of a context is effective."""
        self.statuses.setdefault(commit, []).append(status)

    def status(self, commit: str, context: str) -> Status | None:
        """Return the effective status of a context."""
        return next((status for status in reversed(self.statuses.get(commit, [])) if status.context == context), None)

    def contains(self, commit: str, other: str) -> bool:
        """Return whether a commit is equal to, or a descendant of, another commit."""
        if (commit, other) not in self._contained:
            beyond = git(self.bare, "rev-list", "--max-count=1", other, f"^{commit}")
            self._contained[commit, other] = not beyond
        return self._contained[commit, other]

    def merges_cleanly(self, request: FakePullRequest) -> bool:
        """Return whether a merge would have no conflict."""
        return self._merged_tree(self._commit(request.base), request.commit) is not None

    def merge(self, number: int, method: str, message: str, expected: str = "") -> str:
        """Merge a pull request into its base branch and return the new commit of the base."""
        request = self.request(number)
        if request.state != "open":
            raise NotOpenError
        if request.draft:
            raise DraftError
        if expected and expected != request.commit:
            raise HeadMovedError
        base = self._commit(request.base)
        merged = (
            self._rebase(base, request.commit) if method == "rebase" else self._join(request, base, method, message)
        )
        git(self.bare, "update-ref", f"refs/heads/{request.base}", merged, base)
        request.merge_commit = merged
        self._end(request, "merged")
        return merged

    def _branches(self) -> dict[str, str]:
        # Read the ref files directly, because a Git process per read would take most of a test's time.
        heads, packed = self.bare / "refs/heads", self.bare / "packed-refs"
        loose = {}
        for file in heads.rglob("*"):
            # A push may be in progress.
            with suppress(FileNotFoundError, IsADirectoryError):
                if file.suffix != ".lock":
                    loose[file.relative_to(heads).as_posix()] = file.read_text().strip()
        lines = [line.partition(" ") for line in packed.read_text().splitlines()] if packed.exists() else []
        branches = {name.removeprefix("refs/heads/"): commit for commit, _, name in lines if "refs/heads/" in name}
        return branches | loose

    def _commit(self, branch: str) -> str:
        commit = self.branch(branch)
        assert commit is not None, f"no branch {branch}"
        return commit

    def _join(self, request: FakePullRequest, base: str, method: str, message: str) -> str:
        tree = self._merged_tree(base, request.commit)
        if tree is None:
            raise ConflictError
        parents = ["-p", base] + (["-p", request.commit] if method == "merge" else [])
        return git(self.bare, "commit-tree", tree, *parents, "-m", message)

    def _merged_tree(self, text: str, other: str) -> str | None:
        result = git(self.bare, "merge-tree", "--write-tree", "--name-only", text, other, check=False).splitlines()
        return result[0] if len(result) == 1 else None

    def _rebase(self, base: str, head: str) -> str:
        for commit in git(self.bare, "rev-list", "--reverse", "--no-merges", head, f"^{base}").splitlines():
            tree = self._picked_tree(base, commit)
            if tree is None:
                raise ConflictError
            message = git(self.bare, "log", "-1", "--format=%B", commit)
            base = git(self.bare, "commit-tree", tree, "-p", base, "-m", message)
        return base

    def _picked_tree(self, base: str, commit: str) -> str | None:
        # Before version 2.40, `git merge-tree` has no option for the merge base. Three commits create the right one.
        root = git(self.bare, "commit-tree", f"{commit}^^{{tree}}", "-m", "root")
        ours = git(self.bare, "commit-tree", f"{base}^{{tree}}", "-p", root, "-m", "ours")
        theirs = git(self.bare, "commit-tree", f"{commit}^{{tree}}", "-p", root, "-m", "theirs")
        return self._merged_tree(ours, theirs)

    def _follow_branches(self) -> None:
        branches = self._branches()
        if branches == self._seen:
            return
        self._seen = branches
        for request in self._requests.values():
            if request.state == "open" and not request.from_fork:
                self._follow(request, branches)

    def _follow(self, request: FakePullRequest, branches: dict[str, str]) -> None:
        head, base = branches.get(request.head, request.commit), branches.get(request.base)
        if base is not None and (head, base) != (request.commit, request.ground) and self.contains(base, head):
            # A head that was reset to an old base commit is not a merge.
            self._end(request, "closed" if self.contains(request.ground, head) else "merged")
        elif base is None or request.head not in branches:
            self._end(request, "closed")
        elif head != request.commit:
            # A push to the head removes the request from the merge queue. Auto-merge stays.
            request.commit, request.queued = head, False
            self.touch(request)
        request.ground = base or request.ground

    def _end(self, request: FakePullRequest, state: RequestState) -> None:
        request.state, request.ended = state, self.now
        request.auto_merge = request.queued = False
        self.touch(request)
