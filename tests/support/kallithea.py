"""Kallithea, a real forge: its server with SQLite in a temporary folder, and a test driver of the forge port.

It behaves differently from the supported forges: its pull requests stay at their first commit, it merges nothing,
and it does not detect merges by other programs.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import (
    ForgeCredentialsError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from reconciler.forge.port import MergeMethod, NewRequest, PullRequest, Verdict
from tests.support.git_environment import HERMETIC

# The path of a Python with Kallithea; docs/how-to/connect-a-forge.md describes how to install one.
PYTHON = os.environ.get("RECONCILER_KALLITHEA", "")
_DRAFT = "[draft] "
_START_SECONDS = 60
_SERVING = re.compile(r"Serving on http://[^\s:]+:(\d+)")
_NUMBER = re.compile(r"/pull-request/(\d+)")


@dataclass(frozen=True)
class Account:
    """An account that may push to Kallithea and call its API."""

    name: str
    password: str
    key: str


@dataclass(frozen=True)
class Kallithea:
    """A running server. All its files are in `folder`."""

    url: str
    folder: Path
    admin: Account

    def call(self, method: str, who: Account | None = None, **arguments: object) -> Any:
        """Call the API as an account, by default as the administrator. Raises ForgeError."""
        return _call(self.url, (who or self.admin).key, method, arguments)

    def create_account(self, name: str) -> Account:
        """Create an account. A new account has only read access."""
        password = f"{name}-password"
        self.call("create_user", username=name, email=f"{name}@example.com", password=password)
        return Account(name, password, _key(self.folder, name))

    def create_repository(self, name: str, *writers: Account) -> Path:
        """Create an empty repository with these accounts as writers; return its path."""
        self.call("create_repo", repo_name=name, repo_type="git")
        for account in writers:
            self.call("grant_user_permission", repoid=name, userid=account.name, perm="repository.write")
        return self.folder / "repositories" / name

    def address(self, repository: str, who: Account) -> str:
        """Return the URL of a repository with the login of an account."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{who.name}:{who.password}@{rest}/{repository}"

    def review(self, number: int, who: Account, status: str = "", close: bool = False) -> None:
        """Comment on a pull request with the status `approved` or `rejected`, and optionally close it."""
        mapping = {"status": status} if status else {}
        self.call("comment_pullrequest", who, pull_request_id=number, comment_msg="seen", close_pr=close, **mapping)


@contextmanager
def serve(folder: Path) -> Iterator[Kallithea]:
    """Start a server on a free local port with its data in a folder. Stop it at the end of the block."""
    # Not resolved, because the Python of a virtual environment is a symbolic link.
    home = Path(PYTHON).absolute().parent
    environment = HERMETIC | {"HOME": str(folder), "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONUNBUFFERED": "1"}

    def run(*command: str) -> None:
        result = subprocess.run(
            [str(home / command[0]), *command[1:]], cwd=folder, env=environment, capture_output=True
        )
        assert result.returncode == 0, (result.stdout + result.stderr).decode()

    admin, repositories = ("admin", "admin-password"), folder / "repositories"
    repositories.mkdir(parents=True)
    run("kallithea-cli", "config-create", "its.ini", "[server:main]", "host=127.0.0.1", "port=0", "threads=4")
    run("kallithea-cli", "db-create", "-c", "its.ini", f"--user={admin[0]}", f"--password={admin[1]}",
        "--email=admin@example.com", f"--repos={repositories}", "--force-yes")  # fmt: skip
    log = folder / "serve.log"
    with log.open("wb") as written:
        command = [str(home / "gearbox"), "serve", "-c", "its.ini"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=written, stderr=subprocess.STDOUT)
    try:
        yield Kallithea(f"http://127.0.0.1:{_port(process, log)}", folder, Account(*admin, _key(folder, admin[0])))
    finally:
        process.terminate()
        process.wait()


def _key(folder: Path, name: str) -> str:
    # The API does not return API keys.
    with closing(sqlite3.connect(folder / "kallithea.db")) as database:
        ((key,),) = database.execute("select api_key from users where username = ?", (name,)).fetchall()
    return str(key)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        match = _SERVING.search(log.read_text(errors="replace"))
        if match:
            return int(match[1])
        time.sleep(0.05)
    raise AssertionError(f"Kallithea does not serve: {log.read_text(errors='replace')}")


