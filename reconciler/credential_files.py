"""Small files with credentials. A file is read again after each change, so that a rotated credential is used at once.

This module contains no code for formats of credentials, except for the allowed characters of tokens, and for files with
one secret per line. Messages never contain the content of a file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from reconciler.redaction import register_secret

_MAX_BYTES = 1024 * 1024
# Reject all other characters, because they make an HTTP header invalid. The HTTP client would then include the token in
# its error message.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_NO_VERSION = (-1, -1, -1)

FileVersion = tuple[int, int, int]
"""The modification time, the size and the inode of a file. If one of them is different, the file has changed."""


def get_file_version(status: os.stat_result) -> FileVersion:
    """Return the version of a file with these attributes."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_file_version(file: Path) -> FileVersion | None:
    """Return the version of a file. Return None if the file does not exist or is not accessible."""
    try:
        return get_file_version(file.stat())
    except OSError:
        return None


def is_token(text: str) -> bool:
    """Return whether a text can be the value of a header without escaping."""
    return bool(_TOKEN.fullmatch(text))


class SecretFileError(Exception):
    """The file cannot be read, or contains no secret. The message contains no part of its content."""


def read_secrets(file: Path) -> tuple[bytes, ...]:
    """Return the secrets in a file, one per line. Logs mask the secrets.

    Several secrets make a rotation without downtime possible.

    Raises:
        SecretFileError: The file cannot be read, or contains no secret.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise SecretFileError(f"{file}: the secret file must be readable: {error.strerror}") from None
    secrets = tuple(line.strip() for line in lines if line.strip())
    if not secrets:
        raise SecretFileError(f"{file}: must contain at least one secret, one per line")
    register_secret(*(secret.decode(errors="replace") for secret in secrets))
    return secrets


class CredentialFileError(Exception):
    """The file cannot be read, is too large, or is not UTF-8 text. The message contains no part of its content."""


class CredentialFile:
    """A small text file whose content is cached until its version changes. The object is thread-safe.

    The version is that of the target of a symbolic link. Therefore, a mounted Secret of Kubernetes changes when
    Kubernetes replaces the link `..data`.
    """

    def __init__(self, file: Path, max_bytes: int = _MAX_BYTES) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._cached: tuple[FileVersion, str] | None = None

    def read(self) -> str:
        """Return the current content of the file.

        Raises:
            CredentialFileError: The file cannot be read.
        """
        try:
            status = self._file.stat()
            version = get_file_version(status)
            # Read `self._cached` only once, because another thread can replace it between two reads.
            cached = self._cached
            if cached is None or cached[0] != version:
                if status.st_size > self._max_bytes:
                    raise CredentialFileError(
                        f"the credentials file {self._file} is larger than {self._max_bytes} bytes"
                    )
                cached = (version, self._file.read_text("utf-8"))
                self._cached = cached
        except OSError as error:
            raise CredentialFileError(f"cannot read the credentials file {self._file}: {error.strerror}") from error
        except UnicodeDecodeError:
            # Do not chain the original exception, because it contains the content of the file.
            raise CredentialFileError(f"the credentials file {self._file} is not UTF-8 text") from None
        return cached[1]

    @property
    def last_content(self) -> str | None:
        """The content that the last successful call of `read` returned. None if there was no such call."""
        return self._cached[1] if self._cached else None

    def expire(self) -> None:
        """Let the next call of `read` read the file, even if its attributes have not changed."""
        if self._cached:
            self._cached = (_NO_VERSION, self._cached[1])
