"""Isolation of unexpected exceptions in a pass, and their log entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from reconciler.forge.errors import InternalForgeError
from reconciler.git.errors import GitError, InternalGitError
from reconciler.krm.findings import (
    Finding,
    FindingCode,
    SourceLocation,
    create_internal_error_finding,
)
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.telemetry.event_log import log

_T = TypeVar("_T")


def repository_boundary(scope: str) -> AbstractContextManager[None]:
    """Convert an unexpected exception in the block to InternalGitError, which callers handle like any GitError."""
    return isolation_boundary(scope, InternalGitError)


def forge_boundary(scope: str) -> AbstractContextManager[None]:
    """Convert an unexpected exception in the block to InternalForgeError, which callers handle like any ForgeError."""
    return isolation_boundary(scope, InternalForgeError)


def error_finding(error: Exception | None, code: FindingCode, message: str, location: SourceLocation) -> Finding:
    """Return the finding for an error of a repository or of its forge.

    The finding has the code `InternalError` if the error comes from an unexpected exception. For all other errors, the
    parameter `code` is used.
    """
    if isinstance(error, InternalGitError | InternalForgeError):
        return create_internal_error_finding(error.failure, location)
    return code.finding(message, location)


class IsolatedSteps:
    """Runs steps of one pass. An unexpected exception ends only the step that raises it."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def run(self, scope: str, step: Callable[[], _T], fallback: _T, location: SourceLocation | None = None) -> _T:
        """Run a step and return its result. If an unexpected exception ends the step, return `fallback`."""
        try:
            with isolation_boundary(scope):
                return step()
        except ScopeFailedError as error:
            self.findings.append(create_internal_error_finding(error.failure, location))
            return fallback


def log_failure(failure: InternalFailure) -> None:
    """Log an unexpected exception with its traceback."""
    log.error(
        "internal_error",
        reference=failure.reference,
        scope=failure.scope,
        error_type=failure.error_type,
        traceback=failure.traceback,
    )


def log_failures(findings: Iterable[Finding]) -> None:
    """Log the unexpected exceptions that caused the findings. If an exception caused several findings, log it once."""
    for failure in dict.fromkeys(finding.failure for finding in findings if finding.failure):
        log_failure(failure)


def log_if_internal(error: GitError) -> None:
    """Log the error if an unexpected exception caused it."""
    if isinstance(error, InternalGitError):
        log_failure(error.failure)
