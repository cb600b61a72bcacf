"""The API of GitHub: REST version 2022-11-28, GraphQL for draft state, tokens of accounts and of Apps.

It is stricter than GitHub: it refuses unknown fields and parameters, which GitHub ignores, and requests without
the documented headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import jwt

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

_DOCS = "https://docs.github.com/rest"
_LONGEST_TITLE = 256
_LONGEST_BODY = 65536
_LONGEST_DESCRIPTION = 140
_TOKEN_SECONDS = 3600
_MUTATION = re.compile(
    r"mutation\s*\(\s*\$(?P<variable>\w+)\s*:\s*ID!\s*\)\s*\{\s*"
    r"(?P<name>markPullRequestReadyForReview|convertPullRequestToDraft)"
    r"\s*\(\s*input\s*:\s*\{\s*pullRequestId\s*:\s*\$(?P=variable)\s*\}\s*\)"
    r"\s*\{\s*pullRequest\s*\{\s*isDraft\s*\}\s*\}\s*\}"
)
_OPTIONAL: dict[str, type | tuple[type, ...]] = {"title": str, "body": (str, type(None)), "base": str, "state": str}

Fields = Mapping[str, type | tuple[type, ...]]


@dataclass
class FakeApp:
    """A GitHub App that is installed for all repositories: its public key, its issued tokens and their limits."""

    client_id: str
    public_key: bytes
    installation: int = 4711
    issued: dict[str, float] = field(default_factory=dict)
    limits: list[dict[str, Any]] = field(default_factory=list)


class _RefusedError(Exception):
    def __init__(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.answer = Answer(status, content, headers or {})


class GitHubWire:
    """Answers requests as GitHub does; with the `prefix` `/api/v3` as an Enterprise server does.

    `methods`: the merge methods that its repositories permit.
    """

    def __init__(self, forge: FakeForge, prefix: str = "", app: FakeApp | None = None) -> None:
        self._forge = forge
        self._prefix = prefix
        self._app = app
        self.methods = {"merge", "squash", "rebase"}
        self.drafts = True

    @property
    def forge(self) -> FakeForge:
        return self._forge

    def answer(self, requests: ApiRequest) -> Answer:
        """Return the response of GitHub."""
        try:
            self._apply_outage(requests)
            self._check_headers(requests)
            return self._route(requests)
        except _RefusedError as refused:
            return refused.answer
        except NoSuchRequestError:
            return Answer(404, {"message": "Not Found", "documentation_url": _DOCS, "status": "404"})

    def _apply_outage(self, requested_requests: ApiRequest) -> None:
        trouble = self._forge.outage
        if trouble.kind == "down":
            raise _RefusedError(503, b"<!DOCTYPE html><title>Unicorn!</title>", {"Content-Type": "text/html"})
        if trouble.kind == "busy":
            words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            seconds = str(int(trouble.until - self._forge.clock()))
            raise _RefusedError(403, {"message": words, "documentation_url": _DOCS}, {"Retry-After": seconds})
        if trouble.kind == "spent":
            limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(trouble.until))}
            raise _RefusedError(403, {"message": "API rate limit exceeded for user ID 1."}, limits)
        if trouble.kind == "forbidden" and requested_requests.method != "GET":
            raise _RefusedError(403, {"message": trouble.words, "documentation_url": _DOCS})

    def _check_headers(self, entry: ApiRequest) -> None:
        if not entry.headers.get("user-agent"):
            raise _RefusedError(403, b"Request forbidden by administrative rules. Set a User-Agent header.")
        if entry.headers.get("accept") != "application/vnd.github+json":
            raise _RefusedError(415, {"message": "Unsupported 'Accept' header. Must accept 'application/json'."})
        if entry.headers.get("x-github-api-version") != "2022-11-28":
            raise _RefusedError(400, {"message": "The API version is missing or not supported."})
        if entry.method != "GET" and entry.body and not entry.has_json():
            raise _RefusedError(415, {"message": "The body must be JSON."})

    def _route(self, asked: ApiRequest) -> Answer:
        graph = "/api/graphql" if self._prefix else "/graphql"
        if (asked.method, asked.path) == ("POST", graph):
            self._check_token(asked)
            return self._graph(asked)
        path = asked.path.removeprefix(self._prefix)
        if asked.path.startswith(self._prefix + "/"):
            for method, pattern, respond in _ROUTES:
                if (match := re.fullmatch(pattern, path)) and method == asked.method:
                    return respond(self, asked, match)
        raise _RefusedError(404, {"message": "Not Found", "documentation_url": _DOCS, "status": "404"})

    # Authentication.

    def _check_token(self, asked: ApiRequest) -> None:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if not token:
            raise _RefusedError(401, {"message": "Requires authentication", "documentation_url": _DOCS})
        issued = self._app.issued if self._app else {}
        known = token == self._forge.token or issued.get(token, 0.0) > self._forge.clock()
        if scheme.lower() not in {"bearer", "token"} or not known:
            raise _RefusedError(401, {"message": "Bad credentials", "documentation_url": _DOCS, "status": "401"})

    def _check_app(self, asked: ApiRequest) -> FakeApp:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if self._app is None or scheme != "Bearer":
            raise _RefusedError(401, {"message": "A JSON web token could not be decoded"})
        try:
            # The clock of the forge is used, not the clock of the machine.
            claims = jwt.decode(
                token, self._app.public_key, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
            )
        except jwt.InvalidTokenError:
            raise _RefusedError(401, {"message": "A JSON web token could not be decoded"}) from None
        now = self._forge.clock()
        if claims.get("iss") != self._app.client_id:
            raise _RefusedError(401, {"message": "'Issuer' claim ('iss') must be an Integer or a client ID"})
        if not isinstance(claims.get("iat"), int) or claims["iat"] > now:
            raise _RefusedError(401, {"message": "'Issued at' claim ('iat') must be an Integer in the past"})
        if not isinstance(claims.get("exp"), int) or not now < claims["exp"] <= claims["iat"] + 600:
            raise _RefusedError(401, {"message": "'Expiration time' claim ('exp') is too far in the future"})
        return self._app

    def _repository(self, asked: ApiRequest, actual_match: re.Match[str]) -> FakeRepository:
        self._check_token(asked)
        repository = self._forge.repositories.get(f"{actual_match['owner']}/{actual_match['name']}")
        if repository is None or not self._is_permitted(asked, actual_match["name"]):
            raise _RefusedError(404, {"message": "Not Found", "documentation_url": _DOCS, "status": "404"})
        return repository

    def _is_permitted(self, asked: ApiRequest, name: str) -> bool:
        """Return whether the token is valid for a repository. GitHub does not report repositories of other tokens."""
        _, _, token = asked.headers.get("authorization", "").partition(" ")
        if self._app is None or token not in self._app.issued:
            return True
        limits = self._app.limits[[*self._app.issued].index(token)]
        return name in limits.get("repositories", [name])

    # Apps.

    def _installation(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        app = self._check_app(asked)
        if f"{found['owner']}/{found['name']}" not in self._forge.repositories:
            raise _RefusedError(404, {"message": "Not Found", "documentation_url": _DOCS, "status": "404"})
        return Answer(200, {"id": app.installation, "app_id": 1, "target_type": "Organization"})

    def _access_token(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        app = self._check_app(asked)
        if int(found["id"]) != app.installation:
            raise _RefusedError(404, {"message": "Not Found", "documentation_url": _DOCS, "status": "404"})
        app.limits.append(_fields(asked, {}, {"repositories": list, "permissions": dict}))
        token, until = f"ghs_secret{len(app.issued) + 1}", self._forge.clock() + _TOKEN_SECONDS
        app.issued[token] = until
        return Answer(
            201, {"token": token, "expires_at": _format_time(until), "permissions": {"pull_requests": "write"}}
        )

    # Pull requests.

    def _list(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        query = _query(asked, {"state", "head", "base", "sort", "direction", "per_page", "page"})
        state, sort = query.get("state", "open"), query.get("sort", "created")
        _one_of("state", state, {"open", "closed", "all"})
        _one_of("sort", sort, {"created", "updated"})
        direction = query.get("direction", "desc" if sort == "created" else "asc")
        _one_of("direction", direction, {"asc", "desc"})
        chosen = [
            pull_request
            for pull_request in repository.requests()
            if state == "all" or (state == "open") == (pull_request.state == "open")
        ]
        # GitHub ignores a head filter without "user:" and lists all pull requests.
        if ":" in (head := query.get("head", "")):
            chosen = [pull_request for pull_request in chosen if _label(repository, pull_request) == head]
        if base := query.get("base"):
            chosen = [pull_request for pull_request in chosen if pull_request.base == base]
        by_date = {
            "created": lambda value: (value.created, value.number),
            "updated": lambda value: (value.updated, value.number),
        }
        chosen.sort(key=by_date[sort], reverse=direction == "desc")
        return self._page(asked, query, [self._pull(repository, pull_request) for pull_request in chosen])

    def _create(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        text = (str, type(None))
        fields = _fields(
            asked,
            {"title": str, "head": str, "base": str},
            {"body": text, "draft": bool, "maintainer_can_modify": bool},
        )
        _check_lengths(fields)
        if fields.get("draft") and not self.drafts:
            raise _RefusedError(422, _invalid("Draft pull requests are not supported in this repository."))
        head = fields["head"].removeprefix(f"{found['owner']}:")
        try:
            new_pull_request = repository.open(
                head, fields["base"], fields["title"], fields.get("body") or "", fields.get("draft", False)
            )
        except NoSuchBranchError as error:
            problem = {"resource": "PullRequest", "field": error.which, "code": "invalid"}
            raise _RefusedError(422, {"message": "Validation Failed", "errors": [problem]}) from None
        except AlreadyOpenError:
            words = f"A pull request already exists for {found['owner']}:{head}."
            raise _RefusedError(422, _invalid(words)) from None
        except NothingToMergeError:
            raise _RefusedError(422, _invalid(f"No commits between {fields['base']} and {head}")) from None
        return Answer(201, self._pull(repository, new_pull_request, whole=True))

    def _show(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        return Answer(200, self._pull(repository, repository.request(int(found["number"])), whole=True))

    def _edit(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        request = repository.request(int(found["number"]))
        fields = _fields(asked, {}, _OPTIONAL)
        _check_lengths(fields)
        if "base" in fields and repository.branch(fields["base"]) is None:
            problem = {"resource": "PullRequest", "field": "base", "code": "invalid"}
            raise _RefusedError(422, {"message": "Validation Failed", "errors": [problem]})
        self._change_state(repository, request, fields.get("state"))
        request.title = fields.get("title", request.title)
        request.body = (fields["body"] or "") if "body" in fields else request.body
        request.base = fields.get("base", request.base)
        repository.touch(request)
        return Answer(200, self._pull(repository, request, whole=True))

    def _change_state(self, repository: FakeRepository, request: FakePullRequest, state: str | None) -> None:
        if state is not None:
            _one_of("state", state, {"open", "closed"})
        if state == "closed":
            repository.close(request)
        elif state == "open":
            try:
                repository.reopen(request)
            except ReopenError:
                words = "state cannot be changed. The pull request cannot be reopened."
                raise _RefusedError(422, _invalid(words)) from None

    def _merge(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        request = repository.request(int(found["number"]))
        fields = _fields(asked, {}, {"commit_title": str, "commit_message": str, "sha": str, "merge_method": str})
        method = fields.get("merge_method", "merge")
        _one_of("merge_method", method, {"merge", "squash", "rebase"})
        if method not in self.methods:
            raise _RefusedError(405, {"message": f"{method.capitalize()} merges are not allowed on this repository."})
        try:
            merged = repository.merge(
                request.number, method, self._message(request, fields, method), fields.get("sha", "")
            )
        except DraftError:
            raise _RefusedError(405, {"message": "Pull Request is still a draft"}) from None
        except (NotOpenError, ConflictError):
            raise _RefusedError(405, {"message": "Pull Request is not mergeable"}) from None
        except HeadMovedError:
            words = "Head branch was modified. Review and try the merge again."
            raise _RefusedError(409, {"message": words}) from None
        return Answer(200, {"sha": merged, "merged": True, "message": "Pull Request successfully merged"})

    def _message(self, request: FakePullRequest, fields: Mapping[str, str], method: str) -> str:
        usual = (
            f"{request.title} (#{request.number})" if method == "squash" else f"Merge pull request #{request.number}"
        )
        subject = fields.get("commit_title") or usual
        return f"{subject}\n\n{fields.get('commit_message') or request.title}".strip()

    def _reviews(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        request = repository.request(int(found["number"]))
        query = _query(asked, {"per_page", "page"})
        values = [
            {
                "id": number,
                "user": {"login": review.user},
                "state": review.state,
                "commit_id": review.commit,
                "submitted_at": _format_time(review.at),
            }
            for number, review in enumerate(request.reviews, 1)
        ]
        return self._page(asked, query, values)

    def _label(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        request = repository.request(int(found["number"]))
        names = _fields(asked, {"labels": list}, {})["labels"]
        if not all(isinstance(name, str) and name for name in names):
            raise _RefusedError(422, _invalid("Could not resolve to a node with the global id of a label."))
        for name in names:
            repository.label(name)
        request.labels += [name for name in names if name not in request.labels]
        repository.touch(request)
        return Answer(200, [{"name": name} for name in request.labels])

    def _remove_label(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        request = repository.request(int(found["number"]))
        name = unquote(found["label"])
        if name not in request.labels:
            raise _RefusedError(404, {"message": "Label does not exist", "documentation_url": _DOCS, "status": "404"})
        request.labels.remove(name)
        repository.touch(request)
        return Answer(200, [{"name": label} for label in request.labels])

    def _status(self, asked: ApiRequest, found: re.Match[str]) -> Answer:
        repository = self._repository(asked, found)
        text = (str, type(None))
        fields = _fields(asked, {"state": str}, {"target_url": text, "description": text, "context": str})
        _one_of("state", fields["state"], {"error", "failure", "pending", "success"})
        if not repository.has_commit(found["sha"]):
            raise _RefusedError(422, {"message": f"No commit found for SHA: {found['sha']}"})
        description = fields.get("description") or ""
        if len(description) > _LONGEST_DESCRIPTION:
            raise _RefusedError(422, _invalid("description is too long (maximum is 140 characters)"))
        context = fields.get("context", "default")
        repository.set_status(found["sha"], Status(context, fields["state"], description, fields.get("target_url")))
        return Answer(201, {"state": fields["state"], "context": context, "description": description})

    # GraphQL.

    def _graph(self, asked: ApiRequest) -> Answer:
        body = _fields(asked, {"query": str}, {"variables": dict})
        mutation = _MUTATION.fullmatch(body["query"].strip())
        if mutation is None:
            return Answer(200, {"errors": [{"message": "Parse error on the query"}]})
        node = body.get("variables", {}).get(mutation["variable"], "")
        result = re.fullmatch(r"PR_(\d+)_(\d+)", str(node))
        repositories = {
            fake_repository.number: fake_repository for fake_repository in self._forge.repositories.values()
        }
        if result is None or int(result[1]) not in repositories:
            return _graph_error("NOT_FOUND", f"Could not resolve to a node with the global id of '{node}'")
        repository = repositories[int(result[1])]
        request = repository.request(int(result[2]))
        if request.state != "open":
            return _graph_error("UNPROCESSABLE", "The pull request is closed")
        request.draft = mutation["name"] == "convertPullRequestToDraft"
        repository.touch(request)
        return Answer(200, {"data": {mutation["name"]: {"pullRequest": {"isDraft": request.draft}}}})

    # Response formats.

    def _page(self, asked: ApiRequest, query: Mapping[str, str], items: list[dict[str, Any]]) -> Answer:
        size = min(_count(query, "per_page", 30), 100)
        page, last = _count(query, "page", 1), max(-(-len(items) // size), 1)
        places = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page >= last:
            places = {name: at for name, at in places.items() if name in {"prev", "first"}}
        if page == 1:
            places = {name: at for name, at in places.items() if name in {"next", "last"}}
        rest = "".join(f"{name}={value}&" for name, value in asked.query.items() if name != "page")
        links = [f'<{self._forge.url}{asked.path}?{rest}page={at}>; rel="{name}"' for name, at in places.items()]
        return Answer(200, items[(page - 1) * size : page * size], {"Link": ", ".join(links)} if links else {})

    def _pull(self, repository: FakeRepository, request: FakePullRequest, whole: bool = False) -> dict[str, Any]:
        owner = repository.path.partition("/")[0]
        fork = request.from_fork or repository.path
        # The repository of a deleted fork is null.
        home = None if fork.endswith("/") else {"full_name": fork, "fork": bool(request.from_fork)}
        shown: dict[str, Any] = {
            "id": repository.number * 1000 + request.number,
            "node_id": f"PR_{repository.number}_{request.number}",
            "number": request.number,
            "url": f"{self._forge.url}{self._prefix}/repos/{repository.path}/pulls/{request.number}",
            "html_url": f"{self._forge.url}/{repository.path}/pull/{request.number}",
            "state": "open" if request.state == "open" else "closed",
            "draft": request.draft,
            "locked": False,
            "title": request.title,
            "body": request.body or None,
            "user": {"login": self._forge.user},
            "labels": [{"name": name} for name in request.labels],
            "created_at": _format_time(request.created),
            "updated_at": _format_time(request.updated),
            "closed_at": _format_time(request.ended) if request.state != "open" else None,
            "merged_at": _format_time(request.ended) if request.state == "merged" else None,
            "merge_commit_sha": request.merge_commit or None,
            "head": {
                "label": _label(repository, request),
                "ref": request.head,
                "sha": request.commit,
                "repo": home,
            },
            "base": {
                "label": f"{owner}:{request.base}",
                "ref": request.base,
                "sha": request.ground,
                "repo": {"full_name": repository.path, "fork": False},
            },
            "auto_merge": {"merge_method": "merge", "enabled_by": {"login": "ada"}} if request.auto_merge else None,
        }
        return shown | ({"merged": request.state == "merged"} if whole else {})


_REPOSITORY = r"/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)"
_NUMBER = r"(?P<number>\d+)"
_ROUTES: list[tuple[str, str, Callable[[GitHubWire, ApiRequest, re.Match[str]], Answer]]] = [
    ("GET", f"{_REPOSITORY}/pulls", GitHubWire._list),
    ("POST", f"{_REPOSITORY}/pulls", GitHubWire._create),
    ("GET", f"{_REPOSITORY}/pulls/{_NUMBER}", GitHubWire._show),
    ("PATCH", f"{_REPOSITORY}/pulls/{_NUMBER}", GitHubWire._edit),
    ("PUT", f"{_REPOSITORY}/pulls/{_NUMBER}/merge", GitHubWire._merge),
    ("GET", f"{_REPOSITORY}/pulls/{_NUMBER}/reviews", GitHubWire._reviews),
    ("POST", f"{_REPOSITORY}/issues/{_NUMBER}/labels", GitHubWire._label),
    ("DELETE", f"{_REPOSITORY}/issues/{_NUMBER}/labels/(?P<label>[^/]+)", GitHubWire._remove_label),
    ("POST", f"{_REPOSITORY}/statuses/(?P<sha>[0-9a-f]+)", GitHubWire._status),
    ("GET", f"{_REPOSITORY}/installation", GitHubWire._installation),
    ("POST", r"/app/installations/(?P<id>\d+)/access_tokens", GitHubWire._access_token),
]


def _label(repository: FakeRepository, request: FakePullRequest) -> str:
    return f"{(request.from_fork or repository.path).partition('/')[0]}:{request.head}"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _invalid(words: str) -> dict[str, Any]:
    problem = {"resource": "PullRequest", "code": "custom", "message": words}
    return {"message": "Validation Failed", "errors": [problem], "documentation_url": _DOCS, "status": "422"}


def _graph_error(kind: str, words: str) -> Answer:
    return Answer(200, {"data": None, "errors": [{"type": kind, "path": ["x"], "message": words}]})


def _fields(requests: ApiRequest, required: Fields, optional: Fields) -> dict[str, Any]:
    try:
        body = json.loads(requests.body or b"{}")
    except ValueError:
        raise _RefusedError(400, {"message": "Problems parsing JSON"}) from None
    if not isinstance(body, dict):
        raise _RefusedError(400, {"message": "Body should be a JSON object"})
    words = [f'"{name}" wasn\'t supplied.' for name in required if name not in body]
    words += [f'"{name}" is not a permitted key.' for name in body if name not in {**required, **optional}]
    kinds = {**required, **optional}
    words += [f"For 'properties/{name}', {body[name]!r} is of a wrong type." for name in body
              if name in kinds and not isinstance(body[name], kinds[name])]  # fmt: skip
    if words:
        raise _RefusedError(422, {"message": "Invalid request.\n\n" + "\n".join(words), "documentation_url": _DOCS})
    return body


def _check_lengths(fields: Mapping[str, Any]) -> None:
    if "title" in fields and not fields["title"].strip():
        problem = {"resource": "PullRequest", "field": "title", "code": "missing_field"}
        raise _RefusedError(422, {"message": "Validation Failed", "errors": [problem]})
    for name, most in (("title", _LONGEST_TITLE), ("body", _LONGEST_BODY)):
        if len(fields.get(name) or "") > most:
            raise _RefusedError(422, _invalid(f"{name} is too long (maximum is {most} characters)"))


def _query(requests: ApiRequest, known: set[str]) -> Mapping[str, str]:
    if unknown := sorted(set(requests.query) - known):
        raise _RefusedError(422, {"message": f"Invalid request.\n\n{unknown} are not known parameters."})
    return requests.query


def _one_of(name: str, value: str, allowed: set[str]) -> None:
    if value not in allowed:
        raise _RefusedError(422, _invalid(f"{name} must be one of {sorted(allowed)}, but is {value!r}"))


def _count(query: Mapping[str, str], name: str, usual: int) -> int:
    value = query.get(name, str(usual))
    return int(value) if value.isdigit() and int(value) else usual
