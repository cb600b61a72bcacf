"""Isolation boundaries: an unexpected exception stops only one scope, and all other scopes continue.

A scope is a config file, an object, a package, a function call, the state of a target, or a remote. Within a pass, only
this module catches all exceptions. It stores the exception in an `InternalFailure`. Other code writes the traceback to
the log.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from types import FrameType
from typing import Self

from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.redaction import redact_urls

_REFERENCE_LENGTH = 12
# Keep only the end of a long traceback, because the end contains the exception and its last calls.
_MAX_TRACEBACK_CHARACTERS = 20_000
# Ignore where a MemoryError or RecursionError was raised, because this depends on the free memory and the stack depth.
_RESOURCE_ERRORS = (MemoryError, RecursionError)


class ExpectedError(Exception):
    """Base class of exceptions that have a specific handler. Isolation boundaries do not convert these exceptions."""


@dataclass(frozen=True)
class InternalFailure:
    """An unexpected exception that stopped the processing of one scope, e.g. one package.

    `reference` is a hash of the exception type and of the function that raised the exception. It is therefore the same
    in each pass and on each replica. `traceback` is for the log only, not for messages.
    """

    scope: str
    reference: str
    error_type: str
    traceback: str = field(default="", compare=False, repr=False)

    @classmethod
    def from_exception(cls, scope: str, error: BaseException) -> Self:
        """Create the failure for an exception that was raised while `scope` was processed."""
        error_type = type(error).__name__
        function = "" if isinstance(error, _RESOURCE_ERRORS) else _find_raising_function(error)
        reference = sha256(f"{error_type} {function}".encode()).hexdigest()[:_REFERENCE_LENGTH]
        return cls(scope, reference, error_type, redact_urls(_format_traceback(error)))

    def with_scope(self, scope: str) -> Self:
        """Return a copy with a different scope, for example the object or package that caused the exception."""
        return replace(self, scope=scope)

    @property
    def message(self) -> str:
        """The message for users, without the text of the exception, which can contain secret input values."""
        return (
            f"{self.scope}: an unexpected {self.error_type} stopped the processing. Published content and "
            "drafts of this scope stay unchanged, and all other processing continues. Next step: report the "
            f"traceback in the log with the reference {self.reference}"
        )


class ScopeFailedError(ExpectedError):
    """The processing of one scope failed with an unexpected exception, which `failure` describes."""

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    def __reduce__(self) -> tuple[type[ScopeFailedError], tuple[InternalFailure]]:
        return type(self), (self.failure,)


@contextmanager
def isolation_boundary(
    scope: str, create_error: Callable[[InternalFailure], Exception] = ScopeFailedError
) -> Iterator[None]:
    """Convert each unexpected exception in the `with` block into the exception that `create_error` returns.

    An `ExpectedError` is not converted. Exceptions that stop the process, such as KeyboardInterrupt, are not converted.
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
    # Compare the name of the class, because the exception for a panic in a Rust library (PyO3) cannot be imported.
    return type(error).__name__ == "PanicException"


def _find_raising_function(error: BaseException) -> str:
    """Return the qualified name of the innermost function of this program in the traceback, or "" if there is none."""
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
