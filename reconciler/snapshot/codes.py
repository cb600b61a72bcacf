"""The codes of the catalog: what keeps an object of the config from counting (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    CLAIM_CONFLICT := Code(
        "ClaimConflict",
        Severity.ERROR,
        Scope.OBJECT,
        "An object defines an identity, a cluster or a place that another object defined first. It is rejected, and the"
        " first definition continues to work.",
    ),
    DUPLICATE_OBJECT := Code(
        "DuplicateObject",
        Severity.ERROR,
        Scope.OBJECT,
        "Several places define one object, and no record shows which was first: none of them has an effect, and what"
        " the object owns stays as it is.",
    ),
    FILE_UNREADABLE := Code(
        "FileUnreadable",
        Severity.ERROR,
        Scope.FILE,
        "A file of the config cannot be read at all; meanwhile nothing anywhere is taken for deleted.",
    ),
    NAME_MISSING := Code("NameMissing", Severity.ERROR, Scope.OBJECT, "An object has no name."),
    UNKNOWN_KIND := Code(
        "UnknownKind",
        Severity.WARNING,
        Scope.OBJECT,
        "An object is of a kind that is not read, although its API group is, or it has no apiVersion.",
    ),
)
