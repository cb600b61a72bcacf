"""Addresses of repositories: parsing, comparison, and the allow-list. Addresses with credentials are refused."""

from __future__ import annotations

import os
import posixpath
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from reconciler.git.errors import CredentialInUrlError, UrlRefusedError
from reconciler.krm.git_formats import normalize_repository_url
from reconciler.krm.url_patterns import matches_url_pattern
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import has_credentials, redact_url

Scheme = Literal["https", "http", "ssh", "file"]

_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_SCP_STYLE = re.compile(
    r"(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\]):(?P<path>[^:].*)\Z"
)
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f]")
_SCHEMES = frozenset({"https", "http", "ssh", "git", "file"})
_PORTS = {"https": 443, "http": 80, "ssh": 22}


@dataclass(frozen=True)
class GitUrl:
    """The address of one repository. It never contains credentials, because `parse_url` refuses them.

    Attributes:
        text: The normalized address for messages, files and comparison: a URL, or the absolute path of a local
            repository.
        connection_url: The address that is passed to git.
    """

    text: str
    scheme: Scheme
    connection_url: str = field(repr=False, compare=False)

    @property
    def is_local(self) -> bool:
        """Whether the repository is in a folder on this machine."""
        return self.scheme == "file"

    @property
    def identity(self) -> str:
        """A text that is equal for all spellings of the address of one repository. Use it only for comparison."""
        return _find_local_identity(self.text) if self.is_local else normalize_repository_url(self.text)


def parse_url(text: str, base: str = "") -> GitUrl:
    """Parse an address: an https://, http://, ssh:// or file:// URL, `user@host:path`, or a path.

    A relative path starts at the folder or URL `base`. If `base` is empty, it starts at the current folder.

    Raises:
        UrlRefusedError: The address is malformed.
        CredentialInUrlError: The address contains credentials.
    """
    _refuse_unusable(text)
    _refuse_credentials(text)
    if _WITH_SCHEME.match(text):
        return _parse_with_scheme(text)
    if _HELPER.match(text):
        raise UrlRefusedError(f"the URL {redact_url(text)!r} must not start with a Git remote helper such as ext::")
    scp = _SCP_STYLE.match(text)
    if scp and scp["host"].lower() in _SCHEMES:
        raise UrlRefusedError(f"the URL {redact_url(text)!r} must have :// after its scheme")
    if scp and not text.startswith(("/", "./", "../")) and "/" not in text.split(":", 1)[0]:
        return _create_remote_url(text, "ssh", text, unquote(scp["path"]))
    return _resolve(text, base)


def _refuse_unusable(text: str) -> None:
    if not text or text.startswith("-") or text != text.strip() or _UNUSABLE.search(text):
        raise UrlRefusedError(f"a repository must be a URL or a path, but is {redact_url(text)!r}")


def _refuse_credentials(text: str) -> None:
    if has_credentials(text):
        raise CredentialInUrlError(
            f"the URL {redact_url(text)!r} must not contain a user name, password or token (removed here): put"
            " credentials into a file that the setting `git.credentials` names; if the @ belongs to a path, write %40"
            " in a URL, and start a local path with ./ (CredentialInUrl)"
        )


def _parse_with_scheme(text: str) -> GitUrl:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlRefusedError(f"the URL {redact_url(text)!r} is malformed") from error
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme == "file":
        return _parse_file(text, parts.netloc, unquote(parts.path))
    if scheme not in _PORTS:
        raise UrlRefusedError(
            f'the URL {redact_url(text)!r} must start with https://, ssh:// or file://, but starts with "{scheme}://"'
        )
    if not host or host.startswith("-") or parts.query or parts.fragment or "\\" in text or " " in text:
        raise UrlRefusedError(
            f"the URL {redact_url(text)!r} must have a host and a path, and no spaces, query or fragment"
        )
    user = f"{parts.username}@" if scheme == "ssh" and parts.username else ""
    if user.startswith("-"):
        raise UrlRefusedError(f"the URL {redact_url(text)!r} is malformed")
    bracketed_host = f"[{host}]" if ":" in host else host
    suffix = f":{port}" if port and port != _PORTS[scheme] else ""
    normal = f"{scheme}://{user}{bracketed_host}{suffix}{parts.path.rstrip('/')}"
    return _create_remote_url(normal, scheme, text.rstrip("/"), unquote(parts.path))


def _create_remote_url(text: str, scheme: str, connection_url: str, path: str) -> GitUrl:
    # Refuse "..", also written as %2e%2e, because git could then leave the folder that the allow-list allows.
    if ".." in path.split("/") or path.lstrip("/").startswith("-") or not path.strip("/"):
        raise UrlRefusedError(
            f'the URL {redact_url(text)!r} must have a path; the path must not contain ".." or start with "-"'
        )
    checked_scheme: Scheme = "https" if scheme == "https" else "http" if scheme == "http" else "ssh"
    return GitUrl(text, checked_scheme, connection_url)


