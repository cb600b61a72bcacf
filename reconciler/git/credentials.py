"""User names and passwords for HTTP remotes: the format of credentials files, and the credential helper of git.

Git reads the credentials through a credential helper that is limited to the URL of the remote, from a file descriptor.
No argument, URL or environment variable of a process contains credentials.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from reconciler.git.url import GitUrl
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import Secret, split_url

_PORTS = {"https": 443, "http": 80}
_UNSAFE = ("\n", "\r", "\0")


@dataclass(frozen=True)
class Credential:
    """A user name and a password for all remotes with this scheme, host, port and path prefix ("" for all paths)."""

    scheme: str
    host: str
    port: int
    path: str
    username: str = field(repr=False)
    password: Secret

    def matches(self, url: GitUrl) -> bool:
        """Return whether these credentials are for the remote `url`.

        The path prefix must be a whole folder: `acme` matches `acme/app` and `acme.git`, but not `acme-test`.
        """
        parts = urlsplit(url.connection_url)
        address = (url.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(url.scheme, 0))
        return address == (self.scheme, self.host, self.port) and _is_below(unquote(parts.path).strip("/"), self.path)


def _is_below(path: str, prefix: str) -> bool:
    plain_path, plain_prefix = path.removesuffix(".git"), prefix.removesuffix(".git")
    return not plain_prefix or plain_path == plain_prefix or path.startswith(f"{plain_prefix}/")


@dataclass(frozen=True)
class CredentialHelper:
    """Git settings with which a git process reads its credentials, and the file descriptors that it must inherit."""

    settings: tuple[tuple[str, str], ...]
    descriptors: tuple[int, ...]


def find_credential(text: str, url: GitUrl) -> Credential | None:
    """Return the first credentials in the text of a file that match the remote `url`. Return None if none match.

    Every password in the text is registered for redaction.
    """
    credentials = [credential for line in text.splitlines() if (credential := parse_credential(line.strip()))]
    return next((credential for credential in credentials if credential.matches(url)), None)


def parse_credential(line: str) -> Credential | None:
    """Parse a line of the form `https://user:token@host[:port][/path]`. Return None for a line of any other form."""
    scheme, separator, body = line.partition("://")
    authority, slash, path = body.partition("/")
    if "@" not in authority:
        # Search for the "@" in the whole URL, because the token can contain an unescaped slash.
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
    path_prefix = unquote(path).strip("/")
    return Credential(parsed.scheme, parsed.hostname or "", port, path_prefix, username, Secret(password))


@contextmanager
def provide_credential(username: str, password: Secret, url: GitUrl) -> Iterator[CredentialHelper]:
    """Yield Git settings that let git read the credentials for the remote `url`, and for no other host or path."""
    text = f"username={username}\npassword={password.reveal()}\n".encode(errors="surrogateescape")
    with _open_readable_file(text) as (file, descriptors):
        # Use a file that can be read more than once, because each process that git starts runs the helper again.
        helper = f'!f() {{ test "$1" = get && exec cat {shlex.quote(file)}; }}; f'
        settings = (
            # Limit the helper to this URL. Without this limit, the helper also sends the credentials to the host of a
            # redirect.
            *((f"credential.{scope}.helper", helper) for scope in _get_url_forms(url)),
            ("credential.useHttpPath", "true"),
            ("http.followRedirects", "false"),
        )
        yield CredentialHelper(settings, descriptors)


def _get_url_forms(url: GitUrl) -> tuple[str, ...]:
    """Return the URL unchanged and with escaped reserved characters, because Git versions compare different forms."""
    parts = urlsplit(url.connection_url)
    escaped = f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path), safe='/')}"
    return tuple(dict.fromkeys((url.connection_url, escaped)))


@contextmanager
def _open_readable_file(content: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a path at which a child process can read `content`, and the descriptors that the process must inherit."""
    if not hasattr(os, "memfd_create"):
        with write_private_file(content) as file:
            yield file, ()
        return
    descriptor = os.memfd_create("credential", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(content)
        memory.flush()
        yield f"/proc/self/fd/{descriptor}", (descriptor,)


@contextmanager
def write_private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a temporary file with `content` that only the current user can read."""
    with tempfile.TemporaryDirectory(prefix="reconciler-", dir=os.environ.get("XDG_RUNTIME_DIR")) as folder:
        file = Path(folder) / "credential"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        yield str(file)
