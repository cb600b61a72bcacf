"""The interface of a channel, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from reconciler.krm.findings import Finding
from reconciler.krm.internal_errors import ExpectedError
from reconciler.notifications.messages import Message


class ChannelError(ExpectedError):
    """A message could not be sent. The message of the exception contains no secret.

    Attributes:
        retry_seconds: The time that the service asks to wait. None if the service gives no time.
        finding: The finding about the setting that is the cause of the error. None if the error can be temporary.
    """

    def __init__(self, message: str, retry_seconds: float | None = None, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds
        self.finding = finding


class Channel(Protocol):
    """Formats messages for one service, and sends them."""

    def send(self, message: Message) -> Mapping[str, str]:
        """Send a message. Return the data to store for later messages of the thread.

        Raises:
            ChannelError: The message could not be sent.
        """
        ...

    def format(self, message: Message) -> str:
        """Return the content that `send` sends, without secrets."""
        ...
