"""What can go wrong between us and a forge, named by what to do next. Messages never hold credentials.

ForgeError                    next step
├── ForgeUnreachableError     retry   no answer, or one that is the forge's own trouble (5xx)
├── ForgeBusyError            wait    a limit of the forge or a budget of ours; `until` says when to ask again
├── ForgeRefusedError         human   the forge declined, in these words
│   └── HeadMovedError        retry   the head is not the commit that was named
├── ForgeMissingError         human   no such repository or pull request, or it may not be seen
├── ForgeCredentialsError     human   the credentials are missing, unreadable or not accepted
├── ForgeAnswerError          human   an answer that no forge of this kind gives
└── InternalForgeError        human   an unexpected exception; the log has its traceback
"""

from __future__ import annotations

from typing import ClassVar, Literal

from reconciler.krm.isolation import ExpectedError, InternalFailure

NextStep = Literal["retry", "wait", "human"]


class ForgeError(ExpectedError):
    """Something between us and a forge went wrong; `next_step` says who acts next."""

    next_step: ClassVar[NextStep] = "retry"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ForgeUnreachableError(ForgeError):
    """The forge did not answer, or has trouble of its own."""


class ForgeBusyError(ForgeError):
    """A limit of the forge, or a budget of ours, is used up until a moment in seconds since 1970."""

    next_step: ClassVar[NextStep] = "wait"

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class ForgeRefusedError(ForgeError):
    """The forge declined; the same content will be declined again. `status` is HTTP's, 0 where it has no part in it."""

    next_step: ClassVar[NextStep] = "human"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class HeadMovedError(ForgeRefusedError):
    """The head of the pull request is not the commit that was named."""

    next_step: ClassVar[NextStep] = "retry"


class ForgeMissingError(ForgeError):
    """There is no such repository or pull request, or these credentials may not see it."""

    next_step: ClassVar[NextStep] = "human"


class ForgeCredentialsError(ForgeError):
    """The credentials are missing, unreadable or not accepted."""

    next_step: ClassVar[NextStep] = "human"


class ForgeAnswerError(ForgeError):
    """The answer is none that a forge of this kind gives: a proxy's page, another product, a newer version."""

    next_step: ClassVar[NextStep] = "human"


class InternalForgeError(ForgeError):
    """The work on the pull requests of one repository ended with an unexpected exception."""

    next_step: ClassVar[NextStep] = "human"

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure
