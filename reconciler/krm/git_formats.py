"""Text formats of Git: repository URLs and commit trailers. This module does not use the file system or the network."""

from __future__ import annotations

import posixpath
import re

_WITH_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>.*)\Z", re.DOTALL)
_SCP_STYLE = re.compile(r"(?P<authority>(?:[^@:/]*@)?(?:\[[^\]]*\]|[^@:/]+)):(?P<path>.+)\Z", re.DOTALL)
_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418"}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# Unescape only the unreserved characters of RFC 3986 (section 2.3). For other characters, the escaped and the plain
# form can be different URLs.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalize_repository_url(url: str) -> str:
    """Return the normal form of a repository URL. Two URLs with the same normal form identify the same repository.

    Use the normal form only to compare URLs. Pass the original URL to Git, and store the original URL in files.

    The normalization adds the suffix `.git` if it is missing. It removes redundant slashes, `.` segments, default
    ports, user names, and escapes of unreserved characters. It converts scheme and host to lower case. `host:path`
    becomes `ssh://host/path`, and `file:///path` becomes `/path`. A relative path stays relative.
    """
    match = _WITH_SCHEME.match(url)
    if match:
        scheme = match["scheme"].lower()
        if scheme == "file":
            return _add_suffix(_normalize_path(_unescape(match["path"], all_ascii=True)))
        return f"{scheme}://{_normalize_host(match['authority'], scheme)}{_add_suffix(_normalize_path(match['path']))}"
    scp = None if url.startswith(("/", ".")) else _SCP_STYLE.match(url)
    if scp:
        return f"ssh://{_normalize_host(scp['authority'], 'ssh')}{_add_suffix(_normalize_path('/' + scp['path']))}"
    return _add_suffix(_normalize_path(url))


def is_same_repository(first: str, second: str) -> bool:
    """Return whether two URLs identify the same repository, even if one URL uses HTTPS and the other uses SSH."""
    if first == second:
        return True
    first_normal, second_normal = normalize_repository_url(first), normalize_repository_url(second)
    return first_normal == second_normal or _split_host_and_path(first_normal) == _split_host_and_path(second_normal)


def _split_host_and_path(url: str) -> tuple[str, str]:
    """Return host and path of a normalized URL. The host of a local path is "".

    The port is omitted, because the same host uses different ports for different protocols.
    """
    match = _WITH_SCHEME.match(url)
    if match is None:
        return "", url
    return re.sub(r":\d+\Z", "", match["authority"]), match["path"]


def _normalize_host(authority: str, scheme: str) -> str:
    host = authority.rpartition("@")[2].lower()
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and not name.endswith(":"):
        return name.rstrip(".") if port == _PORTS.get(scheme) else f"{name.rstrip('.')}:{port}"
    # Remove a colon without a port number, because `https://host:/path` is a valid URL.
    return host.rstrip(":.")


def _normalize_path(path: str) -> str:
    normal = posixpath.normpath(_unescape(path))
    # Replace two leading slashes by one slash, because `normpath` keeps two leading slashes, and Git does not
    # distinguish them from one slash.
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def _unescape(path: str, *, all_ascii: bool = False) -> str:
    def unescape_character(escape: re.Match[str]) -> str:
        character = chr(int(escape[1], 16))
        return character if character in _UNRESERVED or (all_ascii and character.isascii()) else escape[0].upper()

    return _ESCAPE.sub(unescape_character, path)


def _add_suffix(path: str) -> str:
    bare = path.removesuffix("/.git")
    return bare if bare.endswith(".git") else f"{bare}.git"


PACKAGE_TRAILER = "Reconciler-Package"
"""The trailer with the package path, in each commit and tag of one package."""
WORKSPACE_TRAILER = "Reconciler-Workspace"
"""The trailer that contains the workspace name in the tag of a published revision."""
APPROVED_BY_TRAILER = "Reconciler-Approved-By"
"""The trailer with the person who approved a draft."""
APPROVED_VIA_TRAILER = "Reconciler-Approved-Via"
"""The trailer with the method by which a draft was approved, such as `cli`."""
_TRAILER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): (.*)")
# Match the beginning of a tag signature. The signature is removed before the trailers are read, because no empty line
# separates it from the trailers.
_SIGNATURE = re.compile(r"^-----BEGIN ", re.MULTILINE)


def parse_trailers(message: str) -> dict[str, str]:
    """Return the trailers of a commit or tag message by name. If a name is repeated, return its last value."""
    return dict(list_trailers(message))


def list_trailers(message: str) -> list[tuple[str, str]]:
    """Return the trailers (`Name: value`) in the last paragraph of a commit message or tag message."""
    text = _SIGNATURE.split(message, maxsplit=1)[0].rstrip()
    # Ignore a message with only one paragraph, because this paragraph is the subject of the commit.
    _, _, last_paragraph = text.rpartition("\n\n")
    if last_paragraph == text:
        return []
    matches = map(_TRAILER.fullmatch, last_paragraph.splitlines())
    return [(match[1], match[2]) for match in matches if match]
