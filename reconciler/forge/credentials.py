"""Tokens from files, as headers of requests. No message and no representation holds one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from reconciler.forge.errors import ForgeCredentialsError
from reconciler.forge.http import Authorize

_LARGEST = 16 * 1024
# any other character would make the header invalid, and the HTTP client would quote it in its complaint
_TOKEN = re.compile(r"[\x21-\x7e]+")


def token_from(file: Path, header: str = "Authorization", prefix: str = "Bearer ") -> Authorize:
    """Return what puts the token in `file` into a header, reading the file anew whenever it changed.

    Blanks around the token do not count. Raises nothing by itself: the file may come later.
    """
    watched = WatchedFile(file)

    def authorize() -> Mapping[str, str]:
        token = watched.read().strip()
        if not is_token(token):
            said = "is empty" if not token else "must hold one token: printable ASCII characters and no blanks"
            raise ForgeCredentialsError(f"the credentials file {file} {said}")
        return {header: prefix + token}

    return authorize


def is_token(text: str) -> bool:
    """Return whether a text can stand in a header as it is."""
    return bool(_TOKEN.fullmatch(text))


class WatchedFile:
    """A small text file that is read once for each of its versions."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read: tuple[tuple[int, int, int], str] | None = None

    def read(self) -> str:
        """Return the content as it is now. Raises ForgeCredentialsError, which never quotes it."""
        try:
            now = self._file.stat()
            version = (now.st_mtime_ns, now.st_size, now.st_ino)
            # one look at the field, since threads share it
            known = self._read
            if known is None or known[0] != version:
                self._refuse_large(now.st_size)
                known = (version, self._file.read_text("utf-8"))
                self._read = known
        except OSError as error:
            raise ForgeCredentialsError(f"cannot read the credentials file {self._file}: {error.strerror}") from error
        except UnicodeDecodeError:
            # the cause would quote the content
            raise ForgeCredentialsError(f"the credentials file {self._file} is not UTF-8 text") from None
        return known[1]

    def _refuse_large(self, size: int) -> None:
        if size > _LARGEST:
            raise ForgeCredentialsError(f"the credentials file {self._file} is larger than {_LARGEST} bytes")
