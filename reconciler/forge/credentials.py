"""Reads tokens from files, and builds request headers with them. Messages and `repr` never contain a token."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.credential_files import CredentialFile, CredentialFileError, is_token
from reconciler.forge.errors import ForgeCredentialsError
from reconciler.forge.http_client import Authorize
from reconciler.redaction import Secret

_MAX_BYTES = 16 * 1024


def read_token_from(file: Path, header: str = "Authorization", prefix: str = "Bearer ") -> Authorize:
    """Return a function that builds the header with the token in `file`.

    The function reads the file again after each change of the file. Whitespace around the token is ignored. The file
    can be created after this call, but must exist when the function is called.
    """
    watched = WatchedFile(file)

    def authorize() -> Mapping[str, str]:
        token = watched.read().strip()
        if not is_token(token):
            problem = "is empty" if not token else "must contain one token: printable ASCII characters and no spaces"
            raise ForgeCredentialsError(f"the credentials file {file} {problem}")
        return {header: prefix + Secret(token).reveal()}

    return authorize


class WatchedFile:
    """A small text file whose content is cached until the file changes."""

    def __init__(self, file: Path) -> None:
        self._file = CredentialFile(file, _MAX_BYTES)

    def read(self) -> str:
        """Return the current content of the file.

        Raises:
            ForgeCredentialsError: The file cannot be read. The message never contains the content.
        """
        try:
            return self._file.read()
        except CredentialFileError as error:
            raise ForgeCredentialsError(str(error)) from error.__cause__
