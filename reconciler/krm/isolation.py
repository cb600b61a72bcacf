"""Isolation boundaries: an unexpected exception in one scope becomes a value, so that all other scopes continue.

A scope is a config file, an object, a package, a function call, the state of a destination or a remote. This module is
the only place that catches all exceptions within a pass. It does not log: the exception is carried as an
`InternalFailure` to the daemon, which writes the traceback to the log.
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
# A traceback of a deep recursion repeats itself; its end names the cause.
_MAX_TRACEBACK_CHARACTERS = 20_000
# Where these are raised depends on the depth of the stack and on the memory of the machine, and not on the input.
_RAISED_ANYWHERE = (MemoryError, RecursionError)


class ExpectedError(Exception):
    """Base of exceptions that have their own handler: isolation boundaries let them pass."""


@dataclass(frozen=True)
class InternalFailure:
    """An unexpected exception in one scope.

    `reference` depends only on the type of the exception and the function that raised it, so that a second pass and
    another replica report the same text. `traceback` is for the log only.
    """

    scope: str
    reference: str
    error_type: str
    traceback: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_exception(cls, scope: str, error: BaseException) -> Self:
        """Return the failure that an exception causes in a scope."""
        name = type(error).__name__
        place = "" if isinstance(error, _RAISED_ANYWHERE) else _raising_function(error)
        reference = sha256(f"{name} {place}".encode()).hexdigest()[:_REFERENCE_LENGTH]
        return cls(scope, reference, name, redact_urls(_format_traceback(error)))

    def in_scope(self, scope: str) -> Self:
        """Return the same failure for a part of the scope that it was found to be caused by."""
        return replace(self, scope=scope)

    @property
    def message(self) -> str:
        """The text for people. It leaves out the exception's own text, which may contain any value of the input."""
        return (
            f"{self.scope}: an unexpected {self.error_type} ended the work on it; what is published and drafted of it"
            f" stays as it is, and everything else continues (next step: report the traceback that the log has under"
            f" reference {self.reference})"
        )


class ScopeFailedError(ExpectedError):
    """The work on one scope ended with an unexpected exception."""

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    def __reduce__(self) -> tuple[type[ScopeFailedError], tuple[InternalFailure]]:
        return type(self), (self.failure,)


@contextmanager
def boundary(scope: str, raising: Callable[[InternalFailure], Exception] = ScopeFailedError) -> Iterator[None]:
    """Turn every unexpected exception of the block into the exception that `raising` makes of it.

    Exceptions that stop the process, and an `ExpectedError`, pass unchanged.
    """
    try:
        yield
    except ExpectedError:
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or _is_panic(error)):
            raise
        raise raising(InternalFailure.from_exception(scope, error)) from error


def _is_panic(error: BaseException) -> bool:
    # PyO3 raises a panic of a Rust library as a subclass of BaseException.
    return type(error).__name__ == "PanicException"


def _raising_function(error: BaseException) -> str:
    """Return the innermost function of this program in the traceback, with its module."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    own = [_function_name(frame) for frame in frames if _module(frame).startswith("reconciler.")]
    return own[-1] if own else ""


def _function_name(frame: FrameType) -> str:
    return f"{_module(frame)}.{frame.f_code.co_qualname}"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _format_traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_CHARACTERS:]
    except (MemoryError, RecursionError):
        return f"{type(error).__name__}: there is not enough memory to format the traceback"
