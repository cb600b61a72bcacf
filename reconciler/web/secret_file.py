"""The file of webhook secrets: one on each line, so that they can be rotated without a gap."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from reconciler.daemon.events import log


class SecretFileError(Exception):
    """The file holds no secret or cannot be read; the text names it and never quotes it."""


class SecretFile:
    """Secrets as they stand in a file now. Raises SecretFileError where there is none to begin with."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()
        self._state = self._look()
        self._secrets = self._read()

    def secrets(self) -> tuple[bytes, ...]:
        """Return the secrets, read anew when the file changed; () once it cannot be used, which is logged."""
        with self._lock:
            state = self._look()
            if state != self._state:
                self._state = state
                self._secrets = self._read_again()
            return self._secrets

    def _look(self) -> tuple[int, ...]:
        try:
            found = self._file.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read_again(self) -> tuple[bytes, ...]:
        try:
            secrets = self._read()
        except SecretFileError as error:
            # who takes the file away wants nobody let in with what it held
            log.error("webhook_secrets_lost", why=str(error))
            return ()
        log.info("webhook_secrets_reloaded", secrets=len(secrets))
        return secrets

    def _read(self) -> tuple[bytes, ...]:
        try:
            lines = self._file.read_bytes().splitlines()
        except OSError as error:
            raise SecretFileError(f"{self._file}: the file of secrets must be readable: {error.strerror}") from None
        secrets = tuple(line.strip() for line in lines if line.strip())
        if not secrets:
            raise SecretFileError(f"{self._file}: must hold a secret, one on each line")
        return secrets
