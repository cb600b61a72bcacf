"""The errors of forges, grouped by the next step. Messages never contain credentials.

| error                     | next step | cause                                                      |
|---------------------------|-----------|------------------------------------------------------------|
| ForgeError                |           | base class                                                 |
| ForgeUnreachableError     | retry     | no response, or a server error (5xx)                       |
| ForgeBusyError            | wait      | a rate limit; `until` is the time of the next attempt      |
| ForgeRefusedError         | human     | the forge rejected the request                             |
| HeadMovedError            | retry     | the head is not the expected commit                        |
| ForgeMissingError         | human     | the repository or pull request is missing or not visible   |
| ForgeCredentialsError     | human     | the credentials are missing, unreadable or invalid         |
| ForgeAnswerError          | human     | the response does not have the documented format           |
| InternalForgeError        | human     | an unexpected exception; the log contains the traceback    |
"""

from __future__ import annotations

from typing import ClassVar, Literal

from reconciler.krm.internal_errors import ExpectedError, InternalFailure

NextStep = Literal["retry", "wait", "human"]


class ForgeError(ExpectedError):
    """Base class of the errors of requests to a forge. `next_step` is the action that can solve the error."""

    next_step: ClassVar[NextStep] = "retry"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ForgeUnreachableError(ForgeError):
    """The forge did not respond, or responded with a server error."""


class ForgeBusyError(ForgeError):
    """A rate limit of the forge or of the settings is reached.

    Attributes:
        until: The end of the limit, in seconds since 1970.
    """

    next_step: ClassVar[NextStep] = "wait"

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class ForgeRefusedError(ForgeError):
    """The forge rejected the request, and would reject the same request again.

    `status` is the HTTP status of the response, or 0 if the error has no HTTP status.
    """

    next_step: ClassVar[NextStep] = "human"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class HeadMovedError(ForgeRefusedError):
    """The head of the pull request is not the expected commit, because another writer moved its branch."""

    next_step: ClassVar[NextStep] = "retry"


class ForgeMissingError(ForgeError):
    """The repository or pull request does not exist, or the account has no permission to read it."""

    next_step: ClassVar[NextStep] = "human"


class ForgeCredentialsError(ForgeError):
    """The credentials are missing, unreadable or invalid."""

    next_step: ClassVar[NextStep] = "human"


class ForgeAnswerError(ForgeError):
    """The response does not have the documented format, for example because it comes from a proxy."""

    next_step: ClassVar[NextStep] = "human"


class InternalForgeError(ForgeError):
    """An unexpected exception occurred while the pull requests of a repository were processed."""

    next_step: ClassVar[NextStep] = "human"

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure
