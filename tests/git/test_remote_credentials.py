"""Credentials per remote: the matching entry, separate credentials for reading and pushes, and rotation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler.git.errors import AccessDeniedError, GitError, HostUntrustedError, ReadOnlyRemoteError, UrlRefusedError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushFailed, PushOutcome, PushUnit, RefUpdate
from reconciler.git.remote_credentials import (
    CredentialEntry,
    CredentialSource,
    CredentialUse,
    GitHubApp,
    RemoteCredentials,
    build_push_url,
)
from reconciler.git.url import GitUrl, parse_url
from reconciler.redaction import Secret
from reconciler.telemetry.event_log import CredentialLog
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import commit_files, make_bare, read_refs
from tests.support.processes import find_in_processes

HTTP = ("http://127.0.0.1:*", "http://localhost:*")
READ, WRITE = "read-token-canary-1", "write-token-canary-2"


@dataclass
class Events(CredentialLog):
    """The reported events, which are also logged."""

    reloaded: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)

    def report_reloaded(self, remote: str, use: str, file: str) -> None:
        self.reloaded.append((use, Path(file).name))
        super().report_reloaded(remote, use, file)

    def report_unreadable(self, remote: str, use: str, file: str, message: str) -> None:
        self.unreadable.append(message)
        super().report_unreadable(remote, use, file, message)

    def report_copied_key(self, remote: str, use: str, file: str) -> None:
        self.copied.append(Path(file).name)
        super().report_copied_key(remote, use, file)


@dataclass
class Scene:
    """A host with a repository, a token for reading, a token for pushes, and the credentials with both."""

    folder: Path
    host: GitHost
    events: Events = field(default_factory=Events)

    def write_token(self, name: str, token: str) -> str:
        file = self.folder / name
        file.write_text(f"{token}\n")
        return str(file)

    def build_entry(self, *, read: str = READ, write: str | None = WRITE, url: str = "127.0.0.1:*") -> CredentialEntry:
        source = CredentialSource("git.credentials[0].read", self.write_token("read", read), "robot")
        target = CredentialSource("w", self.write_token("write", write), "robot") if write else None
        return CredentialEntry("git.credentials[0]", url, source, target)

    def open(self, *entries: CredentialEntry, name: str = "a.git") -> Mirror:
        credentials = RemoteCredentials(entries, observer=self.events)
        options = GitOptions(allowed_urls=HTTP, credentials=credentials)
        return Mirror.open(self.folder / "cache", f"{self.host.url}/{name}", options)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    repository = make_bare(tmp_path / "served" / "a.git", http__receivepack="true")
    commit_files(repository, "refs/heads/main", {"a": b"1"})
    permissions = {f"robot:{READ}": "read", f"robot:{WRITE}": "write"}
    with serve(GitHost(tmp_path / "served", permissions=permissions)) as host:
        yield Scene(tmp_path, host)


def push(mirror: Mirror, name: str = "x") -> PushOutcome:
    (commit,) = mirror.write_commits([NewCommit((), (), name, 0)])
    return mirror.push([PushUnit("x", (RefUpdate(f"refs/heads/d/{name}", commit, None),))])["x"]


def list_used_tokens(host: GitHost) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for service, login in host.uses:
        used.setdefault(service, set()).add(login.partition(":")[2])
    return used


def test_reading_uses_the_read_token_and_a_push_the_write_token(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry())
    mirror.fetch("target")

    outcome = push(mirror)

    assert not isinstance(outcome, PushFailed)
    assert "refs/heads/d/x" in read_refs(scene.folder / "served" / "a.git")
    assert list_used_tokens(scene.host) == {"git-upload-pack": {READ}, "git-receive-pack": {WRITE}}


def test_no_process_shows_one_of_the_tokens(scene: Scene) -> None:
    exposed: list[str] = []
    scene.host.observe = lambda: exposed.extend(find_in_processes(READ, WRITE))
    mirror = scene.open(scene.build_entry())

    mirror.fetch("target")
    push(mirror)

    assert scene.host.uses
    assert exposed == []


def test_host_refuses_a_push_with_the_read_token(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry(write=READ))
    mirror.fetch("target")

    outcome = push(mirror)

    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, AccessDeniedError)
    assert READ not in outcome.error.message
    assert list_used_tokens(scene.host)["git-receive-pack"] == {READ}


def test_remote_without_write_is_read_only_and_receives_no_push(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry(write=None))
    mirror.fetch("target")

    outcome = push(mirror)

    assert mirror.is_read_only
    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, ReadOnlyRemoteError)
    assert "`git.credentials[0]` (url '127.0.0.1:*') contains no `write`" in outcome.error.message
    assert "git-receive-pack" not in list_used_tokens(scene.host)


def test_first_matching_entry_applies(scene: Scene) -> None:
    first = scene.build_entry(url="127.0.0.1:*/a.git", read="unknown-token")
    second = CredentialEntry("git.credentials[1]", "*", first.write)

    with pytest.raises(AccessDeniedError):
        scene.open(first, second).fetch("config")
    scene.open(CredentialEntry("other", "other.example", first.read), second).fetch("config")


def test_missing_read_uses_write(scene: Scene) -> None:
    entry = scene.build_entry()
    mirror = scene.open(CredentialEntry(entry.setting, entry.url, None, entry.write))

    mirror.fetch("config")

    assert list_used_tokens(scene.host) == {"git-upload-pack": {WRITE}}


def test_redirect_to_another_server_receives_no_token(scene: Scene) -> None:
    make_bare(scene.folder / "elsewhere" / "a.git")
    with serve(GitHost(scene.folder / "elsewhere", login="robot:x")) as other:
        scene.host.redirect = f"{other.url}/a.git"
        mirror = scene.open(scene.build_entry(), name="elsewhere.git")

        with pytest.raises(UrlRefusedError):
            mirror.fetch("config")

    assert other.taken == []


def rewrite(file: Path, text: str) -> None:
    """Write another text of the same length, with the same inode and modification time."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_kubernetes_volume(folder: Path, revision: str, token: str) -> None:
    """Write a token as Kubernetes updates a mounted Secret: a new folder, and a new link `..data` to it."""
    (folder / revision).mkdir(parents=True)
    (folder / revision / "token").write_text(token)
    (folder / "..new").symlink_to(revision)
    (folder / "..new").rename(folder / "..data")


