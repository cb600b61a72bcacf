"""Credentials of remotes: which ones a remote gets, and that no process, host or path other than its own sees them."""

from __future__ import annotations

import base64
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from reconciler.git.credentials import provide_credential
from reconciler.git.errors import AccessDeniedError, UrlRefusedError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushUnit, RefUpdate
from reconciler.git.remote_credentials import CredentialSource, RemoteCredentials
from reconciler.git.url import parse_url
from reconciler.redaction import Secret, redact
from reconciler.stored_credentials import StoredCredential, find_credential, parse_credential
from tests.support.git_environment import HERMETIC
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import commit_files, make_bare, read_refs
from tests.support.processes import find_in_processes, visible_process_data

HTTP = ("http://127.0.0.1:*",)


@pytest.fixture
def password() -> str:
    return f"pw-{uuid.uuid4().hex}"


@pytest.fixture
def host(tmp_path: Path, password: str) -> Iterator[GitHost]:
    """A host that asks for a login, with the repositories a.git and team/b.git."""
    for name in ("a.git", "team/b.git"):
        repository = make_bare(tmp_path / "served" / name, http__receivepack="true")
        commit_files(repository, "refs/heads/main", {"a": b"1"})
    with serve(GitHost(tmp_path / "served", login=f"robot:{password}")) as running:
        yield running


def open_mirror(tmp_path: Path, url: str, line: str) -> Mirror:
    file = tmp_path / "credentials"
    file.write_text(f"# a comment\n\n{line}\n")
    source = CredentialSource("git.credentials_file", credentials_file=str(file), is_default=True)
    options = GitOptions(allowed_urls=HTTP, credentials=RemoteCredentials(default=source))
    return Mirror.open(tmp_path / "cache", url, options)


def login_of(host: GitHost, path: str = "") -> str:
    return f"http://{host.login}@127.0.0.1:{host.port}{path}"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
def test_no_process_shows_a_password_in_arguments_or_environment(tmp_path: Path, host: GitHost, password: str) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/a.git", login_of(host))
    encoded = base64.b64encode(host.login.encode()).decode()
    exposed: list[str] = []
    helpers: list[bytes] = []

    def observe() -> None:
        exposed.extend(find_in_processes(password, encoded))
        helpers.extend(content for path, content in visible_process_data() if b"git-remote-http" in content)

    host.observe = observe
    mirror.fetch("target")
    (commit,) = mirror.write_commits([NewCommit((), (), "x", 0)])
    report = mirror.push([PushUnit("x", (RefUpdate("refs/heads/d/x", commit, None),))])

    assert report.is_complete
    assert "refs/heads/d/x" in read_refs(tmp_path / "served" / "a.git")
    assert helpers, "no process of git was running when the host looked"
    assert exposed == []


def test_a_password_never_follows_a_redirect(tmp_path: Path, host: GitHost) -> None:
    make_bare(tmp_path / "elsewhere" / "a.git")
    with serve(GitHost(tmp_path / "elsewhere", login=host.login)) as other:
        host.redirect = f"{other.url}/a.git"
        mirror = open_mirror(tmp_path, f"{host.url}/elsewhere.git", login_of(host))

        with pytest.raises(UrlRefusedError):
            mirror.fetch("config")

    assert other.taken == []


@pytest.mark.parametrize(
    ("key", "leaks"),
    [pytest.param(None, False, id="scoped-key"), pytest.param("credential.helper", True, id="plain-key")],
)
def test_the_scoped_key_protects_even_if_git_follows_redirects(
    tmp_path: Path, host: GitHost, password: str, key: str | None, leaks: bool
) -> None:
    with serve(GitHost(tmp_path / "served", login=host.login)) as other:
        host.redirect = f"{other.url}/a.git"
        url = parse_url(f"{host.url}/elsewhere.git")
        with provide_credential("robot", Secret(password), url) as helper:
            settings = [(key or name, value) for name, value in helper.settings if name.endswith(".helper")]
            settings += [("http.followRedirects", "true"), ("credential.useHttpPath", "true")]
            environment = {**HERMETIC, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(len(settings))}
            for number, (name, value) in enumerate(settings):
                environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
            subprocess.run(
                ["git", "ls-remote", url.connection_url], env=environment, pass_fds=helper.descriptors,
                capture_output=True, check=False,
            )  # fmt: skip

        assert other.taken, "git followed no redirect"
        # The plain key shows that this test can detect a leak.
        assert any(other.authorizations) is leaks


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        pytest.param("protocol=http\nhost=h.example:81\npath=team/b.git\n", True, id="its-own-repository"),
        pytest.param("protocol=http\nhost=h.example:81\npath=team/c.git\n", False, id="another-path"),
        pytest.param("protocol=http\nhost=h.example\npath=team/b.git\n", False, id="another-port"),
        pytest.param("protocol=http\nhost=evil.example:81\npath=team/b.git\n", False, id="another-host"),
        pytest.param("protocol=https\nhost=h.example:81\npath=team/b.git\n", False, id="another-scheme"),
    ],
)
def test_git_asks_the_helper_for_its_own_url_only(tmp_path: Path, text: str, answered: bool) -> None:
    url = parse_url("http://h.example:81/team/b.git")

    with provide_credential("robot", Secret("hunter2-hunter2"), url) as credential_helper:
        environment = {**HERMETIC, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(len(credential_helper.settings))}
        for number, (key, value) in enumerate(credential_helper.settings):
            environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
            assert "hunter2" not in key + value
        # twice, because git starts the helper again for each of its own processes
        answers = [
            subprocess.run(
                ["git", "credential", "fill"], input=f"{text}\n", env=environment, cwd=tmp_path, text=True,
                capture_output=True, pass_fds=credential_helper.descriptors, check=False,
            ).stdout
            for _ in range(2)
        ]  # fmt: skip

    assert [("password=hunter2-hunter2" in answer) for answer in answers] == [answered, answered]


