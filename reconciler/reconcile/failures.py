"""Isolation of unexpected exceptions in a pass, their log entries, and the finding codes of repositories and forges.

`ALL_CODES` contains the finding codes of all packages of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from reconciler.catalog import codes as catalog
from reconciler.cel import errors as cel
from reconciler.controllers import codes as controllers
from reconciler.controllers.components import codes as components
from reconciler.controllers.kafka_templates import codes as kafka_templates
from reconciler.controllers.override_policies import codes as override_policies
from reconciler.controllers.package_variants import codes as package_variants
from reconciler.controllers.placement import codes as placement
from reconciler.controllers.plugin_presets import codes as plugin_presets
from reconciler.forge.errors import InternalForgeError
from reconciler.git.errors import GitError, InternalGitError
from reconciler.krm import findings as krm
from reconciler.krm.findings import (
    Finding,
    FindingCode,
    FindingScope,
    Severity,
    SourceLocation,
    create_internal_error_finding,
)
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.packages import codes as packages
from reconciler.planning.model import codes as planning
from reconciler.reconcile.event_log import log

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
    """Log each unexpected exception that caused one of the findings once."""
    for failure in dict.fromkeys(finding.failure for finding in findings if finding.failure):
        log_failure(failure)


def log_if_internal(error: GitError) -> None:
    """Log the error if an unexpected exception caused it."""
    if isinstance(error, InternalGitError):
        log_failure(error.failure)


CODES = (
    APPROVAL_FAILED := FindingCode(
        "ApprovalFailed",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The push of an approval by annotation failed. The next pass tries again.",
    ),
    APPROVAL_HELD := FindingCode(
        "ApprovalHeld",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An annotation approves a draft that has conflicts. The draft waits until a person accepts them.",
    ),
    APPROVAL_REFUSED := FindingCode(
        "ApprovalRefused",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The host refused the push of an approval by annotation. Merge the draft, or allow the push.",
    ),
    ENGINE_TOO_OLD := FindingCode(
        "EngineTooOld",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "A newer version of the reconciler wrote the state. The target is not changed.",
    ),
    PROPOSAL_BRANCH_TAKEN := FindingCode(
        "ProposalBranchTaken",
        Severity.WARNING,
        FindingScope.CONFIG,
        "The branch for the proposal cannot be created, because the name of another branch conflicts with it.",
    ),
    PROPOSAL_FAILED := FindingCode(
        "ProposalFailed",
        Severity.WARNING,
        FindingScope.CONFIG,
        "The push of a proposal to the config failed. The next pass tries again.",
    ),
    PROPOSAL_LOST := FindingCode(
        "ProposalLost",
        Severity.INFO,
        FindingScope.CONFIG,
        "Another writer moved the proposal branch first. The next pass creates the proposal again.",
    ),
    PROPOSAL_REFUSED := FindingCode(
        "ProposalRefused",
        Severity.WARNING,
        FindingScope.CONFIG,
        "The host of the config repository refused the push of a proposal.",
    ),
    PUSH_FAILED := FindingCode(
        "PushFailed",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "The push of drafts failed. The next pass tries again.",
    ),
    PUSH_POSTPONED := FindingCode(
        "PushPostponed",
        Severity.INFO,
        FindingScope.DESTINATION,
        "Drafts wait for the rate limit of a remote, or for a push that is still running. A later pass pushes them.",
    ),
    PROPOSAL_POSTPONED := FindingCode(
        "ProposalPostponed",
        Severity.INFO,
        FindingScope.CONFIG,
        "A proposal to the config waits for the rate limit of its remote. A later pass pushes it.",
    ),
    PUSH_REFUSED := FindingCode(
        "PushRefused", Severity.ERROR, FindingScope.DESTINATION, "The host refused the push of drafts."
    ),
    REPOSITORY_UNREACHABLE := FindingCode(
        "RepositoryUnreachable", Severity.ERROR, FindingScope.DESTINATION, "A repository cannot be read at the moment."
    ),
    REQUEST_REFUSED := FindingCode(
        "PullRequestRefused",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The forge refused a pull request. The draft remains without it, and a later pass tries again.",
    ),
    REQUESTS_UNREACHABLE := FindingCode(
        "PullRequestsUnreachable",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The pull requests of a repository cannot be read at the moment. Drafts continue without them.",
    ),
    REQUESTS_WAIT := FindingCode(
        "PullRequestsWait",
        Severity.INFO,
        FindingScope.DESTINATION,
        "Drafts wait for their pull requests, because of a rate limit or the limit of open pull requests.",
    ),
    STATE_UNREADABLE := FindingCode(
        "StateUnreadable",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "The state of a target is not valid. The target is not changed.",
    ),
    STATUS_BRANCH_UNUSABLE := FindingCode(
        "StatusBranchUnusable",
        Severity.ERROR,
        FindingScope.CONFIG,
        "The status branch contains files that a pass did not write. The branch is not changed, and drafts continue.",
    ),
    TAG_FAILED := FindingCode(
        "RevisionTagFailed",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The push of a tag for a published revision failed. The next pass tries again.",
    ),
    TAG_REFUSED := FindingCode(
        "RevisionTagRefused",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "The host refused a tag for a published revision. All other work continues, and a later pass tries again.",
    ),
    TAG_TAKEN := FindingCode(
        "RevisionTagTaken",
        Severity.WARNING,
        FindingScope.DESTINATION,
        "A tag with the name for a published revision points to another commit. The tag is not changed.",
    ),
    URL_REFUSED := FindingCode(
        "UrlRefused", Severity.ERROR, FindingScope.DESTINATION, "A URL is not valid, or not allowed."
    ),
)

ALL_CODES = tuple(
    code
    for table in (
        krm.CODES,
        cel.CODES,
        catalog.CODES,
        packages.CODES,
        controllers.CODES,
        package_variants.CODES,
        override_policies.CODES,
        placement.CODES,
        plugin_presets.CODES,
        components.CODES,
        kafka_templates.CODES,
        planning.CODES,
        CODES,
    )
    for code in table
)
