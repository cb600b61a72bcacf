"""The encrypted file with the sessions of people, so that they stay signed in after a restart of the service."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from reconciler.credential_files import SecretFileError, read_secrets
from reconciler.git.filesystem import replace_file
from reconciler.lazy_dataclasses import dataclass
from reconciler.server.authentication.reloaded_file import ReloadedFile
from reconciler.server.authentication.session_store import StoredSession, delete_session_file
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MIN_KEY_CHARACTERS = 32
_KEY_BYTES = 32
_KEY_PURPOSE = b"reconciler console sessions"


@dataclass(frozen=True)
class SavedSessions:
    """The content of a session file.

    Attributes:
        form_key: The key of the CSRF tokens of forms, as hexadecimal digits.
        sessions: Maps the ID of a session to the session.
    """

    form_key: str
    sessions: Mapping[str, StoredSession]


def read_session_keys(file: Path) -> MultiFernet:
    """Return the keys in a file, one per line. The first key encrypts, and all keys decrypt.

    Raises:
        SecretFileError: The file cannot be read, or a key is too short.
    """
    keys = read_secrets(file)
    if any(len(key) < MIN_KEY_CHARACTERS for key in keys):
        raise SecretFileError(
            f"{file}: each line must be a key of at least {MIN_KEY_CHARACTERS} random characters; create a key with"
            " `head -c 32 /dev/urandom | base64`"
        )
    return MultiFernet([Fernet(_derive_key(key)) for key in keys])


def _derive_key(secret: bytes) -> bytes:
    return urlsafe_b64encode(HKDF(SHA256(), _KEY_BYTES, salt=None, info=_KEY_PURPOSE).derive(secret))


class SessionFile:
    """Stores sessions. An error is logged and not raised, because people can sign in again.

    Args:
        keys: The keys that encrypt the file. If they cannot be read any more, no sessions are stored.
    """

    def __init__(self, file: Path, keys: ReloadedFile[MultiFernet]) -> None:
        self._file = file
        self._keys = keys

    @cached_property
    def _adapter(self) -> TypeAdapter[SavedSessions]:
        from pydantic import TypeAdapter

        return TypeAdapter(SavedSessions)

    def read(self) -> SavedSessions | None:
        """Return the stored sessions. Return None if there is no file, or if it cannot be decrypted or read."""
        keys = self._keys.read()
        try:
            return self._adapter.validate_json(keys.decrypt(self._file.read_bytes())) if keys else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, InvalidToken) as error:
            # Start without sessions: the key may have changed, or a different version may have written the file.
            log.warning("sessions_unreadable", file=str(self._file), message=type(error).__name__)
            return None

    def write(self, saved: SavedSessions) -> None:
        """Store sessions. If an error occurs, delete the file, because it can contain sessions that have ended."""
        keys = self._keys.read()
        if keys is None:
            delete_session_file(self._file)
            return
        try:
            replace_file(self._file, keys.encrypt(self._adapter.dump_json(saved)))
        except OSError as error:
            log.warning("sessions_store_failed", file=str(self._file), message=error.strerror)
            delete_session_file(self._file)