def test_a_password_is_sent_for_a_path_with_reserved_characters(tmp_path: Path, host: GitHost) -> None:
    name = "a+b=c,d!e@f ~g.git"
    repository = make_bare(tmp_path / "served" / name)
    commit_files(repository, "refs/heads/main", {"a": b"1"})
    mirror = open_mirror(tmp_path, f"{host.url}/{quote(name, safe='+=,!~')}", login_of(host))

    mirror.fetch("config")

    assert list(mirror.refs()) == ["refs/heads/main"]


@pytest.mark.parametrize(
    ("prefix", "sent"),
    [
        pytest.param("", True, id="the-whole-host"),
        pytest.param("/team", True, id="a-folder"),
        pytest.param("/team/", True, id="a-folder-with-a-slash"),
        pytest.param("/team/b.git", True, id="the-repository"),
        pytest.param("/team/b", True, id="the-repository-without-its-ending"),
        pytest.param("/tea", False, id="the-beginning-of-a-name"),
        pytest.param("/other", False, id="another-folder"),
    ],
)
def test_a_path_prefix_limits_where_a_password_is_sent(tmp_path: Path, host: GitHost, prefix: str, sent: bool) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/team/b.git", login_of(host, prefix))

    if sent:
        mirror.fetch("config")
    else:
        with pytest.raises(AccessDeniedError):
            mirror.fetch("config")

    assert any(host.authorizations) is sent


def test_without_memory_files_a_private_file_is_used_and_removed(
    tmp_path: Path, host: GitHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    modes: set[int] = set()
    host.observe = lambda: modes.update(
        path.stat().st_mode & 0o777 for folder in (tmp_path / "run").iterdir() for path in (folder, *folder.iterdir())
    )
    mirror = open_mirror(tmp_path, f"{host.url}/a.git", login_of(host))

    mirror.fetch("config")

    assert modes == {0o700, 0o600}
    assert list((tmp_path / "run").iterdir()) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, host: GitHost) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/a.git", login_of(host))
    (tmp_path / "credentials").unlink()

    with pytest.raises(AccessDeniedError, match=r"cannot read .*/credentials: .*\(setting `git\.credentials_file`\)"):
        mirror.fetch("config")


def test_a_rotated_password_counts_at_the_next_call(tmp_path: Path, host: GitHost) -> None:
    mirror = open_mirror(tmp_path, f"{host.url}/a.git", login_of(host))
    mirror.fetch("config")
    host.login = "robot:another-password"
    (tmp_path / "credentials").write_text(f"{login_of(host)}\n")

    mirror.fetch("config")

    assert list(mirror.refs()) == ["refs/heads/main"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("https://me:pw@h.example", ("https", "h.example", 443, "", "me", "pw"), id="host"),
        pytest.param("HTTPS://me:pw@H.example/", ("https", "h.example", 443, "", "me", "pw"), id="capitals"),
        pytest.param("http://me:pw@h:8080/a/b.git", ("http", "h", 8080, "a/b.git", "me", "pw"), id="port-and-path"),
        pytest.param("https://m%40x:p%2Fw%3A@h/a%20b", ("https", "h", 443, "a b", "m@x", "p/w:"), id="escapes"),
        pytest.param("https://me:p:w@h", ("https", "h", 443, "", "me", "p:w"), id="colon-in-password"),
        pytest.param("https://me:p@w@h", ("https", "h", 443, "", "me", "p@w"), id="at-in-password"),
        pytest.param("https://me:p/w@h/a", ("https", "h", 443, "a", "me", "p/w"), id="slash-in-password"),
        pytest.param("https://me:pw@h/a@b", ("https", "h", 443, "a@b", "me", "pw"), id="at-in-path"),
        pytest.param("https://me:pw@[::1]:81", ("https", "::1", 81, "", "me", "pw"), id="ipv6"),
        pytest.param("https://me@h", None, id="no-password"),
        pytest.param("https://:pw@h", None, id="no-user"),
        pytest.param("https://h/a", None, id="no-user-information"),
        pytest.param("ssh://me:pw@h", None, id="another-scheme"),
        pytest.param("https://me:p%0Aw@h", None, id="line-break-in-password"),
        pytest.param("https://me:pw@h:port", None, id="no-port"),
        pytest.param("# comment", None, id="comment"),
        pytest.param("", None, id="empty"),
    ],
)
def test_lines_of_a_credentials_file(line: str, expected: tuple[str, str, int, str, str, str] | None) -> None:
    assert parse_credential(line) == (expected and StoredCredential(*expected[:-1], Secret(expected[-1])))


def test_the_first_match_counts_and_every_password_is_redacted() -> None:
    text = "https://a:first-password@h/x\nhttps://b:second-password@h\nhttps://c:third%2Fpassword@h\n"

    credential = find_credential(text, "https://h/y.git")

    assert credential is not None
    assert (credential.username, "second-password" in repr(credential)) == ("b", False)
    assert redact("first-password second-password third/password third%2Fpassword") == "***** ***** ***** *****"
