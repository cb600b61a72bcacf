"""The credentials of remotes. Finds the settings entry for a remote, and passes the credentials of this entry to git.

Each entry has separate credentials for reading and for pushes. Secrets are read from files before each use. This module
does not read the settings.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from reconciler import credential_files, stored_credentials
from reconciler.git import credentials
from reconciler.git.errors import AccessDeniedError, HostUntrustedError, ReadOnlyRemoteError
from reconciler.git.url import GitUrl, get_location, matches_location, parse_url
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import Secret

if TYPE_CHECKING:
    from reconciler.credential_files import CredentialFile

CredentialUse = Literal["read", "write"]
# GitHub requires this user name with a token of an App. GitHub, GitLab and Forgejo accept it with any other token.
TOKEN_USERNAME = "x-access-token"  # noqa: S105 - a user name, not a password
_PRIVATE_MODES = stat.S_IRUSR | stat.S_IWUSR
_GLOB = re.compile(r"[*?]")


@dataclass(frozen=True)
class GitHubApp:
    """A GitHub App. If `installation` is 0, GitHub returns the installation for the repository."""

    app_id: str
    key_file: str
    installation: int = 0


@dataclass(frozen=True)
class CredentialSource:
    """The credentials for reading remotes, or for pushes. Files are given by path. A text that is not set is "".

    Attributes:
        setting: The name of the setting, for messages.
        token_file: A file with a token, which is the password of `username`.
        credentials_file: A file in the format of git-credential-store (`https://user:token@host`, one per line).
        known_hosts_file: The known hosts of ssh.
        push_url: The start of the URLs for pushes, which `build_push_url` completes. "" if pushes use the same URL as
            reading.
        is_default: Whether ssh can use its default keys and known hosts. This is True for remotes without an entry.
    """

    setting: str = ""
    token_file: str = ""
    username: str = TOKEN_USERNAME
    credentials_file: str = ""
    ssh_key_file: str = ""
    known_hosts_file: str = ""
    github_app: GitHubApp | None = None
    push_url: str = ""
    is_default: bool = False


@dataclass(frozen=True)
class CredentialEntry:
    """The credentials of all remotes that match the pattern `url`. Without `write`, these remotes are read-only."""

    setting: str
    url: str
    read: CredentialSource | None = None
    write: CredentialSource | None = None

    def get_source(self, use: CredentialUse) -> CredentialSource | None:
        """Return the credentials for reading or for pushes. If `read` is None, `write` is used for reading too."""
        return self.write if use == "write" else self.read or self.write


@dataclass(frozen=True)
class RemoteAccess:
    """The access of one Git call to a remote: its URL, Git settings, file descriptors and options of ssh."""

    url: GitUrl
    settings: tuple[tuple[str, str], ...] = ()
    descriptors: tuple[int, ...] = ()
    ssh_options: tuple[str, ...] = ()


class AppTokens(Protocol):
    """Requests tokens of GitHub Apps for Git."""

    def get_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> Secret:
        """Return a token that is valid for at least five minutes. Raises GitError."""
        ...

    def expire_token(self, app: GitHubApp, url: GitUrl, use: CredentialUse) -> None:
        """Let the next call of `get_token` request a new token."""
        ...


class CredentialObserver(Protocol):
    """Receives events about credentials. The events contain no secrets."""

    def report_reloaded(self, remote: str, use: str, file: str) -> None:
        """Report that a file has new content, which the next Git call uses."""
        ...

    def report_unreadable(self, remote: str, use: str, file: str, message: str) -> None:
        """Report that a file cannot be read or used."""
        ...

    def report_copied_key(self, remote: str, use: str, file: str) -> None:
        """Report that ssh uses a private copy of a key file, because the group can read the file."""
        ...


class _NoObserver:
    """Ignores all events."""

    def report_reloaded(self, remote: str, use: str, file: str) -> None:
        """Do nothing."""

    def report_unreadable(self, remote: str, use: str, file: str, message: str) -> None:
        """Do nothing."""

    def report_copied_key(self, remote: str, use: str, file: str) -> None:
        """Do nothing."""


class RemoteCredentials:
    """The credentials of all remotes. The object is thread-safe.

    Args:
        entries: The entries in the order of the settings. The first entry that matches a remote applies to it.
        default: The credentials of remotes without an entry.
        app_tokens: Requests tokens of GitHub Apps. Required only if an entry contains an App.
        requires_known_hosts: Whether an entry for ssh must contain `known_hosts_file`.
    """

    def __init__(
        self,
        entries: Sequence[CredentialEntry] = (),
        default: CredentialSource | None = None,
        app_tokens: AppTokens | None = None,
        observer: CredentialObserver | None = None,
        *,
        requires_known_hosts: bool = True,
    ) -> None:
        self._entries = tuple(entries)
        self._default = default or CredentialSource(is_default=True)
        self._app_tokens = app_tokens
        self._observer = observer or _NoObserver()
        self._requires_known_hosts = requires_known_hosts
        self._files: dict[str, CredentialFile] = {}
        self._copied_keys: set[str] = set()

    def find_entry(self, url: GitUrl) -> CredentialEntry | None:
        """Return the entry that applies to a remote.

        Return None for a remote without an entry, and for a local folder.
        """
        if url.is_local:
            return None
        location = get_location(url)
        return next((entry for entry in self._entries if matches_location(location, entry.url)), None)

    def is_read_only(self, url: GitUrl) -> bool:
        """Return whether the entry of a remote contains no credentials for pushes."""
        entry = self.find_entry(url)
        return entry is not None and entry.write is None

    def get_url(self, url: GitUrl, use: CredentialUse) -> GitUrl:
        """Return the URL of a remote for reading or for pushes. Raises UrlRefusedError."""
        entry = self.find_entry(url)
        source = entry.write if entry and use == "write" else None
        return build_push_url(entry.url, source.push_url, url) if entry and source and source.push_url else url

    @contextmanager
    def open(self, url: GitUrl, use: CredentialUse) -> Iterator[RemoteAccess]:
        """Yield the access to a remote for one Git call.

        Raises:
            ReadOnlyRemoteError: The entry of the remote contains no credentials for pushes.
            AccessDeniedError: The credentials cannot be read, or do not support the protocol of the remote.
            HostUntrustedError: The entry contains no known hosts.
        """
        source, target = self._find_source(url, use), self.get_url(url, use)
        with ExitStack() as stack:
            match target.scheme:
                case "https" | "http":
                    login = self._find_login(source, target, use)
                    if login is None and use == "write" and not source.is_default:
                        raise AccessDeniedError(_describe_missing(source, target, "token_file"))
                    if login is None:
                        yield RemoteAccess(target)
                        return
                    helper = stack.enter_context(credentials.provide_credential(*login, target))
                    yield RemoteAccess(target, helper.settings, helper.descriptors)
                case "ssh":
                    key = stack.enter_context(self._open_ssh_key(source, target, use))
                    yield RemoteAccess(target, ssh_options=self._build_ssh_options(source, target, key))
                case "file":
                    yield RemoteAccess(target)

    def expire(self, url: GitUrl, use: CredentialUse) -> bool:
        """Let the next Git call read the credentials again, because the host refused them.

        Return whether the settings contain credentials for this remote, for reading or for pushes as `use` specifies.
        """
        source, target = self._find_source(url, use), self.get_url(url, use)
        for name in (source.token_file, source.credentials_file):
            if file := self._files.get(name):
                file.expire()
        if source.github_app and self._app_tokens:
            self._app_tokens.expire_token(source.github_app, target, use)
        has_login = bool(source.token_file or source.credentials_file or source.github_app)
        return bool(source.ssh_key_file) if target.scheme == "ssh" else has_login and not target.is_local

    def _find_source(self, url: GitUrl, use: CredentialUse) -> CredentialSource:
        entry = self.find_entry(url)
        if entry is None:
            return self._default
        source = entry.get_source(use)
        if source is None:
            raise ReadOnlyRemoteError(
                f"{url.text} is read-only: `{entry.setting}` (url {entry.url!r}) contains no `write`"
            )
        return source

    def _find_login(self, source: CredentialSource, url: GitUrl, use: CredentialUse) -> tuple[str, Secret] | None:
        if source.github_app:
            assert self._app_tokens, "the caller provides tokens if an entry contains a GitHub App"
            return TOKEN_USERNAME, self._app_tokens.get_token(source.github_app, url, use)
        if source.token_file:
            token = self._read(source, source.token_file, url, use).strip()
            if not credential_files.is_token(token):
                problem = "is empty" if not token else "must contain one token without spaces and line breaks"
                raise self._report(AccessDeniedError(f"{source.token_file} {problem}"), source.token_file, url, use)
            return source.username, Secret(token)
        if source.credentials_file:
            credential = stored_credentials.find_credential(
                self._read(source, source.credentials_file, url, use), url.connection_url
            )
            return (credential.username, credential.password) if credential else None
        return None

    def _read(self, source: CredentialSource, name: str, url: GitUrl, use: CredentialUse) -> str:
        file = self._files.setdefault(name, credential_files.CredentialFile(Path(name)))
        before = file.last_content
        try:
            content = file.read()
        except credential_files.CredentialFileError as error:
            message = f"{error} (setting `{source.setting}`)"
            raise self._report(AccessDeniedError(message), name, url, use) from error.__cause__
        if before is not None and content != before:
            self._observer.report_reloaded(url.text, use, name)
        return content

    def _report(self, error: AccessDeniedError, file: str, url: GitUrl, use: CredentialUse) -> AccessDeniedError:
        self._observer.report_unreadable(url.text, use, file, error.message)
        return error

    @contextmanager
    def _open_ssh_key(self, source: CredentialSource, url: GitUrl, use: CredentialUse) -> Iterator[str]:
        """Yield the path of the key for ssh: the key file, or a private copy if the group can read the key file."""
        name = source.ssh_key_file
        if source.is_default:
            yield name
            return
        if not name:
            raise AccessDeniedError(_describe_missing(source, url, "ssh_key_file"))
        try:
            mode = stat.S_IMODE(Path(name).stat().st_mode)
            content = Path(name).read_bytes()
        except OSError as error:
            message = f"cannot read the SSH key {name} of `{source.setting}`: {error.strerror}"
            raise self._report(AccessDeniedError(message), name, url, use) from error
        if mode & ~(_PRIVATE_MODES | stat.S_IRGRP):
            message = (
                f"the SSH key {name} has the mode {mode:04o}, but only its owner may read it: use the mode 0600 or 0400"
                " (a Secret in Kubernetes: defaultMode 0400)"
            )
            raise self._report(AccessDeniedError(message), name, url, use)
        if not mode & stat.S_IRGRP:
            yield name
            return
        if name not in self._copied_keys:
            self._copied_keys.add(name)
            self._observer.report_copied_key(url.text, use, name)
        with credentials.write_private_file(content) as copy:
            yield copy

    def _build_ssh_options(self, source: CredentialSource, url: GitUrl, key: str) -> tuple[str, ...]:
        if self._requires_known_hosts and not source.known_hosts_file and not source.is_default:
            raise HostUntrustedError(
                f"`{source.setting}` must contain `known_hosts_file` for {url.text}, because without a "
                "terminal no person can confirm the host key; `reconciler ssh-keyscan` prints the keys of a "
                "host for review"
            )
        options: tuple[str, ...] = ()
        if source.known_hosts_file:
            known_hosts = f"UserKnownHostsFile={_quote_ssh_path(source.known_hosts_file)}"
            options = ("-o", known_hosts, "-o", "GlobalKnownHostsFile=/dev/null")
        return (*options, "-i", str(Path(key).absolute()), "-o", "IdentitiesOnly=yes") if key else options


def build_push_url(pattern: str, push_url: str, url: GitUrl) -> GitUrl:
    """Return the URL for pushes to the remote `url`, which matches `pattern`.

    `push_url` replaces the part of `url` that matches `pattern` up to its first `*` or `?`. For example, the pattern
    `git.example.com/platform/*` and the push URL `ssh://git@git.example.com/platform/` map
    `https://git.example.com/platform/fleet.git` to `ssh://git@git.example.com/platform/fleet.git`.

    Raises:
        UrlRefusedError: The result is not a valid URL.
    """
    start = _GLOB.split(pattern, maxsplit=1)[0]
    if start != pattern:
        start = start[: start.rfind("/") + 1]
    prefix = start.partition("://")[2] or start
    folder = prefix.partition("/")[2].strip("/").removesuffix(".git")
    path = urlsplit(url.text).path if "://" in url.text else url.text.partition(":")[2]
    path = path.strip("/")
    remaining_path = "" if path.removesuffix(".git") == folder else path.removeprefix(folder).lstrip("/")
    separator = "" if push_url.endswith(("/", ":")) or not remaining_path else "/"
    return parse_url(f"{push_url}{separator}{remaining_path}")


def _describe_missing(source: CredentialSource, url: GitUrl, name: str) -> str:
    if source.credentials_file and name != "ssh_key_file":
        return f"no line of {source.credentials_file} (setting `{source.setting}`) matches {url.text}"
    return f"`{source.setting}` applies to {url.text}, but contains no `{name}`, which {url.scheme} requires"


def _quote_ssh_path(file: str) -> str:
    path = str(Path(file).absolute())
    return f'"{path}"' if " " in path else path
