"""Credentials of one remote: found in a file by the remote's address, and passed to git in a file descriptor.

Git reads them through a credential helper that is limited to the remote's own URL. They are in no argument, no URL and
no environment variable of a process. This module does not write the file.
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

from reconciler.git.errors import AccessDeniedError
from reconciler.git.url import GitUrl
from reconciler.redaction import register_secret, split_url

_PORTS = {"https": 443, "http": 80}
_UNSAFE = ("\n", "\r", "\0")


@dataclass(frozen=True)
class Credential:
    """A user name and a password for a scheme, host, port and path prefix ("" for all paths)."""

    scheme: str
    host: str
    port: int
    path: str
    username: str = field(repr=False)
    password: str = field(repr=False)

    def matches(self, url: GitUrl) -> bool:
        """Return whether these credentials are for a remote; a path prefix ends at a slash or at `.git`."""
        parts = urlsplit(url.connection_url)
        address = (url.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(url.scheme, 0))
        return address == (self.scheme, self.host, self.port) and _is_below(unquote(parts.path).strip("/"), self.path)


def _is_below(path: str, prefix: str) -> bool:
    plain_path, plain_prefix = path.removesuffix(".git"), prefix.removesuffix(".git")
    return not plain_prefix or plain_path == plain_prefix or path.startswith(f"{plain_prefix}/")


@dataclass(frozen=True)
class CredentialHelper:
    """Git settings with which one call reads its credentials, and the file descriptors that the call inherits."""

    settings: tuple[tuple[str, str], ...] = ()
    descriptors: tuple[int, ...] = ()


def find_credential(file: str, url: GitUrl) -> Credential | None:
    """Return the first credentials of a file that match a remote, or None.

    Each call reads the file, so that a rotated token applies at once. Every password in the file is registered for
    redaction.

    Raises:
        AccessDeniedError: The file cannot be read.
    """
    try:
        text = Path(file).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise AccessDeniedError(f"git.credentials_file {file} cannot be read: {error.strerror}") from error
    credentials = [credential for line in text.splitlines() if (credential := parse_credential(line.strip()))]
    for credential in credentials:
        register_secret(credential.password)
        register_secret(quote(credential.password, safe=""))
    return next((credential for credential in credentials if credential.matches(url)), None)


def parse_credential(line: str) -> Credential | None:
    """Parse a line `https://user:token@host[:port][/path]`; return None for any other line."""
    scheme, separator, body = line.partition("://")
    authority, slash, path = body.partition("/")
    if "@" not in authority:
        # The token contains an unescaped slash.
        parts = split_url(line)
        authority, slash, path = f"{parts.user_information}@", *parts.rest.partition("/")[1:]
        authority += parts.rest.partition("/")[0]
    user_information, at, host_and_port = authority.rpartition("@")
    username, colon, password = (unquote(part) for part in user_information.partition(":"))
    if not (separator and at and colon and username and password) or scheme.lower() not in _PORTS:
        return None
    if any(sign in username + password for sign in _UNSAFE):
        return None
    try:
        parsed = urlsplit(f"{scheme.lower()}://{host_and_port}{slash}")
        port = parsed.port or _PORTS[parsed.scheme]
    except ValueError:
        return None
    return Credential(parsed.scheme, parsed.hostname or "", port, unquote(path).strip("/"), username, password)


@contextmanager
def provide_credential(credential: Credential, url: GitUrl) -> Iterator[CredentialHelper]:
    """Yield settings that let git read credentials for one remote, and for no other host or path."""
    text = f"username={credential.username}\npassword={credential.password}\n".encode(errors="surrogateescape")
    with _open_readable_file(text) as (file, descriptors):
        # Git runs the helper once for each of its own processes, so that the content must be readable more than once.
        helper = f'!f() {{ test "$1" = get && exec cat {shlex.quote(file)}; }}; f'
        settings = (
            # A helper without a scope would also answer the host of a redirect.
            *((f"credential.{scope}.helper", helper) for scope in _get_url_forms(url)),
            ("credential.useHttpPath", "true"),
            ("http.followRedirects", "false"),
        )
        yield CredentialHelper(settings, descriptors)


def _get_url_forms(url: GitUrl) -> tuple[str, ...]:
    """Return the URL in the two forms that Git versions compare: unchanged, and with escaped reserved characters."""
    parts = urlsplit(url.connection_url)
    escaped = f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path), safe='/')}"
    return tuple(dict.fromkeys((url.connection_url, escaped)))


@contextmanager
def _open_readable_file(content: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a path at which a child process can read `content`, and the descriptors that it must inherit."""
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
