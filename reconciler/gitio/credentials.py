"""Credentials of one remote: found in a file by the remote's address, and given to git over a file descriptor.

Git gets them from a helper that is scoped to the remote's own URL. No argument, no URL and no environment variable of
a process contains them. Nothing here writes the file.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from reconciler.gitio.errors import AccessDeniedError
from reconciler.gitio.url import GitUrl
from reconciler.redaction import register_secret, split_url

_PORTS = {"https": 443, "http": 80}
_UNSAFE = ("\n", "\r", "\0")


@dataclass(frozen=True)
class Credential:
    """A user name and a password, with the scheme, host, port and path prefix ("" for all paths) that they are for."""

    scheme: str
    host: str
    port: int
    path: str
    username: str = field(repr=False)
    password: str = field(repr=False)

    def matches(self, url: GitUrl) -> bool:
        """Return whether these credentials are for a remote; a path prefix ends at a slash or at `.git`."""
        parts = urlsplit(url.connect)
        place = (url.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(url.scheme, 0))
        return place == (self.scheme, self.host, self.port) and _is_below(unquote(parts.path).strip("/"), self.path)


def _is_below(path: str, prefix: str) -> bool:
    plain, wanted = path.removesuffix(".git"), prefix.removesuffix(".git")
    return not wanted or plain == wanted or path.startswith(f"{wanted}/")


@dataclass(frozen=True)
class GivenCredential:
    """Settings of git with which one call reads its credentials, and the descriptors that the call inherits."""

    settings: tuple[tuple[str, str], ...] = ()
    descriptors: tuple[int, ...] = ()


def find_credential(file: str, url: GitUrl) -> Credential | None:
    """Return the first credentials of a file that are for a remote, or None. Raises AccessDeniedError.

    The file is read at each use, so that a rotated token counts at once. Every password in it is registered for
    redaction.
    """
    try:
        text = Path(file).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise AccessDeniedError(f"git.credentials_file {file} cannot be read: {error.strerror}") from error
    found = [one for line in text.splitlines() if (one := parse_credential(line.strip()))]
    for one in found:
        register_secret(one.password)
        register_secret(quote(one.password, safe=""))
    return next((one for one in found if one.matches(url)), None)


def parse_credential(line: str) -> Credential | None:
    """Return the credentials of one line, `https://user:token@host[:port][/path]`; None for any other line."""
    scheme, mark, body = line.partition("://")
    authority, slash, path = body.partition("/")
    if "@" not in authority:
        # a token with an unescaped slash
        parts = split_url(line)
        authority, slash, path = f"{parts.user_information}@", *parts.rest.partition("/")[1:]
        authority += parts.rest.partition("/")[0]
    user_information, at, place = authority.rpartition("@")
    username, colon, password = (unquote(part) for part in user_information.partition(":"))
    if not (mark and at and colon and username and password) or scheme.lower() not in _PORTS:
        return None
    if any(sign in username + password for sign in _UNSAFE):
        return None
    try:
        parsed = urlsplit(f"{scheme.lower()}://{place}{slash}")
        port = parsed.port or _PORTS[parsed.scheme]
    except ValueError:
        return None
    return Credential(parsed.scheme, parsed.hostname or "", port, unquote(path).strip("/"), username, password)


@contextmanager
def give_credential(credential: Credential, url: GitUrl) -> Iterator[GivenCredential]:
    """Yield settings that let git read credentials for one remote, and for no other host or path, until the end."""
    text = f"username={credential.username}\npassword={credential.password}\n".encode(errors="surrogateescape")
    with _readable(text) as (place, descriptors):
        # git runs the helper once for each of its own processes; therefore the content is readable more than once
        helper = f'!f() {{ test "$1" = get && exec cat {shlex.quote(place)}; }}; f'
        settings = (
            # a helper without a scope would also answer the host of a redirect
            *((f"credential.{scope}.helper", helper) for scope in _scopes(url)),
            ("credential.useHttpPath", "true"),
            ("http.followRedirects", "false"),
        )
        yield GivenCredential(settings, descriptors)


def _scopes(url: GitUrl) -> tuple[str, ...]:
    """Return the URL as the two forms that versions of git compare: as it is, and with reserved characters escaped."""
    parts = urlsplit(url.connect)
    escaped = f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path), safe='/')}"
    return tuple(dict.fromkeys((url.connect, escaped)))


@contextmanager
def _readable(content: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a path at which a child process can read some bytes, and the descriptors that it must inherit for it."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryDirectory(prefix="reconciler-", dir=os.environ.get("XDG_RUNTIME_DIR")) as folder:
            file = Path(folder) / "credential"
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            yield str(file), ()
        return
    descriptor = os.memfd_create("credential", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(content)
        memory.flush()
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