def test_rotated_token_is_used_at_the_next_call(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry())
    mirror.fetch("config")
    scene.host.permissions = {"robot:rotated-token": "read"}
    scene.write_token("read", "rotated-token")
    scene.host.taken.clear()

    mirror.fetch("config")

    assert scene.events.reloaded == [("read", "read")]
    assert "rotated-token" in list_used_tokens(scene.host)["git-upload-pack"]


def test_rotated_token_is_read_through_the_links_of_kubernetes(scene: Scene) -> None:
    volume = scene.folder / "volume"
    replace_kubernetes_volume(volume, "..1", READ)
    (volume / "token").symlink_to("..data/token")
    source = CredentialSource("r", str(volume / "token"), "robot")
    mirror = scene.open(CredentialEntry("e", "*", source))
    mirror.fetch("config")
    scene.host.permissions = {"robot:rotated-token": "read"}
    replace_kubernetes_volume(volume, "..2", "rotated-token")

    mirror.fetch("config")

    assert scene.events.reloaded == [("read", "token")]


def test_refused_token_is_read_again_and_the_call_repeated_once(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry())
    mirror.fetch("config")
    rotated = READ.replace("read", "ROT8")
    scene.host.permissions = {f"robot:{rotated}": "read"}
    # The attributes of the file do not show this change.
    rewrite(scene.folder / "read", f"{rotated}\n")

    mirror.fetch("config")

    assert scene.events.reloaded == [("read", "read")]


def test_token_that_stays_refused_is_tried_twice(scene: Scene) -> None:
    mirror = scene.open(scene.build_entry(read="unknown-token"))

    with pytest.raises(AccessDeniedError):
        mirror.fetch("config")

    # Each call of git sends one request without and one request with the token.
    assert len([value for value in scene.host.authorizations if value]) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(None, "cannot read the credentials file", id="missing"),
        pytest.param("", "is empty", id="empty"),
        pytest.param("canary-a\ncanary-b", "must contain one token", id="two-lines"),
    ],
)
@pytest.mark.emits("credential_unreadable")
def test_unusable_token_file_is_named_and_not_quoted(scene: Scene, content: str | None, expected: str) -> None:
    mirror = scene.open(scene.build_entry())
    (scene.folder / "read").unlink()
    if content is not None:
        scene.write_token("read", content)

    with pytest.raises(AccessDeniedError, match=expected) as caught:
        mirror.fetch("config")

    assert "canary" not in caught.value.message
    assert scene.events.unreadable == [caught.value.message]
    assert scene.host.taken == []


@dataclass
class Tokens:
    """Tokens of a GitHub App. Implements `AppTokens`. Each token is used until it expires."""

    valid: dict[str, str]
    requests: list[tuple[str, str]] = field(default_factory=list)

    def get_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> Secret:
        self.requests.append((app.app_id, use))
        return Secret(self.valid[use])

    def expire_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> None:
        self.valid[use] = self.valid[use].removeprefix("expired-")


