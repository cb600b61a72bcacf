"""Merge requests of one GitLab project, by its REST API, version 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from reconciler.forge.answers import in_line
from reconciler.forge.approvals import Approvals
from reconciler.forge.errors import ForgeCredentialsError, ForgeRefusedError, HeadMovedError
from reconciler.forge.fields import Fields
from reconciler.forge.http import Client
from reconciler.forge.request import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.forge.wording import GITLAB_DRAFT, with_commands, without_commands
from reconciler.snapshot.objects import CommitId

_LONGEST_DESCRIPTION = 255
_CHECK = "reconciler"
# locked is a request while it is being merged
_STATES: dict[str, State] = {"opened": "open", "locked": "open", "closed": "closed", "merged": "merged"}


class GitLab:
    """The merge requests of a project, named by its full path (peers.md (d)).

    The client's API is `https://HOST/api/v4`, its credentials the header `PRIVATE-TOKEN`: a project access token with
    the scope `api` will do. Requests from forks are left out.

    `hold`: GitLab names no commit with an approval, and whether a push takes approvals away is a setting of the
    project; so "approved" is a request, no draft, that has an approval and lacks none. A place in a merge train reads
    as "auto-merge", since GitLab lists it as such, and "queued" is a request that is being merged right now.

    GitLab learns of a push a moment later: `commit` may still be the head of before. It strips a body's end, and drops
    carriage returns. Lines of a body that would be commands are kept from it.
    """

    def __init__(self, client: Client, project: str) -> None:
        self._client = client
        self._root = f"/projects/{quote(project, safe='')}"
        self._requests = f"{self._root}/merge_requests"
        self._approvals = Approvals(client.clock)

    def open_requests(self) -> Sequence[PullRequest]:
        """Return the open merge requests from branches of this project; approvals are asked for where one changed."""
        found = {item.number("iid"): item for item in self._list({"state": "opened", "sort": "asc", "per_page": 100})}
        self._approvals.keep_only(found)
        return [self._read(found[number]) for number in sorted(found)]

    def request(self, number: int) -> PullRequest:
        """Return one merge request, whatever became of it; its approvals are asked for anew."""
        self._approvals.forget(number)
        path = f"{self._requests}/{number}"
        return self._read(Fields(self._client.get(path), f"GET {path}"))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the merge request of these branches that was opened last; None without one."""
        branches = {"source_branch": head, "target_branch": base, "state": "all"}
        found = self._list({**branches, "sort": "desc", "per_page": 20})
        return self._read(max(found, key=lambda item: item.number("iid"))) if found else None

    def create(self, new: NewRequest) -> PullRequest:
        """Open a merge request. Raises ForgeRefusedError, also when one is open for these branches."""
        body = {
            "source_branch": new.head,
            "target_branch": new.base,
            "title": GITLAB_DRAFT.on(new.title, new.draft),
            "description": without_commands(new.body),
            "remove_source_branch": False,
        }
        labels = {"labels": ",".join(_label(label) for label in new.labels)} if new.labels else {}
        made = self._client.send("POST", self._requests, {**body, **labels}, opens=True)
        return _read(Fields(made, f"POST {self._requests}"))

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Give a merge request another title and body; it stays the draft that `request` says it is."""
        self._edit(request, {"title": GITLAB_DRAFT.on(title, request.draft), "description": without_commands(body)})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a merge request as a draft, or as ready, by its title."""
        self._edit(request, {"title": GITLAB_DRAFT.on(request.title, draft)})

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Take a label off a merge request. Do nothing if it does not have the label."""
        self._edit(request, {"remove_labels": _label(label)})

    def close(self, request: PullRequest) -> None:
        """Close a merge request without merging it."""
        self._edit(request, {"state_event": "close"})

    def report(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the external status `reconciler` of a commit."""
        state = "success" if verdict.passed else "failed"
        status = {"state": state, "name": _CHECK, "description": in_line(verdict.summary)[:_LONGEST_DESCRIPTION]}
        try:
            self._client.send("POST", f"{self._root}/statuses/{commit}", status)
        except ForgeRefusedError as error:
            # some versions refuse to say the same again
            if "Cannot transition status" not in error.message or f"from :{state}" not in error.message:
                raise

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a request whose head is still `request.commit`; there is no rebase. The branch stays.

        Whether a merge makes a merge commit is a setting of the project. Raises HeadMovedError, ForgeRefusedError.
        """
        if method == "rebase":
            raise ForgeRefusedError(
                "GitLab's API does not rebase and merge at once: the method must be merge or squash"
            )
        words = "squash_commit_message" if method == "squash" else "merge_commit_message"
        told = {words: message} if message else {}
        kept = {"squash": method == "squash", "should_remove_source_branch": False}
        try:
            self._client.send("PUT", self._place(request, "/merge"), {"sha": request.commit, **kept, **told})
        except ForgeCredentialsError as error:
            # GitLab says "401" also to an account it knows well that may not push to the base; to others in any call
            self.request(request.number)
            raise ForgeRefusedError(f"{error.message}: this account may not merge into {request.base}") from None
        except ForgeRefusedError as error:
            raise HeadMovedError(error.message, error.status) if error.status == 409 else error from None

    def _edit(self, request: PullRequest, changes: dict[str, str]) -> None:
        self._client.send("PUT", self._place(request), changes)

    def _place(self, request: PullRequest, below: str = "") -> str:
        return f"{self._requests}/{request.number}{below}"

    def _list(self, asked: Mapping[str, str | int]) -> list[Fields]:
        whole: dict[str, str | int] = {"scope": "all", "order_by": "created_at", **asked}
        found = [Fields(item, f"GET {self._requests}") for item in self._client.pages(self._requests, whole)]
        # requests of forks may have a branch of the same name
        return [item for item in found if item.number("source_project_id") == item.number("target_project_id")]

    def _read(self, item: Fields) -> PullRequest:
        request = _read(item)
        return replace(request, hold=self._hold(request, item)) if request.state == "open" else request

    def _hold(self, request: PullRequest, item: Fields) -> Hold:
        if item.text("state") == "locked":
            return "queued"
        if item.truth("merge_when_pipeline_succeeds"):
            return "auto-merge"
        if request.draft:
            return ""
        updated = item.moment("updated_at")
        given = self._approvals.are_given(request.number, updated, request.commit, lambda: self._ask_approvers(request))
        return "approved" if given else ""

    def _ask_approvers(self, request: PullRequest) -> bool:
        path = self._place(request, "/approvals")
        answer = Fields(self._client.get(path), f"GET {path}")
        # without a rule that asks for some, a request is approved from the start, by nobody
        return answer.truth("approved") and bool(answer.find("approved_by"))


def _read(item: Fields) -> PullRequest:
    return PullRequest(
        number=item.number("iid"),
        url=item.text("web_url"),
        title=GITLAB_DRAFT.off(item.text("title")),
        body=with_commands(item.text("description", default="")),
        head=item.text("source_branch"),
        base=item.text("target_branch"),
        # null where the branch was gone before GitLab looked
        commit=CommitId(item.text("sha", default="")),
        state=_STATES.get(item.text("state"), "closed"),
        draft=item.truth("draft"),
        created=item.moment("created_at"),
        labels=item.names("labels"),
    )


def _label(name: str) -> str:
    if "," in name:
        raise ForgeRefusedError(f"a label of GitLab must have no comma: {name!r}")
    return name
