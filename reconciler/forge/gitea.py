"""Client for the pull requests of one repository on Gitea or Forgejo. It uses version 1 of their API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
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
from reconciler.forge.http_client import MAX_PAGES, ForgeClient
from reconciler.forge.port import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.forge.response_cache import ApprovalCache
from reconciler.forge.responses import ResponseFields, to_one_line
from reconciler.forge.text_escaping import GITEA_DRAFT

# The default maximum page size of Gitea.
_PAGE = 50
_BASE_MOVED = "merge push out of date"


class Gitea:
    """The pull requests of one repository. Pull requests from forks and from the AGit flow are omitted.

    The API URL of the client is `https://HOST/api/v1`, and the credentials are in the header `Authorization: token …`.

    `PullRequest.hold` is "approved" if the head is approved and no reviewer requests changes. Gitea does not report
    whether a pull request is set to merge automatically. The prefix `WIP:` in a title marks a draft, as in the default
    settings of Gitea.
    """

    def __init__(self, client: ForgeClient, owner: str, name: str) -> None:
        self._client = client
        self._root = f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
        self._pulls = f"{self._root}/pulls"
        self._approvals = ApprovalCache(client.clock)

    def list_open_requests(self) -> Sequence[PullRequest]:
        """Return the open pull requests from branches of this repository. Fetch only reviews that may have changed."""
        listed = self._create_fields(self._client.get_all_pages(self._pulls, {"state": "open", "limit": _PAGE}))
        items = {item.get_number("number"): item for item in listed if _is_own(item)}
        self._approvals.retain(items)
        return [self._read(items[number]) for number in sorted(items)]

    def get_request(self, number: int) -> PullRequest:
        """Return one pull request in any state."""
        path = f"{self._pulls}/{number}"
        return self._read(ResponseFields(self._client.get(path), f"GET {path}"))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the newest pull request of these branches in any state. Return None if there is no such pull request.

        The method reads the list of all pull requests, because the search by branches returns the oldest pull request.
        Since Gitea 1.24, the list contains only pull requests to the branch `base`.
        """
        numbers: list[int] = []
        candidates: list[ResponseFields] = []
        for page in range(1, MAX_PAGES + 1):
            listed = self._fetch_page({"state": "all", "base_branch": base, "limit": _PAGE, "page": page})
            numbers += [item.get_number("number") for item in listed]
            candidates += [item for item in listed if _is_own(item) and _get_branches(item) == (head, base)]
            # Stop at the first match only if the numbers are in descending order. Gitea does not document the order of
            # the list.
            if not listed or (candidates and all(number > following for number, following in pairwise(numbers))):
                newest = max(candidates, key=lambda item: item.get_number("number"), default=None)
                return None if newest is None else self._read(newest)
        raise ForgeAnswerError(f"GET {self._pulls}: there are more than {MAX_PAGES} pages")

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request.

        Raises:
            ForgeRefusedError: A pull request for these branches is already open, or a label does not exist.
        """
        title = GITEA_DRAFT.apply(new.title, new.draft)
        body = {"head": new.head, "base": new.base, "title": title, "body": new.body}
        labels = {"labels": self._find_label_ids(new.labels)} if new.labels else {}
        response = self._client.send("POST", self._pulls, {**body, **labels}, is_new_request=True)
        return _read(ResponseFields(response, f"POST {self._pulls}"))

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Set title and body of a pull request. For a draft, add the prefix that marks drafts to the title."""
        self._edit(request, {"title": GITEA_DRAFT.apply(title, request.draft), "body": body})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft or as ready for review, by adding or removing the prefix of its title."""
        self._edit(request, {"title": GITEA_DRAFT.apply(request.title, draft)})

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Remove a label from a pull request. Do nothing if the pull request does not have the label."""
        path = f"{self._root}/issues/{request.number}/labels"
        for item in (ResponseFields(label_data, f"GET {path}") for label_data in self._client.get_all_pages(path)):
            # Continue after a match, because a label of the organization and a label of the repository can have the
            # same name.
            if item.get_text("name") == label:
                self._client.send("DELETE", f"{path}/{item.get_number('id')}", {})

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        self._edit(request, {"state": "closed"})

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler` of a commit."""
        state = "success" if verdict.passed else "failure"
        status = {"context": "reconciler", "state": state, "description": to_one_line(verdict.summary)}
        self._client.send("POST", f"{self._root}/statuses/{commit}", status)

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request if its head is still `request.commit`. The branch is not deleted.

        The first line of `message` is the title of the commit. With the method "rebase", `message` is ignored, and the
        commits keep their messages.

        Raises:
            HeadMovedError: The head of the branch is not `request.commit` any more.
            ForgeRefusedError: Gitea rejected the merge, or has not yet finished its check for conflicts after a push.
        """
        if not request.commit:
            # Do not send an empty commit ID, because Gitea ignores it and would merge any head.
            raise HeadMovedError(f"pull request {request.number} has no head commit")
        title, _, description = message.partition("\n")
        texts = {} if method == "rebase" else {"MergeTitleField": title, "MergeMessageField": description.strip()}
        options = {"Do": method, "head_commit_id": request.commit, "delete_branch_after_merge": False}
        try:
            self._client.send("POST", f"{self._pulls}/{request.number}/merge", {**options, **texts})
        except ForgeMissingError as error:
            # Read the pull request again, because Gitea also responds with 404 if the pull request exists but is
            # closed.
            raise self._classify_merge_error(request, error) from None
        except ForgeRefusedError as error:
            # Read the pull request again, because the status 409 has several causes: the head or the base has moved, or
            # there is a conflict.
            raise self._classify_merge_error(request, error) if error.status == 409 else error from None

    def _classify_merge_error(self, request: PullRequest, error: ForgeError) -> ForgeError:
        if _BASE_MOVED in error.message:
            return ForgeUnreachableError(error.message)
        current = self.get_request(request.number)
        if current.commit != request.commit:
            return HeadMovedError(f"{error.message}; the head of the pull request is {current.commit}")
        return (
            error
            if current.state == "open"
            else ForgeRefusedError(f"{error.message}; the pull request is {current.state}")
        )

    def _edit(self, request: PullRequest, changes: Mapping[str, str]) -> None:
        self._client.send("PATCH", f"{self._pulls}/{request.number}", changes)

    def _find_label_ids(self, names: Sequence[str]) -> list[int]:
        path = f"{self._root}/labels"
        listed = [ResponseFields(item, f"GET {path}") for item in self._client.get_all_pages(path, {"limit": _PAGE})]
        ids = {item.get_text("name"): item.get_number("id") for item in listed}
        if missing := [name for name in names if name not in ids]:
            raise ForgeRefusedError(f"the repository must have the requested labels; missing: {missing}")
        return [ids[name] for name in names]

    def _fetch_page(self, parameters: Mapping[str, str | int]) -> list[ResponseFields]:
        listed = self._client.get(self._pulls, parameters)
        if not isinstance(listed, list):
            raise ForgeAnswerError(f"GET {self._pulls}: the response must be a list")
        return self._create_fields(listed)

    def _create_fields(self, listed: Iterable[object]) -> list[ResponseFields]:
        return [ResponseFields(item, f"GET {self._pulls}") for item in listed]

    def _read(self, item: ResponseFields) -> PullRequest:
        request = _read(item)
        is_waiting = request.state == "open" and not request.draft
        return (
            replace(request, hold=self._determine_hold(request, item.get_time("updated_at"))) if is_waiting else request
        )

    def _determine_hold(self, request: PullRequest, updated: int) -> Hold:
        approved = self._approvals.is_approved(
            request.number, updated, request.commit, lambda: self._fetch_approval(request)
        )
        return "approved" if approved else ""

    def _fetch_approval(self, request: PullRequest) -> bool:
        path = f"{self._pulls}/{request.number}/reviews"
        reviews = [ResponseFields(item, f"GET {path}") for item in self._client.get_all_pages(path, {"limit": _PAGE})]
        return _is_approved(reviews, request.commit)


def _read(item: ResponseFields) -> PullRequest:
    title = item.get_text("title")
    head, base = _get_branches(item)
    return PullRequest(
        number=item.get_number("number"),
        url=item.get_text("html_url"),
        title=GITEA_DRAFT.strip(title),
        body=item.get_text("body", default=""),
        head=head,
        base=base,
        commit=CommitId(item.get_text("head", "sha", default="")),
        state=_get_state(item),
        draft=item.get_bool("draft", default=GITEA_DRAFT.matches(title)),
        created=item.get_time("created_at"),
        labels=item.get_names("labels", field="name"),
    )


def _get_branches(item: ResponseFields) -> tuple[str, str]:
    # Read the branch from `label`, because `ref` is refs/pull/N/head after the deletion of the branch.
    return item.get_text("head", "label"), item.get_text("base", "ref")


def _is_own(item: ResponseFields) -> bool:
    return item.get_text("head", "label") != "" and item.get_number("head", "repo_id") == item.get_number(
        "base", "repo_id"
    )


def _get_state(item: ResponseFields) -> State:
    if item.get_bool("merged"):
        return "merged"
    return "open" if item.get_text("state") == "open" else "closed"


def _is_approved(reviews: Iterable[ResponseFields], commit: CommitId) -> bool:
    # Ignore reviews that only comment, because they do not change the previous review of their author.
    latest: dict[str, ResponseFields] = {}
    for review in reviews:
        if review.get_text("state") in {"APPROVED", "REQUEST_CHANGES"}:
            latest[review.get_text("user", "login", default="")] = review
    verdicts = {
        (review.get_text("state"), review.get_text("commit_id", default=""))
        for review in latest.values()
        if not review.get_bool("dismissed", default=False)
    }
    return ("APPROVED", commit) in verdicts and all(state != "REQUEST_CHANGES" for state, _ in verdicts)
