"""The codes of the catalog: what keeps an object of the config from counting (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    DUPLICATE_OBJECT := Code(
        "DuplicateObject",
        Severity.ERROR,
        Scope.OBJECT,
        "One object stands in several places: none of them counts, and what it owns stays as it is.",
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