def test_token_of_a_github_app_is_used_and_renewed_after_a_refusal(scene: Scene) -> None:
    scene.host.permissions = {f"x-access-token:{READ}": "read", f"x-access-token:{WRITE}": "write"}
    tokens = Tokens({"read": f"expired-{READ}", "write": WRITE})
    app = CredentialSource("r", github_app=GitHubApp("1", "key"))
    entry = CredentialEntry("e", "*", app, CredentialSource("w", github_app=GitHubApp("9", "key")))
    options = GitOptions(allowed_urls=HTTP, credentials=RemoteCredentials([entry], app_tokens=tokens))
    mirror = Mirror.open(scene.folder / "cache", f"{scene.host.url}/a.git", options)

    mirror.fetch("target")
    outcome = push(mirror)

    assert not isinstance(outcome, PushFailed)
    assert tokens.requests[:2] == [("1", "read"), ("1", "read")]
    assert ("9", "write") in tokens.requests
    assert list_used_tokens(scene.host) == {"git-upload-pack": {READ}, "git-receive-pack": {WRITE}}


@pytest.mark.parametrize(
    ("pattern", "push_url", "url", "expected"),
    [
        pytest.param(
            "git.example.com/platform/**", "ssh://git@git.example.com/platform/",
            "https://git.example.com/platform/a/b.git", "ssh://git@git.example.com/platform/a/b.git", id="glob",
        ),
        pytest.param(
            "git.example.com/platform", "ssh://git@git.example.com/platform",
            "https://git.example.com/platform/b", "ssh://git@git.example.com/platform/b", id="folder",
        ),
        pytest.param(
            "git.example.com", "git@push.example.com:",
            "https://git.example.com/platform/b.git", "git@push.example.com:platform/b.git", id="host",
        ),
        pytest.param(
            "git.example.com/a/fleet", "ssh://git@push.example.com/fleet.git",
            "https://git.example.com/a/fleet.git", "ssh://git@push.example.com/fleet.git", id="one-repository",
        ),
        pytest.param(
            "https://git.example.com/a/fl*", "ssh://git@push.example.com/b",
            "https://git.example.com/a/fleet", "ssh://git@push.example.com/b/fleet", id="glob-in-a-name",
        ),
        pytest.param(
            "git.example.com/a/*", "https://push.example.com/a/",
            "git@git.example.com:a/fleet.git", "https://push.example.com/a/fleet.git", id="from-ssh-to-https",
        ),
    ],
)  # fmt: skip
def test_push_url_replaces_the_start_of_the_url(pattern: str, push_url: str, url: str, expected: str) -> None:
    assert build_push_url(pattern, push_url, parse_url(url)).connection_url == expected


def test_push_goes_to_the_push_url(scene: Scene) -> None:
    make_bare(scene.folder / "served" / "push" / "a.git", http__receivepack="true")
    entry = scene.build_entry(url="127.0.0.1:*")
    assert entry.write is not None
    push_url = f"http://localhost:{scene.host.port}/push/a.git"
    exact = CredentialEntry(
        entry.setting, f"127.0.0.1:{scene.host.port}/a", entry.read,
        CredentialSource("w", entry.write.token_file, "robot", push_url=push_url),
    )  # fmt: skip
    mirror = scene.open(exact)
    mirror.fetch("target")

    push(mirror)

    assert "refs/heads/d/x" in read_refs(scene.folder / "served" / "push" / "a.git")
    assert "refs/heads/d/x" not in read_refs(scene.folder / "served" / "a.git")


def test_push_url_must_be_allowed(scene: Scene) -> None:
    entry = scene.build_entry()
    assert entry.write is not None
    push_url = "https://elsewhere.example/a.git"
    write = CredentialSource("w", entry.write.token_file, push_url=push_url)
    mirror = scene.open(CredentialEntry("e", f"127.0.0.1:{scene.host.port}/a", entry.read, write))
    mirror.fetch("target")

    outcome = push(mirror)

    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, UrlRefusedError)


