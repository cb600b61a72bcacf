"""Client for GitHub and GitHub Enterprise Server. It uses the REST API and, to change the draft status, GraphQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
    HeadMovedError,
)
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.port import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.forge.response_cache import ApprovalCache
from reconciler.forge.responses import ResponseFields, to_one_line

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_MAX_DESCRIPTION_CHARACTERS = 140
_TO_READY = "markPullRequestReadyForReview"
_TO_DRAFT = "convertPullRequestToDraft"


class GitHub:
    """The pull requests of one repository on GitHub.

    `PullRequest.hold` is "auto-merge" if auto-merge is enabled. It is "approved" if the head is approved and no
    reviewer requests changes. It is never "queued", because the REST API does not report merge queues. Therefore, a
    push can remove a pull request from a merge queue.
    """

    def __init__(self, client: ForgeClient, owner: str, name: str) -> None:
        _check_name(owner)
        _check_name(name)
        self._client = client.with_headers(HEADERS)
        self._owner = owner
        self._root = f"/repos/{owner}/{name}"
        self._approvals = ApprovalCache(client.clock)

    def list_open_requests(self) -> tuple[PullRequest, ...]:
        """Return the open pull requests from branches of this repository, sorted by number."""
        listed = self._client.get_all_pages(f"{self._root}/pulls", {"state": "open", "per_page": 100})
        items = {item.get_number("number"): item for item in self._select_own(listed)}
        self._approvals.retain(items)
        return tuple(self._read(items[number]) for number in sorted(items))

    def get_request(self, number: int) -> PullRequest:
        """Return one pull request in any state."""
        return self._read(self._fetch_item(number))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the newest pull request of these branches in any state. Return None if no pull request exists."""
        # Read several pull requests, because forks of the same owner match this filter, too.
        named = {"head": f"{self._owner}:{head}", "base": base, "state": "all"}
        listed = self._client.get(
            f"{self._root}/pulls", {**named, "sort": "created", "direction": "desc", "per_page": 10}
        )
        if not isinstance(listed, list):
            raise ForgeAnswerError(f"GET {self._root}/pulls: the response must be a list")
        return next((self._read(item) for item in self._select_own(listed)), None)

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request.

        The labels are set in a second request. If the second request fails, the pull request exists without labels, and
        `find` returns it.

        Raises:
            ForgeRefusedError: A pull request for these branches is already open, or GitHub rejected the labels.
        """
        body = {"title": new.title, "body": new.body, "head": new.head, "base": new.base, "draft": new.draft}
        path = f"{self._root}/pulls"
        request = _read(ResponseFields(self._client.send("POST", path, body, is_new_request=True), f"POST {path}"))
        if new.labels:
            self._add_labels(request, new.labels)
        return request

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Set title and body of a pull request."""
        self._client.send("PATCH", self._build_path(request), {"title": title, "body": body})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review."""
        item = self._fetch_item(request.number)
        if item.get_bool("draft") == draft:
            return
        mutation = _TO_DRAFT if draft else _TO_READY
        answer = self._run_mutation(mutation, item.get_text("node_id"))
        if answer.get_bool("data", mutation, "pullRequest", "isDraft") != draft:
            raise ForgeRefusedError(f"{mutation}: GitHub did not change pull request {request.number}")

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Remove a label from a pull request. Do nothing if the pull request does not have the label."""
        # Ignore status 404, which means a missing label or a repository that the account cannot read. To distinguish
        # these causes, a caller reads the pull request again.
        with suppress(ForgeMissingError):
            path = f"{self._root}/issues/{request.number}/labels/{quote(label, safe='')}"
            self._client.send("DELETE", path, {})

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        self._client.send("PATCH", self._build_path(request), {"state": "closed"})

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler` of a commit. The description of the status is cut after 140 characters."""
        description = " ".join(verdict.summary.split())
        if len(description) > _MAX_DESCRIPTION_CHARACTERS:
            description = description[: _MAX_DESCRIPTION_CHARACTERS - 1] + "…"
        state = "success" if verdict.passed else "failure"
        status = {"state": state, "context": "reconciler", "description": description}
        self._client.send("POST", f"{self._root}/statuses/{commit}", status)

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request if its head is still `request.commit`.

        The first line of `message` is the title of the commit. With the method "rebase", `message` is ignored, and the
        commits keep their messages.

        Raises:
            HeadMovedError: The head of the branch is not `request.commit` any more.
            ForgeRefusedError: GitHub rejected the merge.
        """
        title, _, description = message.partition("\n")
        texts = {} if method == "rebase" else {"commit_title": title, "commit_message": description.strip()}
        try:
            self._client.send(
                "PUT", f"{self._build_path(request)}/merge", {"sha": request.commit, "merge_method": method, **texts}
            )
        except ForgeRefusedError as error:
            raise _classify_merge_error(error) from None

    def _fetch_item(self, number: int) -> ResponseFields:
        path = f"{self._root}/pulls/{number}"
        return ResponseFields(self._client.get(path), f"GET {path}")

    def _select_own(self, listed: Iterable[object]) -> list[ResponseFields]:
        requests = [ResponseFields(item, f"GET {self._root}/pulls") for item in listed]
        return [item for item in requests if _is_own(item)]

    def _build_path(self, request: PullRequest) -> str:
        return f"{self._root}/pulls/{request.number}"

    def _read(self, item: ResponseFields) -> PullRequest:
        request = _read(item)
        return replace(request, hold=self._determine_hold(request, item)) if request.state == "open" else request

    def _determine_hold(self, request: PullRequest, item: ResponseFields) -> Hold:
        if item.find("auto_merge") is not None:
            return "auto-merge"
        if request.draft:
            return ""
        updated = item.get_time("updated_at")
        approved = self._approvals.is_approved(
            request.number, updated, request.commit, lambda: self._fetch_approval(request)
        )
        return "approved" if approved else ""

    def _fetch_approval(self, request: PullRequest) -> bool:
        path = f"{self._build_path(request)}/reviews"
        reviews = self._client.get_all_pages(path, {"per_page": 100})
        return _is_approved([ResponseFields(review, f"GET {path}") for review in reviews], request.commit)

    def _add_labels(self, request: PullRequest, labels: tuple[str, ...]) -> None:
        try:
            self._client.send("POST", f"{self._root}/issues/{request.number}/labels", {"labels": list(labels)})
        except (ForgeRefusedError, ForgeMissingError) as error:
            message = f"the labels of the open pull request {request.number} could not be set: {error.message}"
            raise ForgeRefusedError(message) from None

    def _run_mutation(self, mutation: str, node: str) -> ResponseFields:
        query = f"mutation($id: ID!) {{ {mutation}(input: {{pullRequestId: $id}}) {{ pullRequest {{ isDraft }} }} }}"
        answer = self._client.send(
            "POST", _get_graphql_url(self._client.api), {"query": query, "variables": {"id": node}}
        )
        if isinstance(answer, dict) and (errors := answer.get("errors")):
            raise self._classify_graph_error(mutation, errors)
        return ResponseFields(answer, mutation)

    def _classify_graph_error(self, mutation: str, errors: Any) -> ForgeError:
        # Read the error type from the body, because GraphQL reports errors in a response with status 200.
        first = errors[0] if isinstance(errors, list) else errors
        detail: Mapping[str, object] = first if isinstance(first, dict) else {}
        message = to_one_line(f"{mutation}: {detail.get('message', 'refused')}")
        match detail.get("type"):
            case "RATE_LIMITED":
                return self._client.record_rate_limit(message)
            case "NOT_FOUND":
                return ForgeMissingError(message)
            case _:
                return ForgeRefusedError(message)


def is_name(name: str) -> bool:
    """Return whether a text is a valid name of an owner or repository on GitHub."""
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def _check_name(name: str) -> None:
    if not is_name(name):
        raise ValueError(
            "the owner and the name of a GitHub repository must consist of letters, digits, -, _ and .,"
            f" but is {name!r}"
        )


def _get_graphql_url(api: str) -> str:
    # Remove "/v3", because GitHub Enterprise Server has the REST API at https://HOST/api/v3 and GraphQL at
    # https://HOST/api/graphql.
    return f"{api.removesuffix('/v3')}/graphql"


def _is_own(item: ResponseFields) -> bool:
    # Compare two names from the same response. The name in the settings can differ from them, because GitHub ignores
    # case and follows renames. If a fork was deleted, the head repository is null.
    base_repository = item.get_text("base", "repo", "full_name")
    return item.get_text("head", "repo", "full_name", default="") == base_repository


def _read(item: ResponseFields) -> PullRequest:
    return PullRequest(
        number=item.get_number("number"),
        url=item.get_text("html_url"),
        title=item.get_text("title"),
        body=item.get_text("body", default=""),
        head=item.get_text("head", "ref"),
        base=item.get_text("base", "ref"),
        commit=item.get_commit("head", "sha"),
        state=_get_state(item),
        draft=item.get_bool("draft"),
        created=item.get_time("created_at"),
        labels=item.get_names("labels", field="name"),
    )


def _get_state(item: ResponseFields) -> State:
    if item.get_text("merged_at", default=""):
        return "merged"
    return "open" if item.get_text("state") == "open" else "closed"


def _is_approved(reviews: Iterable[ResponseFields], commit: CommitId) -> bool:
    # Ignore reviews that only comment, because they do not change the previous review of their author.
    latest: dict[str, tuple[str, str]] = {}
    for review in reviews:
        state = review.get_text("state")
        if state in {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}:
            author = review.get_text("user", "login", default="")
            latest[author] = (state, review.get_text("commit_id", default=""))
    verdicts = latest.values()
    return ("APPROVED", commit) in verdicts and all(state != "CHANGES_REQUESTED" for state, _ in verdicts)


def _classify_merge_error(error: ForgeRefusedError) -> ForgeError:
    if error.status == 409:
        return HeadMovedError(error.message, error.status)
    # Another merge changed the base branch at the same time. Return an error that callers retry.
    if error.status == 405 and "Base branch was modified" in error.message:
        return ForgeUnreachableError(error.message)
    return error
