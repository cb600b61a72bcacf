"""Pull requests of one repository at Gitea or Forgejo, by their API, version 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
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
from reconciler.forge.http import MOST_PAGES, Client
from reconciler.forge.request import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.forge.wording import GITEA_DRAFT
from reconciler.snapshot.objects import CommitId

# the most that an instance gives unless its owner says otherwise
_PAGE = 50
_BASE_MOVED = "merge push out of date"


class Gitea:
    """The pull requests of a repository (peers.md (d)).

    The client's API is `https://HOST/api/v1`, its credentials the header `Authorization: token …`. Requests from forks
    and those of AGit, which have no branch, are left out.

    A pull request holds when its head is approved and nobody asks for changes. Whether it is set to merge by itself
    Gitea does not tell. Drafts are marked by the title, `WIP:`, which is among what an instance takes for such a mark
    unless its owner took it away.
    """

    def __init__(self, client: Client, owner: str, name: str) -> None:
        self._client = client
        self._root = f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
        self._pulls = f"{self._root}/pulls"
        self._approvals = Approvals(client.clock)

    def open_requests(self) -> Sequence[PullRequest]:
        """Return the open pull requests from branches of this repository; reviews are asked for where one changed."""
        listed = self._fields(self._client.pages(self._pulls, {"state": "open", "limit": _PAGE}))
        found = {item.number("number"): item for item in listed if _is_own(item)}
        self._approvals.keep_only(found)
        return [self._read(found[number]) for number in sorted(found)]

    def request(self, number: int) -> PullRequest:
        """Return one pull request, whatever became of it."""
        path = f"{self._pulls}/{number}"
        return self._read(Fields(self._client.get(path), f"GET {path}"))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the pull request of these branches that was opened last, whatever became of it; None without one.

        Gitea finds one by its branches, too, but of several the first. So the list is read up to it, of this base alone
        since Gitea 1.24, of all before that.
        """
        numbers: list[int] = []
        found: list[Fields] = []
        for page in range(1, MOST_PAGES + 1):
            listed = self._page({"state": "all", "base_branch": base, "limit": _PAGE, "page": page})
            numbers += [item.number("number") for item in listed]
            found += [item for item in listed if _is_own(item) and _branches(item) == (head, base)]
            # nothing promises that the newest comes first
            if not listed or (found and all(one > other for one, other in pairwise(numbers))):
                newest = max(found, key=lambda item: item.number("number"), default=None)
                return None if newest is None else self._read(newest)
        raise ForgeAnswerError(f"GET {self._pulls}: there are more than {MOST_PAGES} pages")

    def create(self, new: NewRequest) -> PullRequest:
        """Open a pull request. Raises ForgeRefusedError: one is open for these branches, or a label is not there."""
        title = GITEA_DRAFT.on(new.title, new.draft)
        body = {"head": new.head, "base": new.base, "title": title, "body": new.body}
        labels = {"labels": self._label_ids(new.labels)} if new.labels else {}
        made = self._client.send("POST", self._pulls, {**body, **labels}, opens=True)
        return _read(Fields(made, f"POST {self._pulls}"))

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Give a pull request another title and body; it stays the draft that `request` says it is."""
        self._edit(request, {"title": GITEA_DRAFT.on(title, request.draft), "body": body})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a pull request as a draft, or as ready for review, by its title."""
        self._edit(request, {"title": GITEA_DRAFT.on(request.title, draft)})

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Take a label off a pull request. Do nothing if it does not have the label."""
        path = f"{self._root}/issues/{request.number}/labels"
        for item in (Fields(one, f"GET {path}") for one in self._client.pages(path)):
            # labels of the organization have the same name as those of the repository may have
            if item.text("name") == label:
                self._client.send("DELETE", f"{path}/{item.number('id')}", {})

    def close(self, request: PullRequest) -> None:
        """Close a pull request without merging it."""
        self._edit(request, {"state": "closed"})

    def report(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler`."""
        state = "success" if verdict.passed else "failure"
        status = {"context": "reconciler", "state": state, "description": in_line(verdict.summary)}
        self._client.send("POST", f"{self._root}/statuses/{commit}", status)

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a pull request whose head is still `request.commit`; the branch stays.

        The message's first line is the commit's title; a rebase keeps the messages that there are. Raises
        HeadMovedError, ForgeRefusedError; also the latter while Gitea is still at looking for conflicts after a push.
        """
        if not request.commit:
            # an empty id would be no condition at all
            raise HeadMovedError(f"pull request {request.number} has no head any more")
        title, _, rest = message.partition("\n")
        words = {} if method == "rebase" else {"MergeTitleField": title, "MergeMessageField": rest.strip()}
        how = {"Do": method, "head_commit_id": request.commit, "delete_branch_after_merge": False}
        try:
            self._client.send("POST", f"{self._pulls}/{request.number}/merge", {**how, **words})
        except ForgeMissingError as error:
            # also said of a pull request that is closed
            raise self._name_merge_refusal(request, error) from None
        except ForgeRefusedError as error:
            # 409 is the head, the base and every conflict
            raise self._name_merge_refusal(request, error) if error.status == 409 else error from None

    def _name_merge_refusal(self, request: PullRequest, error: ForgeError) -> ForgeError:
        if _BASE_MOVED in error.message:
            return ForgeUnreachableError(error.message)
        now = self.request(request.number)
        if now.commit != request.commit:
            return HeadMovedError(f"{error.message}: the head is {now.commit}")
        return error if now.state == "open" else ForgeRefusedError(f"{error.message}: it is {now.state}")

    def _edit(self, request: PullRequest, changes: Mapping[str, str]) -> None:
        self._client.send("PATCH", f"{self._pulls}/{request.number}", changes)

    def _label_ids(self, names: Sequence[str]) -> list[int]:
        path = f"{self._root}/labels"
        listed = [Fields(item, f"GET {path}") for item in self._client.pages(path, {"limit": _PAGE})]
        known = {item.text("name"): item.number("id") for item in listed}
        if missing := [name for name in names if name not in known]:
            raise ForgeRefusedError(f"the repository must have the labels that are asked for; it has no {missing}")
        return [known[name] for name in names]

    def _page(self, asked: Mapping[str, str | int]) -> list[Fields]:
        listed = self._client.get(self._pulls, asked)
        if not isinstance(listed, list):
            raise ForgeAnswerError(f"GET {self._pulls}: the answer must be a list")
        return self._fields(listed)

    def _fields(self, listed: Iterable[object]) -> list[Fields]:
        return [Fields(item, f"GET {self._pulls}") for item in listed]

    def _read(self, item: Fields) -> PullRequest:
        request = _read(item)
        is_waiting = request.state == "open" and not request.draft
        return replace(request, hold=self._hold(request, item.moment("updated_at"))) if is_waiting else request

    def _hold(self, request: PullRequest, updated: int) -> Hold:
        given = self._approvals.are_given(request.number, updated, request.commit, lambda: self._ask_reviewers(request))
        return "approved" if given else ""

    def _ask_reviewers(self, request: PullRequest) -> bool:
        path = f"{self._pulls}/{request.number}/reviews"
        reviews = [Fields(item, f"GET {path}") for item in self._client.pages(path, {"limit": _PAGE})]
        return _is_approved(reviews, request.commit)


def _read(item: Fields) -> PullRequest:
    title = item.text("title")
    head, base = _branches(item)
    return PullRequest(
        number=item.number("number"),
        url=item.text("html_url"),
        title=GITEA_DRAFT.off(title),
        body=item.text("body", default=""),
        head=head,
        base=base,
        commit=CommitId(item.text("head", "sha", default="")),
        state=_state(item),
        draft=item.truth("draft", default=GITEA_DRAFT.is_on(title)),
        created=item.moment("created_at"),
        labels=item.names("labels", part="name"),
    )


def _branches(item: Fields) -> tuple[str, str]:
    # `ref` is refs/pull/N/head once the branch is gone
    return item.text("head", "label"), item.text("base", "ref")


def _is_own(item: Fields) -> bool:
    return item.text("head", "label") != "" and item.number("head", "repo_id") == item.number("base", "repo_id")


def _state(item: Fields) -> State:
    if item.truth("merged"):
        return "merged"
    return "open" if item.text("state") == "open" else "closed"


def _is_approved(reviews: Iterable[Fields], commit: CommitId) -> bool:
    # comments leave what their author said before as it was
    latest: dict[str, Fields] = {}
    for review in reviews:
        if review.text("state") in {"APPROVED", "REQUEST_CHANGES"}:
            latest[review.text("user", "login", default="")] = review
    said = {
        (review.text("state"), review.text("commit_id", default=""))
        for review in latest.values()
        if not review.truth("dismissed", default=False)
    }
    return ("APPROVED", commit) in said and all(state != "REQUEST_CHANGES" for state, _ in said)