@pytest.mark.parametrize(
    ("url", "pattern", "expected"),
    [
        pytest.param("https://git.example.com/acme/a.git", "git.example.com", True, id="host"),
        pytest.param("https://GIT.example.com/acme/a.git", "git.EXAMPLE.com/acme", True, id="case-of-the-host"),
        pytest.param("https://git.example.com/acme/a.git", "git.example.com/acm", False, id="start-of-a-name"),
        pytest.param("git@git.example.com:acme/a.git", "git.example.com/acme/*", True, id="scp-style"),
        pytest.param("https://git.example.com:8443/acme/a", "git.example.com", False, id="another-port"),
        pytest.param("https://git.example.com:8443/acme/a", "git.example.com:8443/acme", True, id="same-port"),
        pytest.param("https://git.example.com/acme/a", "*", True, id="all"),
        pytest.param("/srv/git/a.git", "*", False, id="folder-on-this-machine"),
    ],
)
def test_pattern_of_an_entry(url: str, pattern: str, expected: bool) -> None:
    credentials = RemoteCredentials([CredentialEntry("e", pattern, CredentialSource("r", "t"))])

    assert (credentials.find_entry(parse_url(url)) is not None) is expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(0o600, "original", id="private"),
        pytest.param(0o400, "original", id="read-only"),
        pytest.param(0o440, "copy", id="group-readable", marks=pytest.mark.emits("ssh_key_copied")),
        pytest.param(0o640, "copy", id="group-readable-and-writable-by-the-owner"),
        pytest.param(0o644, None, id="readable-by-all"),
        pytest.param(0o660, None, id="writable-by-the-group"),
    ],
)
def test_mode_of_an_ssh_key(tmp_path: Path, mode: int, expected: str | None) -> None:
    key, events = tmp_path / "key", Events()
    key.write_text("secret key")
    key.chmod(mode)
    source = CredentialSource("git.credentials[0].read", ssh_key_file=str(key), known_hosts_file="/etc/known")
    credentials = RemoteCredentials([CredentialEntry("e", "*", source)], observer=events)
    url = parse_url("ssh://git@git.example.com/a.git")

    if expected is None:
        with pytest.raises(AccessDeniedError, match=f"has the mode {mode:04o}.*0600 or 0400"):
            list_used_keys(credentials, url)
        return
    used = list_used_keys(credentials, url)

    assert (used[0] == key) is (expected == "original")
    assert used[1:] == (0o600 if expected == "copy" else mode, "secret key")
    assert used[0].exists() is (expected == "original")
    assert events.copied == (["key"] if expected == "copy" else [])


def list_used_keys(credentials: RemoteCredentials, url: GitUrl) -> tuple[Path, int, str]:
    with credentials.open(url, "read") as access:
        key = Path(access.ssh_options[access.ssh_options.index("-i") + 1])
        return key, key.stat().st_mode & 0o777, key.read_text()


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        pytest.param(
            CredentialSource("s", ssh_key_file="key"), HostUntrustedError, "known_hosts_file", id="no-known-hosts"
        ),
        pytest.param(
            CredentialSource("s", token_file="t"), AccessDeniedError, "contains no `ssh_key_file`, which ssh requires",
            id="no-key",
        ),
        pytest.param(
            CredentialSource("s", ssh_key_file="lost", known_hosts_file="k"), AccessDeniedError, "cannot read the SSH",
            id="missing-key",
        ),
    ],
)  # fmt: skip
def test_ssh_without_necessary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: CredentialSource, error: type[GitError], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").touch(0o600)
    credentials = RemoteCredentials([CredentialEntry("e", "*", source)])

    with (
        pytest.raises(error, match=message),
        credentials.open(parse_url("ssh://git@git.example.com/a.git"), "read"),
    ):
        pass


def test_terminal_can_use_the_known_hosts_of_the_user(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    entry = CredentialEntry("e", "*", CredentialSource("s", ssh_key_file=str(key)))
    credentials = RemoteCredentials([entry], requires_known_hosts=False)

    with credentials.open(parse_url("ssh://git@git.example.com/a.git"), "read") as access:
        assert not any("KnownHosts" in option for option in access.ssh_options)


def test_each_use_has_its_own_ssh_key(tmp_path: Path) -> None:
    keys = {use: tmp_path / use for use in ("read", "write")}
    for key in keys.values():
        key.touch(0o600)
    read, write = (
        CredentialSource(use, ssh_key_file=str(key), known_hosts_file="/etc/known hosts") for use, key in keys.items()
    )
    credentials = RemoteCredentials([CredentialEntry("e", "git.example.com", read, write)])
    url = parse_url("git@git.example.com:a.git")

    with credentials.open(url, "read") as reading, credentials.open(url, "write") as writing:
        options = [reading.ssh_options, writing.ssh_options]

    assert options == [
        (
            "-o", 'UserKnownHostsFile="/etc/known hosts"', "-o", "GlobalKnownHostsFile=/dev/null",
            "-i", str(key), "-o", "IdentitiesOnly=yes",
        )
        for key in keys.values()
    ]  # fmt: skip