class KallitheaForge:
    """One repository on Kallithea. It uses the API, and the web form for operations without an API call.

    A draft has a title with the prefix `[draft]`. `update` creates a new request with a new number for the head of the
    branch, and closes the old request. Kallithea has no labels, no checks and no merge; these calls are refused.
    It has no state "merged": a merged request stays open until a person closes it.
    """

    def __init__(self, url: str, repository: str, who: Account) -> None:
        self._url = url
        self._repository = repository
        self._key = who.key

    def list_open_requests(self) -> Sequence[PullRequest]:
        return [pull_request for pull_request in self._requests() if pull_request.state == "open"]

    def get_request(self, number: int) -> PullRequest:
        return self._read(self._get(number))

    def find(self, head: str, base: str) -> PullRequest | None:
        pull_requests = [
            pull_request for pull_request in self._requests() if (pull_request.head, pull_request.base) == (head, base)
        ]
        return pull_requests[-1] if pull_requests else None

    def create(self, new: NewRequest) -> PullRequest:
        if new.labels:
            raise ForgeRefusedError("Kallithea has no labels")
        standing = self.find(new.head, new.base)
        if standing and standing.state == "open":
            raise ForgeRefusedError(f"#{standing.number} is open from {new.head} to {new.base}")
        branches = self._branches()
        missing = [name for name in (new.head, new.base) if name not in branches]
        if missing:
            raise ForgeRefusedError(f"there is no branch {missing[0]}")
        fields = {
            "org_repo": self._repository,
            "org_ref": f"branch:{new.head}:{branches[new.head]}",
            "other_repo": self._repository,
            "other_ref": f"branch:{new.base}:{branches[new.base]}",
            "pullrequest_title": _title(new.title, new.draft),
            "pullrequest_desc": new.body,
        }
        return self.get_request(self._post("pull-request/new", fields))

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        standing = self._get(request.number)
        head = self._branches().get(request.head)
        moved = {"updaterev": head} if head and head != self._read(standing).commit else {}
        number = self._edit(standing, _title(title, request.draft), body, moved)
        reviewers = [reviewer["username"] for reviewer in standing["reviewers"]]
        if number != request.number and reviewers:
            self._call("edit_reviewers", pull_request_id=number, add=reviewers)
        return self._read(self._get(number))

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        standing = self._get(request.number)
        result = self._read(standing)
        self._edit(standing, _title(result.title, draft), result.body, {})

    def remove_label(self, request: PullRequest, label: str) -> None:
        """Do nothing, because Kallithea has no labels."""

    def close(self, request: PullRequest) -> None:
        self._call("comment_pullrequest", pull_request_id=request.number, close_pr=True)

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        raise ForgeRefusedError("Kallithea has no checks of commits")

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        raise ForgeRefusedError("Kallithea merges nothing: people merge with Git and push")

    def _requests(self) -> list[PullRequest]:
        value = self._call("get_repo", repoid=self._repository, with_pullrequests=True)["pull_requests"]
        return sorted(map(self._read, value), key=lambda pull_request: pull_request.number)

    def _branches(self) -> Mapping[str, str]:
        entry: dict[str, str] = self._call("get_repo", repoid=self._repository, with_revision_names=True)["branches"]
        return entry

    def _get(self, number: int) -> dict[str, Any]:
        output: dict[str, Any] = self._call("get_pullrequest", pullrequest_id=number)
        return output

    def _read(self, mapping: Mapping[str, Any]) -> PullRequest:
        (_, head, commit), (_, base, _) = mapping["org_ref_parts"], mapping["other_ref_parts"]
        created = datetime.fromisoformat(mapping["created_on"]).replace(tzinfo=UTC)
        return PullRequest(
            number=mapping["pull_request_id"],
            url=self._url + mapping["url"],
            title=mapping["title"].removeprefix(_DRAFT),
            body=mapping["description"],
            head=head,
            base=base,
            commit=CommitId(commit),
            state="closed" if mapping["status"] == "closed" else "open",
            draft=mapping["title"].startswith(_DRAFT),
            hold="approved" if _is_approved(mapping["statuses"]) else "",
            created=int(created.timestamp()),
        )

    def _edit(self, standing: Mapping[str, Any], title: str, body: str, more: Mapping[str, str]) -> int:
        # The account in the field `owner` becomes the owner.
        words = {"pullrequest_title": title, "pullrequest_desc": body, "owner": standing["owner"]}
        return self._post(f"pull-request/{standing['pull_request_id']}", {**words, **more})

    def _call(self, method: str, **arguments: object) -> Any:
        return _call(self._url, self._key, method, arguments)

    def _post(self, path: str, fields: Mapping[str, str]) -> int:
        """Send a form. The response redirects to the pull request. Errors are only in the HTML page."""
        bearer = {"Authorization": f"Bearer {self._key}"}
        answer = _send(f"{self._url}/{self._repository}/{path}", data=dict(fields), headers=bearer)
        number = _NUMBER.search(answer.headers.get("location", ""))
        if answer.status_code != 302 or number is None:
            raise ForgeRefusedError(f"Kallithea declined {path} with {answer.status_code}", answer.status_code)
        return int(number[1])


def _title(title: str, draft: bool) -> str:
    return _DRAFT + title if draft else title


def _is_approved(statuses: Sequence[Mapping[str, str]]) -> bool:
    """Return whether at least one person approves and none rejects. The opening counts as "under review"."""
    last = {item["reviewer"]: item["status"] for item in statuses}
    return "approved" in last.values() and "rejected" not in last.values()


def _call(url: str, key: str, method: str, arguments: Mapping[str, object]) -> Any:
    mapping = {"id": 1, "api_key": key, "method": method, "args": arguments}
    answer = _send(f"{url}/_admin/api", json=mapping).json()
    if answer["error"] is not None:
        raise _error(method, answer["error"])
    return answer["result"]


def _send(url: str, **content: Any) -> httpx.Response:
    try:
        answer = httpx.post(url, timeout=60, **content)
    except httpx.TransportError as error:
        raise ForgeUnreachableError(f"Kallithea does not answer: {error}") from error
    if answer.status_code >= 500:
        raise ForgeUnreachableError(f"Kallithea answered {answer.status_code}")
    return answer


def _error(method: str, words: str) -> ForgeError:
    if words == "Invalid API key":
        return ForgeCredentialsError(f"Kallithea, {method}: {words}")
    if words == "Internal server error":
        return ForgeUnreachableError(f"Kallithea, {method}: {words}")
    if words.endswith("does not exist"):
        return ForgeMissingError(f"Kallithea, {method}: {words}")
    return ForgeRefusedError(f"Kallithea, {method}: {words}")
