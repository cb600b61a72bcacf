"""The API of Gitea and Forgejo for pull requests, version 1.

It is stricter than Gitea: it refuses unknown fields and parameters, which Gitea ignores, and a pull request without
commits, which Gitea opens. The draft prefix of a title is recognized only in upper case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlencode

from tests.support.fake_forge.core import (
    AlreadyOpenError,
    ConflictError,
    DraftError,
    FakeForge,
    FakePullRequest,
    FakeRepository,
    HeadMovedError,
    NoSuchBranchError,
    NoSuchRequestError,
    NothingToMergeError,
    NotOpenError,
    ReopenError,
    Status,
)
from tests.support.fake_forge.server import Answer, ApiRequest

_LONGEST_TITLE = 255
_MARKS = ("WIP:", "[WIP]")
_SORTS = {"", "oldest", "recentupdate", "leastupdate"}
_REVIEWS = {"CHANGES_REQUESTED": "REQUEST_CHANGES", "COMMENTED": "COMMENT"}
_METHODS = {"merge", "squash", "rebase"}
_LABELS: dict[str, type] = {"labels": list}


class _RefusedError(Exception):
    def __init__(self, status: int, words: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers or {}


@dataclass
class GiteaWire:
    """Answers requests as Gitea does.

    `filters`: whether the list has the parameter `base_branch`, as since version 1.24. `oldest_first`: the default order
    of lists. `base_moves`: the next merge fails because its base moved. `most`: the maximum page size.
    """

    forge: FakeForge
    filters: bool = True
    oldest_first: bool = False
    base_moves: bool = False
    most: int = 50

    def answer(self, requests: ApiRequest) -> Answer:
        """Return the response of Gitea."""
        try:
            self._apply_outage(requests)
            return self._route(requests)
        except _RefusedError as refused:
            mapping = {"message": refused.words, "url": f"{self.forge.url}/api/swagger"}
            return Answer(refused.status, mapping, refused.headers)
        except NoSuchRequestError:
            return self._missing()

    def _missing(self) -> Answer:
        words = "The target couldn't be found."
        return Answer(404, {"errors": None, "message": words, "url": f"{self.forge.url}/api/swagger"})

    def _apply_outage(self, requested_requests: ApiRequest) -> None:
        trouble = self.forge.outage
        if trouble.kind == "down":
            raise _RefusedError(500, "")
        if trouble.kind in {"busy", "spent"}:
            # Gitea has no rate limits. These are the limits of a proxy.
            wait = str(int(trouble.until - self.forge.clock()))
            raise _RefusedError(429, "Too many requests", {"Retry-After": wait})
        if trouble.kind == "forbidden" and requested_requests.method != "GET":
            raise _RefusedError(403, trouble.words)

    def _route(self, value: ApiRequest) -> Answer:
        if not value.headers.get("authorization"):
            raise _RefusedError(401, "token is required")
        if value.headers["authorization"] != f"token {self.forge.token}":
            raise _RefusedError(401, "user does not exist [uid: 0, name: ]")
        for method, pattern, respond in _ROUTES:
            if (match := re.fullmatch(pattern, value.path)) and method == value.method:
                repository = self.forge.repositories.get(f"{unquote(match['owner'])}/{unquote(match['name'])}")
                return self._missing() if repository is None else respond(self, value, repository, match)
        return self._missing()

    def _list(self, entry: ApiRequest, repository: FakeRepository, _: re.Match[str]) -> Answer:
        query = _query(entry, {"state", "sort", "page", "limit", "base_branch"})
        state = _one_of("state", query.get("state", "open"), {"open", "closed", "all"})
        sort = _one_of("sort", query.get("sort", ""), _SORTS)
        chosen = [pull_request for pull_request in repository.requests() if state in {"all", _state(pull_request)}]
        if self.filters and "base_branch" in query:
            chosen = [pull_request for pull_request in chosen if pull_request.base == query["base_branch"]]
        chosen.sort(
            key=lambda pull_request: (pull_request.updated if sort.endswith("update") else 0, pull_request.number)
        )
        if sort == "recentupdate" or (not sort and not self.oldest_first):
            chosen.reverse()
        return self._page(entry, [self._show(repository, pull_request) for pull_request in chosen])

    def _page(self, asked: ApiRequest, items: list[dict[str, Any]]) -> Answer:
        size, page = min(int(asked.query.get("limit", "30")), self.most), int(asked.query.get("page", "1"))
        onward = urlencode(dict(asked.query) | {"page": page + 1})
        is_last = page * size >= len(items)
        link = {} if is_last else {"Link": f'<{self.forge.url}{asked.path}?{onward}>; rel="next"'}
        return Answer(200, items[(page - 1) * size : page * size], {**link, "X-Total-Count": str(len(items))})

    def _create(self, asked: ApiRequest, repository: FakeRepository, _: re.Match[str]) -> Answer:
        fields = _fields(asked, {"head": str, "base": str, "title": str}, {"body": str, **_LABELS})
        head, base, title = fields["head"], fields["base"], fields["title"]
        _check_title(title)
        if head == base:
            raise _RefusedError(422, "Invalid PullRequest: There are no changes between the head and the base")
        try:
            new_pull_request = repository.open(head, base, title, fields.get("body", ""), title.startswith(_MARKS))
        except NoSuchBranchError:
            return self._missing()
        except AlreadyOpenError as error:
            words = f"pull request already exists for these targets [id: {error.number}, issue_id: {error.number}, "
            words += f"head_repo_id: 1, base_repo_id: 1, head_branch: {head}, base_branch: {base}]"
            raise _RefusedError(409, words) from None
        except NothingToMergeError:
            raise _RefusedError(422, "there are no commits to merge") from None
        # Unknown ids are ignored.
        names = {number: name for name, number in repository.labels.items()}
        new_pull_request.labels = [names[number] for number in fields.get("labels", []) if number in names]
        return Answer(201, self._show(repository, new_pull_request))

    def _read(self, asked: ApiRequest, repository: FakeRepository, actual_match: re.Match[str]) -> Answer:
        _query(asked, set())
        return Answer(200, self._show(repository, repository.request(int(actual_match["index"]))))

    def _edit(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        fields = _fields(asked, {}, {"title": str, "body": str, "state": str, "base": str, **_LABELS})
        request = repository.request(int(found["index"]))
        # An empty title leaves the title unchanged.
        if title := fields.get("title"):
            _check_title(title)
            request.title, request.draft = title, title.startswith(_MARKS)
        request.body = fields.get("body", request.body)
        if "state" in fields:
            self._change_state(repository, request, _one_of("state", fields["state"], {"open", "closed"}))
        repository.touch(request)
        return Answer(201, self._show(repository, request))

    def _change_state(self, repository: FakeRepository, request: FakePullRequest, state: str) -> None:
        if request.state == "merged":
            raise _RefusedError(412, "cannot change state of this pull request, it was already merged")
        if state == "closed":
            return repository.close(request)
        try:
            return repository.reopen(request)
        except ReopenError:
            raise _RefusedError(409, "pull request cannot be reopened") from None

    def _merge(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        texts = {"MergeTitleField": str, "MergeMessageField": str, "head_commit_id": str}
        flags = {"delete_branch_after_merge": bool, "merge_when_checks_succeed": bool, "force_merge": bool}
        fields = _fields(asked, {"Do": str}, {**texts, **flags})
        request = repository.request(int(found["index"]))
        method = _one_of("Do", fields["Do"], _METHODS)
        title = fields.get("MergeTitleField", "").strip() or f"Merge pull request '{request.title}' (#{request.number})"
        message = f"{title}\n\n{fields.get('MergeMessageField', '').strip()}".strip()
        if self.base_moves:
            self.base_moves = False
            raise _RefusedError(409, "merge push out of date")
        try:
            # Gitea checks conflicts before a merge request arrives.
            if request.state == "open" and not request.draft and not repository.merges_cleanly(request):
                raise ConflictError
            repository.merge(request.number, method, message, fields.get("head_commit_id", ""))
        except NotOpenError:
            if request.state == "closed":
                return self._missing()
            raise _RefusedError(405, "") from None
        except DraftError:
            raise _RefusedError(405, "Work in progress PRs cannot be merged") from None
        except ConflictError:
            raise _RefusedError(405, "Please try again later") from None
        except HeadMovedError:
            raise _RefusedError(409, "head out of date") from None
        return Answer(200)

    def _reviews(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        _query(asked, {"page", "limit"})
        request = repository.request(int(found["index"]))
        values = [
            {
                "id": number,
                "user": {"login": review.user},
                # A dismissed review keeps its state.
                "state": "APPROVED" if review.state == "DISMISSED" else _REVIEWS.get(review.state, review.state),
                "dismissed": review.state == "DISMISSED",
                "commit_id": review.commit,
                "stale": review.commit != request.commit,
                "submitted_at": _format_time(review.at),
            }
            for number, review in enumerate(request.reviews, 1)
        ]
        return self._page(asked, values)

    def _label_list(self, asked: ApiRequest, repository: FakeRepository, _: re.Match[str]) -> Answer:
        _query(asked, {"page", "limit"})
        return self._page(asked, [{"id": number, "name": name} for name, number in repository.labels.items()])

    def _issue_labels(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        _query(asked, set())
        request = repository.request(int(found["index"]))
        return Answer(200, [{"id": repository.labels[name], "name": name} for name in request.labels])

    def _remove_label(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        request = repository.request(int(found["index"]))
        names = {number: name for name, number in repository.labels.items()}
        name = names.get(int(found["label"]))
        if name is None:
            raise _RefusedError(422, "label does not exist")
        # A label that the pull request does not have is ignored.
        request.labels = [label for label in request.labels if label != name]
        repository.touch(request)
        return Answer(204)

    def _status(self, asked: ApiRequest, repository: FakeRepository, found: re.Match[str]) -> Answer:
        fields = _fields(asked, {"state": str}, {"context": str, "description": str, "target_url": str})
        state = _one_of("state", fields["state"], {"pending", "success", "error", "failure", "warning"})
        if not repository.has_commit(found["sha"]):
            return self._missing()
        context, description = fields.get("context", "default"), fields.get("description", "")
        repository.set_status(found["sha"], Status(context, state, description, fields.get("target_url")))
        return Answer(201, {"status": state, "context": context, "description": description})

    def _show(self, repository: FakeRepository, request: FakePullRequest) -> dict[str, Any]:
        has_branch = repository.branch(request.head) is not None
        return {
            "id": repository.number * 1000 + request.number,
            "number": request.number,
            "html_url": f"{self.forge.url}/{repository.path}/pulls/{request.number}",
            "title": request.title,
            "body": request.body,
            "labels": [{"id": repository.labels[name], "name": name} for name in request.labels],
            "state": _state(request),
            "draft": request.draft,
            "merged": request.state == "merged",
            "merge_commit_sha": request.merge_commit or None,
            "created_at": _format_time(request.created),
            "updated_at": _format_time(request.updated),
            "base": {"label": request.base, "ref": request.base, "sha": request.ground, "repo_id": repository.number},
            "head": {
                "label": request.head,
                "ref": request.head if has_branch else f"refs/pull/{request.number}/head",
                "sha": request.commit,
                # The repository id of a deleted fork is -1.
                "repo_id": -1 if request.from_fork else repository.number,
            },
        }


_REPOSITORY = r"/api/v1/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)"
_PULL = rf"{_REPOSITORY}/pulls/(?P<index>\d+)"
_ROUTES: list[tuple[str, str, Callable[[GiteaWire, ApiRequest, FakeRepository, re.Match[str]], Answer]]] = [
    ("GET", f"{_REPOSITORY}/pulls", GiteaWire._list),
    ("POST", f"{_REPOSITORY}/pulls", GiteaWire._create),
    ("GET", _PULL, GiteaWire._read),
    ("PATCH", _PULL, GiteaWire._edit),
    ("POST", f"{_PULL}/merge", GiteaWire._merge),
    ("GET", f"{_PULL}/reviews", GiteaWire._reviews),
    ("GET", f"{_REPOSITORY}/labels", GiteaWire._label_list),
    ("GET", rf"{_REPOSITORY}/issues/(?P<index>\d+)/labels", GiteaWire._issue_labels),
    ("DELETE", rf"{_REPOSITORY}/issues/(?P<index>\d+)/labels/(?P<label>\d+)", GiteaWire._remove_label),
    ("POST", rf"{_REPOSITORY}/statuses/(?P<sha>[^/]+)", GiteaWire._status),
]


def _state(request: FakePullRequest) -> str:
    return "open" if request.state == "open" else "closed"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_title(title: str) -> None:
    if len(title) > _LONGEST_TITLE:
        raise _RefusedError(422, "[Title]: MaxSize")


def _fields(requests: ApiRequest, required: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    if not requests.has_json():
        raise _RefusedError(422, "[]: Empty Content-Type")
    body = json.loads(requests.body or b"{}")
    kinds = {**required, **optional}
    words = [f"[{name}]: Required" for name in required if not body.get(name)]
    words += [f"[{name}]: Unknown" for name in body if name not in kinds]
    words += [f"[{name}]: Kind" for name, value in body.items() if not isinstance(value, kinds.get(name, object))]
    if words:
        raise _RefusedError(422, ", ".join(words))
    return dict(body)


def _query(requests: ApiRequest, known: set[str]) -> Mapping[str, str]:
    if unknown := sorted(set(requests.query) - known):
        raise _RefusedError(422, f"unknown parameters: {unknown}")
    return requests.query


def _one_of(name: str, value: str, allowed: set[str]) -> str:
    if value not in allowed:
        raise _RefusedError(422, f"[{name}]: In")
    return value
