"""Repository URLs: the one normal form by which two spellings of a Git URL are recognized as the same repository.

The normal form is for comparison only. Git is always given the URL as it was written, and what was recorded or
published keeps its spelling. Nothing here accesses a file system or a network.
"""

from __future__ import annotations

import posixpath
import re

_WITH_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/]*)(?P<path>.*)\Z", re.DOTALL)
_SCP_STYLE = re.compile(r"(?P<authority>(?:[^@:/]*@)?(?:\[[^\]]*\]|[^@:/]+)):(?P<path>.+)\Z", re.DOTALL)
_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418"}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# RFC 3986, section 2.3: an escaped unreserved character means the same as the character itself
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def repository_id(url: str) -> str:
    """Return the normal form of a repository's URL: equal texts name the same repository.

    The suffix `.git`, surplus slashes and `.` segments have no effect. Neither have the case of scheme and host, a
    default port, a user name, and escapes of unreserved characters. `host:path` is `ssh://host/path`, and `file:///path`
    is `/path`. A relative path stays relative.
    """
    known = _WITH_SCHEME.match(url)
    if known:
        scheme = known["scheme"].lower()
        if scheme == "file":
            return _with_suffix(_path(_unescape(known["path"], every=True)))
        return f"{scheme}://{_host(known['authority'], scheme)}{_with_suffix(_path(known['path']))}"
    scp = None if url.startswith(("/", ".")) else _SCP_STYLE.match(url)
    if scp:
        return f"ssh://{_host(scp['authority'], 'ssh')}{_with_suffix(_path('/' + scp['path']))}"
    return _with_suffix(_path(url))


def is_same_repository(one: str, other: str) -> bool:
    """Return whether two URLs name the same repository, whichever protocol each of them uses to access it."""
    if one == other:
        return True
    first, second = repository_id(one), repository_id(other)
    return first == second or _place(first) == _place(second)


def _place(url: str) -> tuple[str, str]:
    """Return host and path of a normal form; a local path has no host. Ports differ between protocols."""
    known = _WITH_SCHEME.match(url)
    if known is None:
        return "", url
    return re.sub(r":\d+\Z", "", known["authority"]), known["path"]


def _host(authority: str, scheme: str) -> str:
    host = authority.rpartition("@")[2].lower()
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and not name.endswith(":"):
        return name.rstrip(".") if port == _PORTS.get(scheme) else f"{name.rstrip('.')}:{port}"
    # a port may be left empty
    return host.rstrip(":.")


def _path(path: str) -> str:
    normal = posixpath.normpath(_unescape(path))
    # POSIX gives two slashes at the beginning a meaning of their own; Git does not
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def _unescape(path: str, *, every: bool = False) -> str:
    def plain(escape: re.Match[str]) -> str:
        character = chr(int(escape[1], 16))
        return character if character in _UNRESERVED or (every and character.isascii()) else escape[0].upper()

    return _ESCAPE.sub(plain, path)


def _with_suffix(path: str) -> str:
    bare = path.removesuffix("/.git")
    return bare if bare.endswith(".git") else f"{bare}.git"
