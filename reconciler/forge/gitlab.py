"""Client for the merge requests of one GitLab project. It uses version 4 of the REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeCredentialsError, ForgeRefusedError, HeadMovedError
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.port import Hold, MergeMethod, NewRequest, PullRequest, State, Verdict
from reconciler.forge.response_cache import ApprovalCache
from reconciler.forge.responses import ResponseFields, to_one_line
from reconciler.forge.text_escaping import GITLAB_DRAFT, escape_commands, unescape_commands

_MAX_DESCRIPTION_CHARACTERS = 255
_CHECK = "reconciler"
# Treat "locked" as open, because a merge request has this state while its merge is running.
_STATES: dict[str, State] = {"opened": "open", "locked": "open", "closed": "closed", "merged": "merged"}


class GitLab:
    """The merge requests of one project, which is identified by its full path. Merge requests from forks are omitted.

    The API URL of the client is `https://HOST/api/v4`, and the credentials are in the header `PRIVATE-TOKEN`. A project
    access token with the scope `api` is sufficient.

    Values of `PullRequest.hold`:

    - "approved": the merge request is not a draft, has all required approvals, and has at least one approval. GitLab
      does not report the approved commit. A setting of the project determines whether a push removes approvals.
    - "auto-merge": auto-merge is enabled, or the merge request is in a merge train.
    - "queued": the merge is running.

    GitLab processes a push with a delay. Therefore, `PullRequest.commit` can be the previous head. GitLab removes
    carriage returns from a body, and whitespace at its end.
    """

    def __init__(self, client: ForgeClient, project: str) -> None:
        self._client = client
        self._root = f"/projects/{quote(project, safe='')}"
        self._requests = f"{self._root}/merge_requests"
        self._approvals = ApprovalCache(client.clock)

    def list_open_requests(self) -> Sequence[PullRequest]:
        """Return the open merge requests from branches of this project. Fetch only approvals that may have changed."""
        items = {
            item.get_number("iid"): item for item in self._list({"state": "opened", "sort": "asc", "per_page": 100})
        }
        self._approvals.retain(items)
        return [self._read(items[number]) for number in sorted(items)]

    def get_request(self, number: int) -> PullRequest:
        """Return one merge request in any state, with its current approvals."""
        self._approvals.discard(number)
        path = f"{self._requests}/{number}"
        return self._read(ResponseFields(self._client.get(path), f"GET {path}"))

    def find(self, head: str, base: str) -> PullRequest | None:
        """Return the newest merge request of these branches in any state. Return None if there is no such merge
        request.
        """
        branches = {"source_branch": head, "target_branch": base, "state": "all"}
        items = self._list({**branches, "sort": "desc", "per_page": 20})
        return self._read(max(items, key=lambda item: item.get_number("iid"))) if items else None

    def create(self, new: NewRequest) -> PullRequest:
        """Open a merge request.

        Raises:
            ForgeRefusedError: GitLab rejected the merge request, for example because a merge request for these branches
                is already open.
        """
        body = {
            "source_branch": new.head,
            "target_branch": new.base,
            "title": GITLAB_DRAFT.apply(new.title, new.draft),
            "description": escape_commands(new.body),
            "remove_source_branch": False,
        }
        labels = {"labels": ",".join(_check_label(label) for label in new.labels)} if new.labels else {}
        response = self._client.send("POST", self._requests, {**body, **labels}, is_new_request=True)
        return _read(ResponseFields(response, f"POST {self._requests}"))

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        """Set title and body of a merge request. For a draft, add the prefix that marks drafts to the title."""
        self._edit(request, {"title": GITLAB_DRAFT.apply(title, request.draft), "description": escape_commands(body)})
        return replace(request, title=title, body=body)

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        """Mark a merge request as a draft or as ready, by adding or removing the prefix of its title."""
        self._edit(request, {"title": GITLAB_DRAFT.apply(request.title, draft)})

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Remove a label from a merge request. Do nothing if the merge request does not have the label."""
        self._edit(request, {"remove_labels": _check_label(label)})

    def close(self, request: PullRequest) -> None:
        """Close a merge request without merging it."""
        self._edit(request, {"state_event": "close"})

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        """Set the commit status `reconciler` of a commit."""
        state = "success" if verdict.passed else "failed"
        status = {
            "state": state,
            "name": _CHECK,
            "description": to_one_line(verdict.summary)[:_MAX_DESCRIPTION_CHARACTERS],
        }
        try:
            self._client.send("POST", f"{self._root}/statuses/{commit}", status)
        except ForgeRefusedError as error:
            # Some versions reject a status that equals the current status. Ignore only this error.
            if "Cannot transition status" not in error.message or f"from :{state}" not in error.message:
                raise

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        """Merge a merge request if its head is still `request.commit`. The branch is not deleted.

        A setting of the project determines whether GitLab creates a merge commit. The method "rebase" is not supported.

        Raises:
            HeadMovedError: The head of the branch is not `request.commit` any more.
            ForgeRefusedError: GitLab rejected the merge, or the method is "rebase".
        """
        if method == "rebase":
            raise ForgeRefusedError(
                "the API of GitLab cannot rebase and merge in one request: the method must be merge or squash"
            )
        key = "squash_commit_message" if method == "squash" else "merge_commit_message"
        texts = {key: message} if message else {}
        options = {"squash": method == "squash", "should_remove_source_branch": False}
        try:
            self._client.send("PUT", self._build_path(request, "/merge"), {"sha": request.commit, **options, **texts})
        except ForgeCredentialsError as error:
            # Send a read request, because GitLab also responds with 401 if a valid account has no permission to push to
            # the base. The read request raises an error if the credentials are invalid.
            self.get_request(request.number)
            raise ForgeRefusedError(
                f"{error.message}: this account has no permission to merge into {request.base}"
            ) from None
        except ForgeRefusedError as error:
            raise HeadMovedError(error.message, error.status) if error.status == 409 else error from None

    def _edit(self, request: PullRequest, changes: dict[str, str]) -> None:
        self._client.send("PUT", self._build_path(request), changes)

    def _build_path(self, request: PullRequest, suffix: str = "") -> str:
        return f"{self._requests}/{request.number}{suffix}"

    def _list(self, parameters: Mapping[str, str | int]) -> list[ResponseFields]:
        query: dict[str, str | int] = {"scope": "all", "order_by": "created_at", **parameters}
        items = [
            ResponseFields(item, f"GET {self._requests}") for item in self._client.get_all_pages(self._requests, query)
        ]
        # Omit merge requests from forks, because a fork can have a branch with the same name.
        return [item for item in items if item.get_number("source_project_id") == item.get_number("target_project_id")]

    def _read(self, item: ResponseFields) -> PullRequest:
        request = _read(item)
        return replace(request, hold=self._determine_hold(request, item)) if request.state == "open" else request

    def _determine_hold(self, request: PullRequest, item: ResponseFields) -> Hold:
        if item.get_text("state") == "locked":
            return "queued"
        if item.get_bool("merge_when_pipeline_succeeds"):
            return "auto-merge"
        if request.draft:
            return ""
        updated = item.get_time("updated_at")
        approved = self._approvals.is_approved(
            request.number, updated, request.commit, lambda: self._fetch_approval(request)
        )
        return "approved" if approved else ""

    def _fetch_approval(self, request: PullRequest) -> bool:
        path = self._build_path(request, "/approvals")
        answer = ResponseFields(self._client.get(path), f"GET {path}")
        # Require an approver, because without an approval rule, GitLab reports each merge request as approved.
        return answer.get_bool("approved") and bool(answer.find("approved_by"))


def _read(item: ResponseFields) -> PullRequest:
    return PullRequest(
        number=item.get_number("iid"),
        url=item.get_text("web_url"),
        title=GITLAB_DRAFT.strip(item.get_text("title")),
        body=unescape_commands(item.get_text("description", default="")),
        head=item.get_text("source_branch"),
        base=item.get_text("target_branch"),
        # Accept null, because GitLab returns null if the branch was deleted before GitLab processed the push.
        commit=CommitId(item.get_text("sha", default="")),
        state=_STATES.get(item.get_text("state"), "closed"),
        draft=item.get_bool("draft"),
        created=item.get_time("created_at"),
        labels=item.get_names("labels"),
    )


def _check_label(name: str) -> str:
    if "," in name:
        raise ForgeRefusedError(f"a label on GitLab must not contain a comma: {name!r}")
    return name
