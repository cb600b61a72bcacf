"""The error of all modules that read sources."""

from __future__ import annotations

from typing import Self

from reconciler.krm.internal_errors import ExpectedError
from reconciler.packages.artifacts import SourceProblem


class SourceError(ExpectedError):
    """A source cannot be read. The message contains no credentials.

    Attributes:
        code: The name of the finding code.
        should_retry: Whether a later attempt can succeed without a change by a person.
    """

    def __init__(self, code: str, message: str, *, should_retry: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.should_retry = should_retry

    @classmethod
    def from_problem(cls, problem: SourceProblem) -> Self:
        """Create a new error. Do not raise one error object twice, because it keeps the stack frames of each raise."""
        return cls(problem.code, problem.message, should_retry=problem.should_retry)

    @property
    def problem(self) -> SourceProblem:
        """The error as a value."""
        return SourceProblem(self.code, self.message, self.should_retry)