def _parse_file(text: str, host: str, path: str) -> GitUrl:
    if host not in {"", "localhost"} or not path.startswith("/"):
        raise UrlRefusedError(f"the URL {redact_url(text)!r} must name an absolute path: file:///path")
    return _create_local_url(path)


def _create_local_url(path: str) -> GitUrl:
    normal = posixpath.normpath(path)
    return GitUrl(normal, "file", normal)


def _resolve(text: str, base: str) -> GitUrl:
    if base.lower().startswith("file://"):
        base = parse_url(base).text
    if text.startswith("/") or base.startswith("/") or ":" not in base:
        return _create_local_url(posixpath.join(Path.cwd(), base, text))
    head, path = _split_host(base)
    joined = posixpath.normpath(posixpath.join("/", path, text))
    return parse_url(head + (joined if path.startswith("/") else joined.lstrip("/")))


def _split_host(url: str) -> tuple[str, str]:
    scheme = _WITH_SCHEME.match(url)
    start = url.find("/", scheme.end()) if scheme else url.index(":") + 1
    return (url[:start], url[start:]) if start > 0 else (url, "/")


def _find_local_identity(path: str) -> str:
    """Return the folder that git uses for a local path `p`: the first of `p/.git`, `p` and `p.git` that exists."""
    for folder in (f"{path}/.git", path, f"{path}.git"):
        if (Path(folder) / "HEAD").exists():
            return str(Path(folder).resolve())
    return normalize_repository_url(path)


def find_parent_location(url: GitUrl) -> str:
    """Return the folder or URL that contains a repository. Relative addresses in the repository start there."""
    if url.is_local:
        return posixpath.dirname(url.text)
    head, path = _split_host(url.connection_url)
    return head + posixpath.dirname(path.rstrip("/"))


def make_url_relative_to(folder: Path, text: str) -> str:
    """Return a URL or absolute path unchanged.

    Convert a path relative to the current folder to a path relative to `folder`.
    """
    if "://" in text or not parse_url(text).is_local or Path(text).is_absolute():
        return text
    path = os.path.relpath(Path(text).resolve(), folder.resolve())
    return path if path.startswith("../") else f"./{path}"


def split_host_and_path(url: GitUrl) -> tuple[str, str]:
    """Return the host and the path of a repository, without the protocol. The host of a local repository is "".

    The host has no user and no port. The path has no slash at its start and end, and no suffix `.git`.
    """
    if url.is_local:
        return "", url.text.strip("/").removesuffix(".git")
    head, path = _split_host(url.text)
    host = head.rpartition("://")[2].rpartition("@")[2]
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return name.lower(), path.strip("/").removesuffix(".git")


def get_location(url: GitUrl) -> str:
    """Return the host and the path of a remote, such as `example.com/team/app`.

    The host has a port only if the port is not the default port of the protocol.
    """
    host, path = split_host_and_path(url)
    port = urlsplit(url.text).port if "://" in url.text else None
    return f"{host}:{port}/{path}" if port else f"{host}/{path}"


def matches_location(location: str, pattern: str) -> bool:
    """Return whether a pattern matches the host and path of a remote, such as `example.com/team/app`.

    A pattern with `*` or `?` must match completely. Any other pattern is a host, a folder or a repository.
    """
    normal_pattern = _normalize_pattern(pattern)
    if "*" in normal_pattern or "?" in normal_pattern:
        return fnmatchcase(location, normal_pattern)
    return location == normal_pattern or location.startswith(f"{normal_pattern}/")


@lru_cache(maxsize=1024)
def _normalize_pattern(pattern: str) -> str:
    # Cache the results, because each pass compares all patterns of the settings with all targets.
    host, slash, path = _WITH_SCHEME.sub("", pattern, count=1).partition("/")
    return (host.lower() + slash + path).rstrip("/").removesuffix(".git")


def check_url_allowed(url: GitUrl, allowed: tuple[str, ...]) -> None:
    """Check that `allowed` contains a pattern for an address. If `allowed` is empty, forbid only http://.

    A pattern with `*` or `?` must match the whole address. Any other pattern is an address, or the start of the address
    up to a slash. A pattern for a local repository is a path or a file:// URL.

    Raises:
        UrlRefusedError: The address is not allowed.
    """
    if not allowed and url.scheme == "http":
        raise UrlRefusedError(
            f"{url.text!r} must use https, because http is allowed only if `git.allowed_urls` contains the address"
        )
    if allowed and not any(matches_url_pattern(form, pattern) for form in _list_forms(url) for pattern in allowed):
        raise UrlRefusedError(f"{url.text!r} must match a pattern of the setting `git.allowed_urls`")


def _list_forms(url: GitUrl) -> tuple[str, ...]:
    if url.is_local:
        return (url.text, f"file://{url.text}")
    if _WITH_SCHEME.match(url.text):
        return (url.text,)
    host, path = url.text.split(":", 1)
    return (url.text, f"ssh://{host}/{path.lstrip('/')}")
