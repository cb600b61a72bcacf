"""Secrets of channels. A file is read for each message, so that the next message uses a changed secret."""

from __future__ import annotations

from pathlib import Path

from reconciler import credential_files
from reconciler.notifications.channel import ChannelError


def read_secrets(file: str) -> tuple[str, ...]:
    """Return the secrets in a file, one per line. Logs mask the secrets.

    Raises:
        ChannelError: The file cannot be read, or contains no secret.
    """
    path = Path(file).expanduser()
    try:
        return tuple(secret.decode() for secret in credential_files.read_secrets(path))
    except credential_files.SecretFileError as error:
        raise ChannelError(str(error)) from None
    except UnicodeDecodeError:
        raise ChannelError(f"{path}: the secret file must be a text file") from None


def read_secret(file: str) -> str:
    """Return the first secret in a file.

    Raises:
        ChannelError: The file cannot be read, or contains no secret.
    """
    return read_secrets(file)[0]
