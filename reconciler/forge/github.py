"""GitHub and GitHub Enterprise Server: REST of version 2022-11-28, and GraphQL for what REST cannot do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from reconciler.forge.answers import in_line
from reconciler.forge.approvals import Approvals
from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
    HeadMovedError,
)
from reconciler.forge.fields import Fields
from reconciler.forge.http import Client
from reconciler.forge.request import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.snapshot.objects import CommitId

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_DESCRIPTION = 140
_TO_READY = "markPullRequestReadyForReview"
_TO_DRAFT = "convertPullRequestToDraft"


class GitHub:
    """One repository at GitHub (peers.md (d)).

    A pull request holds when it is set to merge by itself, or when its head is approved and nobody asks for changes.
    Whether it is queued for merging REST does not tell, so `queued` is never said; a push takes it out of the queue.
    """

    def __init__(self, client: Client, owner: str, name: str) -> None:
        _check_name(owner)
        _check_name(name)
        self._client = client.speaking(HEADERS)
        self._owner = owner
        self._root = f"/repos/{owner}/{name}"
        self._approvals = Approvals(client.clock)

    def open_requests(self) -> tuple[PullRequest, ...]:
        """Return the open pull requests from branches of this repository, by number; asked conditionally."""
        listed = self._client.pages(f"{self._root}/pulls", {"state": "open", "per_page": 100})
        found = {shown.number("number"): shown for shown in self._own(listed)}
        self._approvals.keep_only(found)
        return tuple(self._read(found[number]) for number in sorted(found))

    def request(self, number: int) -> PullRequest:
        """Return one pull request, whatever became of it."""
        return self._read(self._show(number))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the pull request of these branches that was opened last, whatever became of it; None without one."""
        # more than one, since forks of the same owner are named alike
        named = {"head": f"{self._owner}:{head}", "base": base, "state": "all"}
        listed = self._client.get(
            f"{self._root}/pulls", {**named, "sort": "created", "direction": "desc", "per_page": 10}
        )
        if not isinstance(listed, list):
            raise ForgeAnswerError(f"GET {self._root}/pulls: the answer must be a list")
        return next((self._read(shown) for shown in self._own(listed)), None)

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request. Raises ForgeRefusedError, also when one is open for these branches.

        Labels need a second call. When that is refused the pull request stands without them, and the error says so;
        what else goes wrong there is raised as it is, and `find` finds the pull request.
        """
        body = {"title": new.title, "body": new.body, "head": new.head, "base": new.base, "draft": new.draft}
        path = f"{self._root}/pulls"
        made = _request(Fields(self._client.send("POST", path, body, opens=True), f"POST {path}"))
        if new.labels:
            self._label(made, new.labels)
        return made

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Give a pull request another title and body."""
        self._client.send("PATCH", self._path(request), {"title": title, "body": body})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review."""
        shown = self._show(request.number)
        if shown.truth("draft") == draft:
            return
        mutation = _TO_DRAFT if draft else _TO_READY
        answer = self._mutate(mutation, shown.text("node_id"))
        if answer.truth("data", mutation, "pullRequest", "isDraft") != draft:
            raise ForgeRefusedError(f"{mutation}: GitHub left pull request {request.number} as it was")

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Take a label off a pull request. Do nothing if it does not have the label."""
        # GitHub answers 404 both for a label that is not there and for an account that may not see the repository:
        # who must be sure that it is gone reads the pull request again
        with suppress(ForgeMissingError):
            path = f"{self._root}/issues/{request.number}/labels/{quote(label, safe='')}"
            self._client.send("DELETE", path, {})

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        self._client.send("PATCH", self._path(request), {"state": "closed"})

    def report(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler`; its description has 140 characters at most."""
        words = " ".join(verdict.summary.split())
        if len(words) > _LONGEST_DESCRIPTION:
            words = words[: _LONGEST_DESCRIPTION - 1] + "…"
        state = "success" if verdict.passed else "failure"
        status = {"state": state, "context": "reconciler", "description": words}
        self._client.send("POST", f"{self._root}/statuses/{commit}", status)

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request whose head is still `request.commit`. Raises HeadMovedError, ForgeRefusedError.

        The message's first line is the commit's title; a rebase keeps the messages that there are.
        """
        title, _, rest = message.partition("\n")
        words = {} if method == "rebase" else {"commit_title": title, "commit_message": rest.strip()}
        try:
            self._client.send(
                "PUT", f"{self._path(request)}/merge", {"sha": request.commit, "merge_method": method, **words}
            )
        except ForgeRefusedError as error:
            raise _name_merge_refusal(error) from None

    def _show(self, number: int) -> Fields:
        path = f"{self._root}/pulls/{number}"
        return Fields(self._client.get(path), f"GET {path}")

    def _own(self, listed: Iterable[object]) -> list[Fields]:
        requests = [Fields(item, f"GET {self._root}/pulls") for item in listed]
        return [shown for shown in requests if _is_own(shown)]

    def _path(self, request: PullRequest) -> str:
        return f"{self._root}/pulls/{request.number}"

    def _read(self, shown: Fields) -> PullRequest:
        request = _request(shown)
        return replace(request, hold=self._hold(request, shown)) if request.state == "open" else request

    def _hold(self, request: PullRequest, shown: Fields) -> Hold:
        if shown.find("auto_merge") is not None:
            return "auto-merge"
        if request.draft:
            return ""
        updated = shown.moment("updated_at")
        given = self._approvals.are_given(request.number, updated, request.commit, lambda: self._ask_reviewers(request))
        return "approved" if given else ""

    def _ask_reviewers(self, request: PullRequest) -> bool:
        path = f"{self._path(request)}/reviews"
        reviews = self._client.pages(path, {"per_page": 100})
        return _is_approved([Fields(review, f"GET {path}") for review in reviews], request.commit)

    def _label(self, made: PullRequest, labels: tuple[str, ...]) -> None:
        try:
            self._client.send("POST", f"{self._root}/issues/{made.number}/labels", {"labels": list(labels)})
        except (ForgeRefusedError, ForgeMissingError) as error:
            words = f"pull request {made.number} stands, but without its labels: {error.message}"
            raise ForgeRefusedError(words) from None

    def _mutate(self, mutation: str, node: str) -> Fields:
        query = f"mutation($id: ID!) {{ {mutation}(input: {{pullRequestId: $id}}) {{ pullRequest {{ isDraft }} }} }}"
        answer = self._client.send("POST", _graph_of(self._client.api), {"query": query, "variables": {"id": node}})
        if isinstance(answer, dict) and (errors := answer.get("errors")):
            raise self._name_graph_refusal(mutation, errors)
        return Fields(answer, mutation)

    def _name_graph_refusal(self, mutation: str, errors: Any) -> ForgeError:
        # GraphQL refuses with 200 and words of its own
        first = errors[0] if isinstance(errors, list) else errors
        told: Mapping[str, object] = first if isinstance(first, dict) else {}
        words = in_line(f"{mutation}: {told.get('message', 'refused')}")
        match told.get("type"):
            case "RATE_LIMITED":
                return self._client.busy(words)
            case "NOT_FOUND":
                return ForgeMissingError(words)
            case _:
                return ForgeRefusedError(words)


def is_name(name: str) -> bool:
    """Return whether an owner or a repository of GitHub may be called so."""
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def _check_name(name: str) -> None:
    if not is_name(name):
        raise ValueError(f"the owner and the name of a repository at GitHub are letters, digits and -_., not {name!r}")


def _graph_of(api: str) -> str:
    # Enterprise: https://HOST/api/v3 and https://HOST/api/graphql
    return f"{api.removesuffix('/v3')}/graphql"


def _is_own(shown: Fields) -> bool:
    # both sides are compared, and not with our spelling: GitHub ignores case, and follows renames; the repository of
    # a fork that is gone is null
    home = shown.text("base", "repo", "full_name")
    return shown.text("head", "repo", "full_name", default="") == home


def _request(shown: Fields) -> PullRequest:
    return PullRequest(
        number=shown.number("number"),
        url=shown.text("html_url"),
        title=shown.text("title"),
        body=shown.text("body", default=""),
        head=shown.text("head", "ref"),
        base=shown.text("base", "ref"),
        commit=shown.commit("head", "sha"),
        state=_state(shown),
        draft=shown.truth("draft"),
        created=shown.moment("created_at"),
        labels=shown.names("labels", part="name"),
    )


def _state(shown: Fields) -> State:
    if shown.text("merged_at", default=""):
        return "merged"
    return "open" if shown.text("state") == "open" else "closed"


def _is_approved(reviews: Iterable[Fields], commit: CommitId) -> bool:
    # comments leave what their author said before as it was
    latest: dict[str, tuple[str, str]] = {}
    for review in reviews:
        state = review.text("state")
        if state in {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}:
            author = review.text("user", "login", default="")
            latest[author] = (state, review.text("commit_id", default=""))
    said = latest.values()
    return ("APPROVED", commit) in said and all(state != "CHANGES_REQUESTED" for state, _ in said)


def _name_merge_refusal(error: ForgeRefusedError) -> ForgeError:
    if error.status == 409:
        return HeadMovedError(error.message, error.status)
    # somebody else's merge went in at the same time; GitHub says 405 here, too
    if error.status == 405 and "Base branch was modified" in error.message:
        return ForgeUnreachableError(error.message)
    return error
