"""Git over HTTP: credentials from a file, no secrets in messages, and errors that state who must act next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.git.errors import (
    AccessDeniedError,
    GitError,
    RateLimitedError,
    RepositoryMissingError,
    UnreachableError,
    UrlRefusedError,
)
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushDone, PushFailed, PushUnit, RefUpdate
from reconciler.git.remote_credentials import CredentialSource, RemoteCredentials
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import commit_files, make_bare, read_refs, write_hook

HTTP = ("http://127.0.0.1:*",)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    repository = make_bare(tmp_path / "served" / "a.git", http__receivepack="true")
    commit_files(repository, "refs/heads/main", {"a": b"1"})
    with serve(GitHost(tmp_path / "served")) as running:
        yield running


def open_mirror(tmp_path: Path, url: str, credentials: str = "") -> Mirror:
    file = tmp_path / "it's secret"
    file.write_text(credentials)
    source = CredentialSource("git.credentials_file", credentials_file=str(file), is_default=True)
    options = GitOptions(allowed_urls=HTTP, credentials=RemoteCredentials(default=source))
    return Mirror.open(tmp_path / "cache", url, options)


@pytest.mark.slow
def test_fetch_and_push(tmp_path: Path, host: GitHost) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/a.git")
    mirror.fetch("target")
    commits = mirror.write_commits([NewCommit((), (), str(n), 0) for n in range(300)])

    report = mirror.push(
        [PushUnit(f"{n:03}", (RefUpdate(f"refs/heads/d/{n}", new, None),)) for n, new in enumerate(commits)]
    )

    assert report.is_complete
    assert len(read_refs(tmp_path / "served" / "a.git")) == 301


def test_a_login_is_used_and_written_nowhere(tmp_path: Path, host: GitHost) -> None:
    host.login = "robot:hunter2"
    plain, with_login = f"{host.url}/a.git", f"http://robot:hunter2@127.0.0.1:{host.port}/a.git"
    mirror = open_mirror(tmp_path, plain, f"{with_login}\n")

    mirror.fetch("config")

    assert list(mirror.refs()) == ["refs/heads/main"]
    assert mirror.url == plain
    written = b"".join(file.read_bytes() for file in mirror.folder.rglob("*") if file.is_file())
    assert b"hunter2" not in written
    assert "hunter2" not in str(mirror.folder)


def test_a_refused_login_stays_in_the_file(tmp_path: Path, host: GitHost) -> None:
    host.login = "robot:changed"
    line = f"http://robot:hunter2@127.0.0.1:{host.port}\n"
    mirror = open_mirror(tmp_path, f"{host.url}/a.git", line)

    with pytest.raises(AccessDeniedError):
        mirror.fetch("config")

    assert (tmp_path / "it's secret").read_text() == line


@pytest.mark.parametrize(
    ("status", "login", "path", "kind", "step"),
    [
        pytest.param(0, "robot:changed", "a.git", AccessDeniedError, "human", id="wrong-password"),
        pytest.param(403, "", "a.git", AccessDeniedError, "human", id="forbidden"),
        pytest.param(404, "", "a.git", RepositoryMissingError, "human", id="not-found"),
        pytest.param(429, "", "a.git", RateLimitedError, "wait", id="too-many-requests"),
        pytest.param(503, "", "a.git", UnreachableError, "retry", id="host-is-down"),
    ],
)
def test_errors_name_the_next_step_and_no_secret(
    tmp_path: Path, host: GitHost, status: int, login: str, path: str, kind: type[GitError], step: str
) -> None:
    host.status, host.login = status, login
    credentials = f"http://robot:hunt%40er2@127.0.0.1:{host.port}\n"

    with pytest.raises(kind) as caught:
        open_mirror(tmp_path, f"{host.url}/{path}", credentials).fetch("config")

    assert caught.value.next_step == step
    assert f"127.0.0.1:{host.port}/{path}" in caught.value.message
    for secret in ("hunt@er2", "hunt%40er2", "robot"):
        assert secret not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_closed_port(tmp_path: Path, host: GitHost) -> None:
    with pytest.raises(UnreachableError):
        open_mirror(tmp_path, "http://127.0.0.1:1/a.git").fetch("config")


def test_a_host_that_goes_down_fails_the_push_for_a_retry(tmp_path: Path, host: GitHost) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/a.git")
    mirror.fetch("target")
    commits = mirror.write_commits([NewCommit((), (), str(n), 0) for n in range(3)])
    host.status = 503
    host.seen.clear()

    report = mirror.push([PushUnit(str(n), (RefUpdate(f"refs/heads/d/{n}", c, None),)) for n, c in enumerate(commits)])

    assert {o.error.next_step for o in report.outcomes.values() if isinstance(o, PushFailed)} == {"retry"}
    assert len(report.outcomes) == 3
    assert len(host.seen) < 8  # fewer requests than units


def test_reading_allowed_and_writing_forbidden_is_for_a_human(tmp_path: Path, host: GitHost) -> None:
    repository = make_bare(tmp_path / "served" / "readonly.git", http__receivepack="false")
    commit_files(repository, "refs/heads/main", {"a": b"1"})
    mirror = open_mirror(tmp_path, f"{host.url}/readonly.git")
    mirror.fetch("target")
    commits = mirror.write_commits([NewCommit((), (), str(n), 0) for n in range(2)])

    report = mirror.push([PushUnit(str(n), (RefUpdate(f"refs/heads/d/{n}", c, None),)) for n, c in enumerate(commits)])

    assert [o.error.next_step for o in report.outcomes.values() if isinstance(o, PushFailed)] == ["human", "human"]


def test_the_hosts_words_come_over_http_too(tmp_path: Path, host: GitHost) -> None:
    write_hook(tmp_path / "served" / "a.git", "update", 'test "$1" != refs/heads/d/1')
    mirror = open_mirror(tmp_path, f"{host.url}/a.git")
    mirror.fetch("target")
    commits = mirror.write_commits([NewCommit((), (), str(n), 0) for n in range(3)])

    report = mirror.push([PushUnit(str(n), (RefUpdate(f"refs/heads/d/{n}", c, None),)) for n, c in enumerate(commits)])

    assert [name for name, outcome in report.outcomes.items() if outcome != PushDone()] == ["1"]


def test_a_redirect_is_no_way_around_the_allow_list(tmp_path: Path, host: GitHost) -> None:
    host.redirect = f"{host.url}/a.git"
    mirror = open_mirror(tmp_path, f"{host.url}/elsewhere.git")

    with pytest.raises(UrlRefusedError):
        mirror.fetch("config")
