"""Isolation boundaries: convert an unexpected exception in one scope into a value, so that all other scopes continue.

A scope is a config file, an object, a package, a function call, the state of a target, or a remote. This module is the
only place that catches all exceptions within a pass. It does not log. The exception is stored in an `InternalFailure`,
and the service writes its traceback to the log.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import FrameType
from typing import Self

from reconciler.redaction import redact_urls

_REFERENCE_LENGTH = 12
# The traceback of a deep recursion repeats itself. Its end shows the cause.
_MAX_TRACEBACK_CHARACTERS = 20_000
# The place where these exceptions occur depends on stack depth and available memory, not on the input.
_RESOURCE_ERRORS = (MemoryError, RecursionError)


class ExpectedError(Exception):
    """Base class of exceptions that have their own handler. Isolation boundaries do not catch them."""


@dataclass(frozen=True)
class InternalFailure:
    """An unexpected exception in one scope.

    `reference` depends only on the exception type and on the function that raised it. A second pass and another replica
    therefore report the same text. `traceback` is for the log only.
    """

    scope: str
    reference: str
    error_type: str
    traceback: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_exception(cls, scope: str, error: BaseException) -> Self:
        """Return the failure for an exception that was raised in a scope."""
        error_type = type(error).__name__
        function = "" if isinstance(error, _RESOURCE_ERRORS) else _find_raising_function(error)
        reference = sha256(f"{error_type} {function}".encode()).hexdigest()[:_REFERENCE_LENGTH]
        return cls(scope, reference, error_type, redact_urls(_format_traceback(error)))

    def with_scope(self, scope: str) -> Self:
        """Return the same failure for a smaller scope that caused it."""
        return replace(self, scope=scope)

    @property
    def message(self) -> str:
        """The message for users. It omits the text of the exception, which may contain any input value."""
        return (
            f"{self.scope}: an unexpected {self.error_type} stopped its processing; its published content and drafts"
            f" stay unchanged, and all other processing continues (next step: report the traceback in the log with"
            f" reference {self.reference})"
        )


class ScopeFailedError(ExpectedError):
    """The processing of one scope failed with an unexpected exception."""

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    def __reduce__(self) -> tuple[type[ScopeFailedError], tuple[InternalFailure]]:
        return type(self), (self.failure,)


@contextmanager
def isolation_boundary(
    scope: str, create_error: Callable[[InternalFailure], Exception] = ScopeFailedError
) -> Iterator[None]:
    """Convert every unexpected exception in the block into the exception that `create_error` returns.

    An `ExpectedError` and exceptions that stop the process are not converted.
    """
    try:
        yield
    except ExpectedError:
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or _is_panic(error)):
            raise
        raise create_error(InternalFailure.from_exception(scope, error)) from error


def _is_panic(error: BaseException) -> bool:
    # PyO3 raises a panic of a Rust library as a subclass of BaseException.
    return type(error).__name__ == "PanicException"


def _find_raising_function(error: BaseException) -> str:
    """Return the qualified name of the innermost function of this program in the traceback."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    functions = [_get_qualified_name(frame) for frame in frames if _get_module_name(frame).startswith("reconciler.")]
    return functions[-1] if functions else ""


def _get_qualified_name(frame: FrameType) -> str:
    return f"{_get_module_name(frame)}.{frame.f_code.co_qualname}"


def _get_module_name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _format_traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_CHARACTERS:]
    except (MemoryError, RecursionError):
        return f"{type(error).__name__}: there is not enough memory to format the traceback"
