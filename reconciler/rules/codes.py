"""The codes that all rules share: Repositories, and what is no longer wanted (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    DELETION_HELD := Code(
        "DeletionHeld",
        Severity.ERROR,
        Scope.OBJECT,
        "Packages are not wanted any more, and are kept until somebody confirms that they may go.",
    ),
    NAME_NOT_USABLE := Code(
        "NameNotUsable",
        Severity.ERROR,
        Scope.DESTINATION,
        "A branch, tag prefix or other name of a Repository cannot be one in Git.",
    ),
    REPOSITORY_INVALID := Code(
        "RepositoryInvalid",
        Severity.ERROR,
        Scope.DESTINATION,
        "A field of a Repository has a value that it must not have.",
    ),
)
