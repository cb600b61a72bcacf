"""Secrets of channels. A file is read for each message, so that a changed file has an effect immediately."""

from __future__ import annotations

from pathlib import Path

from reconciler.notifications.channel import ChannelError
from reconciler.redaction import register_secret


def read_secrets(file: str) -> tuple[str, ...]:
    """Return the secrets in a file, one per line. Logs mask the secrets.

    Raises:
        ChannelError: The file cannot be read, or contains no secret.
    """
    path = Path(file).expanduser()
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise ChannelError(f"{path}: the secret file must be readable: {reason}") from None
    secrets = tuple(line.strip() for line in lines if line.strip())
    if not secrets:
        raise ChannelError(f"{path}: must contain at least one secret, one per line")
    register_secret(*secrets)
    return secrets


def read_secret(file: str) -> str:
    """Return the first secret in a file.

    Raises:
        ChannelError: The file cannot be read, or contains no secret.
    """
    return read_secrets(file)[0]
