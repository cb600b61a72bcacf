"""A file with data for the identification of people. It is read again after each change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from reconciler.credential_files import SecretFileError, read_file_version
from reconciler.telemetry.event_log import log

Content = TypeVar("Content")


class ReloadedFile(Generic[Content]):
    """The parsed content of a file. The object is thread-safe.

    Args:
        parse: Reads the file. Raises SecretFileError if the file cannot be used.

    Raises:
        SecretFileError: The file cannot be used when the object is created.
    """

    def __init__(self, file: Path, parse: Callable[[Path], Content]) -> None:
        self._file = file
        self._parse = parse
        self._lock = Lock()
        self._version = read_file_version(file)
        self._content: Content | None = parse(file)

    def read(self) -> Content | None:
        """Return the current content. Return None if the changed file cannot be used."""
        with self._lock:
            version = read_file_version(self._file)
            if version != self._version:
                self._version = version
                self._content = self._reload()
            return self._content

    def _reload(self) -> Content | None:
        try:
            content = self._parse(self._file)
        except SecretFileError as error:
            # Do not keep the previous content, because an operator can delete the file to revoke its content.
            log.error("console_file_unreadable", file=str(self._file), message=str(error))
            return None
        log.info("console_file_reloaded", file=str(self._file))
        return content
