"""The credential helper with which git reads user names and passwords for HTTP remotes.

The credential helper reads the credentials from a file descriptor, and is limited to the URL of the remote. No
argument, URL or environment variable of a process contains credentials.
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
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import Secret


@dataclass(frozen=True)
class CredentialHelper:
    """Git settings with which a git process reads its credentials, and the file descriptors that it must inherit."""

    settings: tuple[tuple[str, str], ...]
    descriptors: tuple[int, ...]


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
    """Return two forms of the URL: unchanged, and with escaped reserved characters.

    The form that the setting `credential.<url>` requires depends on the version of Git.
    """
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
    """Write `content` to a temporary file that only the current user can read, and yield its path."""
    with tempfile.TemporaryDirectory(prefix="reconciler-", dir=os.environ.get("XDG_RUNTIME_DIR")) as folder:
        file = Path(folder) / "credential"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        yield str(file)
