"""The REST API of GitLab, version 4, for merge requests of projects.

It is stricter than GitLab: it refuses unknown fields and parameters, which GitLab ignores, and merge requests
without commits, which GitLab opens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

_LONGEST = 255
_DRAFT = re.compile(r"(\[draft\]|\(draft\)|draft:)", re.IGNORECASE)
_STATES = {"open": "opened", "closed": "closed", "merged": "merged"}
_LIST = {"state", "scope", "order_by", "sort", "source_branch", "target_branch", "per_page", "page", "pagination"}
_TEXTS: dict[str, type] = {
    "description": str,
    "labels": str,
    "remove_labels": str,
    "remove_source_branch": bool,
    "squash": bool,
}


class _RefusedError(Exception):
    def __init__(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.answer = Answer(status, content, headers or {})


@dataclass
class GitLabWire:
    """Answers requests as GitLab does.

    `approvals_required` is a rule of all projects, `may_merge` the permission of the account. `commands` contains the quick
    actions from descriptions, `merging` the requests with a merge in progress. With `keyset`, lists use a cursor instead of
    pages. `most` is the maximum page size.
    """

    forge: FakeForge
    approvals_required: int = 0
    may_merge: bool = True
    keyset: bool = False
    most: int = 100
    commands: list[str] = field(default_factory=list)
    merging: set[int] = field(default_factory=set)

    def answer(self, requests: ApiRequest) -> Answer:
        """Return the response of GitLab."""
        try:
            self._apply_outage(requests)
            return self._route(requests)
        except _RefusedError as refused:
            return refused.answer
        except NoSuchRequestError:
            return Answer(404, {"message": "404 Not found"})

    def _apply_outage(self, requested_requests: ApiRequest) -> None:
        trouble, text = self.forge.outage, {"Content-Type": "text/plain"}
        if trouble.kind == "down":
            raise _RefusedError(502, b"<!DOCTYPE html><title>GitLab is not responding (502)</title>", text)
        if trouble.kind in {"busy", "spent"}:
            limits = {"RateLimit-Remaining": "0", "RateLimit-Reset": str(int(trouble.until))}
            wait = {"Retry-After": str(int(trouble.until - self.forge.clock()))} if trouble.kind == "busy" else {}
            raise _RefusedError(429, b"Retry later\n", text | limits | wait)
        if trouble.kind == "forbidden" and requested_requests.method != "GET":
            raise _RefusedError(403, {"message": f"403 Forbidden - {trouble.words}"})

    def _route(self, value: ApiRequest) -> Answer:
        if value.headers.get("private-token") != self.forge.token:
            raise _RefusedError(401, {"message": "401 Unauthorized"})
        for method, pattern, respond in _ROUTES:
            if (match := re.fullmatch(pattern, value.path)) and method == value.method:
                return respond(self, value, self._project(match["project"]), match)
        raise _RefusedError(404, {"error": "404 Not Found"})

    def _project(self, name: str) -> FakeRepository:
        known = {
            str(fake_repository.number): fake_repository for fake_repository in self.forge.repositories.values()
        } | self.forge.repositories
        if (project := known.get(unquote(name))) is None:
            raise _RefusedError(404, {"message": "404 Project Not Found"})
        return project

    def _list(self, entry: ApiRequest, project: FakeRepository, _: re.Match[str]) -> Answer:
        query = _query(entry, _LIST | {"cursor"})
        state = _one_of("state", query.get("state", "all"), {"opened", "closed", "locked", "merged", "all"})
        _one_of("scope", query.get("scope", "all"), {"all", "created_by_me", "assigned_to_me"})
        order = _one_of("order_by", query.get("order_by", "created_at"), {"created_at", "updated_at"})
        chosen = [pull_request for pull_request in project.requests() if state in {"all", self._state(pull_request)}]
        for name, attribute in (("source_branch", "head"), ("target_branch", "base")):
            if name in query:
                chosen = [pull_request for pull_request in chosen if getattr(pull_request, attribute) == query[name]]
        chosen.sort(key=lambda one: (one.created if order == "created_at" else one.updated, one.number))
        if _one_of("sort", query.get("sort", "desc"), {"asc", "desc"}) == "desc":
            chosen.reverse()
        return self._page(entry, query, [self._show(project, item) for item in chosen])

    def _page(self, asked: ApiRequest, query: Mapping[str, str], items: list[dict[str, Any]]) -> Answer:
        size, page = min(int(query.get("per_page", "20")), self.most), int(query.get("page", "1"))
        start = int(query["cursor"]) if "cursor" in query else (page - 1) * size
        onward = {"pagination": "keyset", "cursor": start + size} if self.keyset else {"page": page + 1}
        place = f"{self.forge.url}{asked.path}?{urlencode(dict(asked.query) | onward)}"
        links = [f'<{place}>; rel="next"'] if start + size < len(items) else []
        links += [f'<{self.forge.url}{asked.path}>; rel="first"']
        return Answer(200, items[start : start + size], {"Link": ", ".join(links), "X-Per-Page": str(size)})

    def _create(self, asked: ApiRequest, project: FakeRepository, _: re.Match[str]) -> Answer:
        fields = _fields(asked, {"title": str, "source_branch": str, "target_branch": str}, _TEXTS)
        head, base, title = fields["source_branch"], fields["target_branch"], fields["title"]
        _check_title(title)
        if head == base:
            raise _RefusedError(422, {"message": ["You can't use same project/branch for source and target"]})
        try:
            new_pull_request = project.open(head, base, title, "", bool(_DRAFT.match(title)))
        except NoSuchBranchError as error:
            name = {"head": "source_branch", "base": "target_branch"}[error.which]
            raise _RefusedError(400, {"message": {name: ["does not exist"]}}) from None
        except AlreadyOpenError as error:
            words = f"Another open merge request already exists for this source branch: !{error.number}"
            raise _RefusedError(409, {"message": [words]}) from None
        except NothingToMergeError:
            raise _RefusedError(400, {"message": {"base": ["there are no commits to merge"]}}) from None
        self._write(project, new_pull_request, fields)
        return Answer(201, self._show(project, new_pull_request))

    def _read(self, asked: ApiRequest, project: FakeRepository, actual_match: re.Match[str]) -> Answer:
        _query(asked, set())
        return Answer(200, self._show(project, project.request(int(actual_match["iid"]))))

    def _edit(self, asked: ApiRequest, project: FakeRepository, found: re.Match[str]) -> Answer:
        fields = _fields(asked, {}, _TEXTS | {"title": str, "state_event": str})
        request = project.request(int(found["iid"]))
        if not fields:
            raise _RefusedError(400, {"error": "assignee_id, description, title are missing, at least one is needed"})
        if "title" in fields:
            _check_title(fields["title"])
            request.title, request.draft = fields["title"], bool(_DRAFT.match(fields["title"]))
        self._write(project, request, fields)
        match _one_of("state_event", fields.get("state_event", ""), {"close", "reopen", ""}):
            case "close":
                project.close(request)
            case "reopen":
                self._reopen(project, request)
        project.touch(request)
        return Answer(200, self._show(project, request))

    def _reopen(self, project: FakeRepository, request: FakePullRequest) -> None:
        try:
            project.reopen(request)
        except ReopenError:
            raise _RefusedError(422, {"message": ["Another open merge request already exists"]}) from None

    def _write(self, project: FakeRepository, request: FakePullRequest, fields: Mapping[str, Any]) -> None:
        if "labels" in fields:
            request.labels = [name.strip() for name in fields["labels"].split(",") if name.strip()]
            for name in request.labels:
                project.label(name)
        deleted = {name.strip() for name in fields.get("remove_labels", "").split(",")}
        request.labels = [name for name in request.labels if name not in deleted]
        if "description" in fields:
            request.body = self._run_quick_actions(project, request, fields["description"])

    def _run_quick_actions(self, project: FakeRepository, request: FakePullRequest, body: str) -> str:
        remaining, fenced = [], False
        for line in body.replace("\r", "").split("\n"):
            fenced ^= line.startswith("```")
            if not fenced and (command := re.match(r"/([a-z_]+)", line)):
                self.commands.append(line)
                if command[1] == "close":
                    project.close(request)
                continue
            remaining.append(line)
        return "\n".join(remaining).rstrip()

    def _merge(self, asked: ApiRequest, project: FakeRepository, found: re.Match[str]) -> Answer:
        texts = {"sha": str, "merge_commit_message": str, "squash_commit_message": str}
        fields = _fields(asked, {}, {**texts, "squash": bool, "should_remove_source_branch": bool})
        request = project.request(int(found["iid"]))
        if not self.may_merge:
            raise _RefusedError(401, {"message": "401 Unauthorized"})
        method = "squash" if fields.get("squash") else "merge"
        usual = f"Merge branch '{request.head}' into '{request.base}'"
        try:
            # GitLab compares the head last.
            if request.state == "open" and not request.draft and not project.merges_cleanly(request):
                raise ConflictError
            project.merge(request.number, method, fields.get(f"{method}_commit_message", usual), fields.get("sha", ""))
        except (NotOpenError, DraftError):
            raise _RefusedError(405, {"message": "405 Method Not Allowed"}) from None
        except ConflictError:
            raise _RefusedError(422, {"message": "Branch cannot be merged"}) from None
        except HeadMovedError:
            words = f"SHA does not match HEAD of source branch: {request.commit}"
            raise _RefusedError(409, {"message": words}) from None
        return Answer(200, self._show(project, request))

    def _approvals(self, asked: ApiRequest, project: FakeRepository, found: re.Match[str]) -> Answer:
        _query(asked, set())
        mapping = {review.user: review.state for review in project.request(int(found["iid"])).reviews}
        values = [user for user, state in mapping.items() if state == "APPROVED"]
        left = max(self.approvals_required - len(values), 0)
        counts = {"approvals_required": self.approvals_required, "approvals_left": left}
        return Answer(200, {"approved": not left, "approved_by": [{"user": {"username": u}} for u in values], **counts})

    def _status(self, asked: ApiRequest, project: FakeRepository, found: re.Match[str]) -> Answer:
        texts = {"name": str, "context": str, "description": str, "target_url": str, "ref": str}
        fields = _fields(asked, {"state": str}, texts)
        state = _one_of("state", fields["state"], {"pending", "running", "success", "failed", "canceled", "skipped"})
        name, description = fields.get("name", fields.get("context", "default")), fields.get("description", "")
        if not project.has_commit(found["sha"]):
            raise _RefusedError(404, {"message": "404 Commit Not Found"})
        if len(description) > _LONGEST:
            words = "is too long (maximum is 255 characters)"
            raise _RefusedError(400, {"message": {"description": [words]}})
        known = project.status(found["sha"], name)
        if known and known.state == state:
            raise _RefusedError(400, {"message": f"Cannot transition status via :{state} from :{state}"})
        project.set_status(found["sha"], Status(name, state, description, fields.get("target_url")))
        return Answer(201, {"status": state, "name": name, "sha": found["sha"], "description": description})

    def _state(self, request: FakePullRequest) -> str:
        return "locked" if request.number in self.merging else _STATES[request.state]

    def _show(self, project: FakeRepository, request: FakePullRequest) -> dict[str, Any]:
        return {
            "id": project.number * 1000 + request.number,
            "iid": request.number,
            "project_id": project.number,
            "title": request.title,
            "description": request.body or None,
            "state": self._state(request),
            "created_at": _format_time(request.created),
            "updated_at": _format_time(request.updated),
            "target_branch": request.base,
            "source_branch": request.head,
            # A fork has a project id, too.
            "source_project_id": 1_000_000 if request.from_fork else project.number,
            "target_project_id": project.number,
            "author": {"username": self.forge.user},
            "labels": sorted(request.labels),
            "draft": request.draft,
            "merge_when_pipeline_succeeds": request.auto_merge,
            "sha": request.commit,
            "merge_commit_sha": request.merge_commit or None,
            "web_url": f"{self.forge.url}/{project.path}/-/merge_requests/{request.number}",
        }


_PROJECT = r"/api/v4/projects/(?P<project>[^/]+)"
_REQUEST = rf"{_PROJECT}/merge_requests/(?P<iid>\d+)"
_ROUTES: list[tuple[str, str, Callable[[GitLabWire, ApiRequest, FakeRepository, re.Match[str]], Answer]]] = [
    ("GET", f"{_PROJECT}/merge_requests", GitLabWire._list),
    ("POST", f"{_PROJECT}/merge_requests", GitLabWire._create),
    ("GET", _REQUEST, GitLabWire._read),
    ("PUT", _REQUEST, GitLabWire._edit),
    ("PUT", f"{_REQUEST}/merge", GitLabWire._merge),
    ("GET", f"{_REQUEST}/approvals", GitLabWire._approvals),
    ("POST", rf"{_PROJECT}/statuses/(?P<sha>[^/]+)", GitLabWire._status),
]


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _check_title(title: str) -> None:
    if not title.strip():
        raise _RefusedError(400, {"error": "title is empty"})
    if len(title) > _LONGEST:
        raise _RefusedError(400, {"message": {"title": ["is too long (maximum is 255 characters)"]}})


def _fields(requests: ApiRequest, required: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    if not requests.has_json():
        raise _RefusedError(406, {"error": "The requested content-type is not supported."})
    body = json.loads(requests.body or b"{}")
    kinds = {**required, **optional}
    words = [f"{name} is missing" for name in required if not body.get(name)]
    words += [f"{name} is not known" for name in body if name not in kinds]
    words += [f"{name} is invalid" for name, value in body.items() if not isinstance(value, kinds.get(name, object))]
    if words:
        raise _RefusedError(400, {"error": ", ".join(words)})
    return dict(body)


def _query(requests: ApiRequest, known: set[str]) -> Mapping[str, str]:
    if unknown := sorted(set(requests.query) - known):
        raise _RefusedError(400, {"error": f"{', '.join(unknown)} is not known"})
    return requests.query


def _one_of(name: str, value: str, allowed: set[str]) -> str:
    if value not in allowed:
        raise _RefusedError(400, {"error": f"{name} does not have a valid value"})
    return value
