"""Finding codes of the catalog: problems with files and objects of the config."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    CLAIM_CONFLICT := FindingCode(
        "ClaimConflict",
        Severity.ERROR,
        FindingScope.OBJECT,
        "Another object already defines the same object, cluster or target. This object is rejected, and the "
        "first definition stays in effect.",
    ),
    DUPLICATE_OBJECT := FindingCode(
        "DuplicateObject",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An object is defined several times, and no record shows which definition was first. No definition "
        "has an effect, and the packages of the object stay unchanged.",
    ),
    FILE_UNREADABLE := FindingCode(
        "FileUnreadable",
        Severity.ERROR,
        FindingScope.FILE,
        "A file of the config cannot be read. Until it can be read, no object is considered deleted.",
    ),
    NAME_MISSING := FindingCode("NameMissing", Severity.ERROR, FindingScope.OBJECT, "An object has no name."),
    UNKNOWN_KIND := FindingCode(
        "UnknownKind",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The kind of an object is unknown although its API group is known, or the object has no apiVersion.",
    ),
)
