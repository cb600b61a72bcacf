"""Isolation of remotes and destinations, and the log entries of all scopes that ended with an unexpected exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from reconciler.daemon.events import log
from reconciler.forge.errors import InternalForgeError
from reconciler.gitio.errors import GitError, InternalGitError
from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Code, Finding, Where
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary

_T = TypeVar("_T")


def repository_boundary(scope: str) -> AbstractContextManager[None]:
    """Raise every unexpected exception of the block as InternalGitError, which callers handle as any GitError."""
    return boundary(scope, InternalGitError)


def forge_boundary(scope: str) -> AbstractContextManager[None]:
    """Raise every unexpected exception of the block as InternalForgeError, which callers handle as any ForgeError."""
    return boundary(scope, InternalForgeError)


def error_finding(error: Exception | None, code: Code, message: str, where: Where) -> Finding:
    """Return the finding of an error at a repository or its forge: `InternalError` if unexpected, else `code`."""
    if isinstance(error, InternalGitError | InternalForgeError):
        return internal_error(error.failure, where)
    return code.finding(message, where)


class Steps:
    """The steps of one pass that touch several remotes: one that fails unexpectedly leaves the others alone.

    `findings` are those of the steps that failed.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def run(self, scope: str, step: Callable[[], _T], otherwise: _T, where: Where | None = None) -> _T:
        """Return the result of a step, or `otherwise` where an unexpected exception ends it."""
        try:
            with boundary(scope):
                return step()
        except ScopeFailedError as error:
            self.findings.append(internal_error(error.failure, where))
            return otherwise


def log_failure(failure: InternalFailure) -> None:
    """Write one failure with its traceback to the log."""
    log.error(
        "internal_error",
        reference=failure.reference,
        scope=failure.scope,
        error_type=failure.error_type,
        traceback=failure.traceback,
    )


def log_failures(findings: Iterable[Finding]) -> None:
    """Write the failures behind findings to the log, each once."""
    for failure in dict.fromkeys(one.failure for one in findings if one.failure):
        log_failure(failure)


def log_if_internal(error: GitError) -> None:
    """Write the failure behind an error to the log, if there is one."""
    if isinstance(error, InternalGitError):
        log_failure(error.failure)
