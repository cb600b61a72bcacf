"""Finding codes for errors and warnings about the content of one package."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    DUPLICATE_RESOURCE := FindingCode(
        "DuplicateResource",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A file contains the same resource twice. Its resources cannot be merged.",
    ),
    FAST_FORWARD_LOCAL_CHANGES := FindingCode(
        "FastForwardLocalChanges",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A package with the update strategy fast-forward has local changes.",
    ),
    KPTFILE_DEPRECATED := FindingCode(
        "KptfileDeprecated", Severity.ERROR, FindingScope.PACKAGE, "A Kptfile has an old schema version."
    ),
    KPTFILE_INVALID := FindingCode(
        "KptfileInvalid", Severity.ERROR, FindingScope.PACKAGE, "A field of a Kptfile has an invalid value."
    ),
    KPTFILE_MISSING := FindingCode("KptfileMissing", Severity.ERROR, FindingScope.PACKAGE, "A package has no Kptfile."),
    KPTFILE_SYNTAX := FindingCode(
        "KptfileSyntax",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A Kptfile is not valid YAML, or does not contain exactly one mapping.",
    ),
    KPTFILE_UNKNOWN := FindingCode(
        "KptfileUnknown",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A file with the name Kptfile contains another kind of object.",
    ),
    MERGE_COMMENTS_SKIPPED := FindingCode(
        "MergeCommentsSkipped",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A file has no merge comments, because it cannot be parsed.",
    ),
    MERGE_IMPOSSIBLE := FindingCode(
        "MergeImpossible", Severity.ERROR, FindingScope.PACKAGE, "A resource cannot be merged."
    ),
    NO_ORIGIN := FindingCode(
        "NoOrigin",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A subpackage cannot be merged, because the upstream package did not contain its files when the package was "
        "cloned.",
    ),
    PACKAGE_CONTEXT := FindingCode(
        "PackageContext", Severity.ERROR, FindingScope.PACKAGE, "The package context is missing or invalid."
    ),
    SUBPACKAGE_ADDED_TWICE := FindingCode(
        "SubpackageAddedTwice",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A subpackage was added both upstream and locally, with different content.",
    ),
    SUBPACKAGE_DEPTH := FindingCode(
        "SubpackageDepth",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "Subpackages with their own upstreams are nested too deeply.",
    ),
    UPSTREAM_MISSING := FindingCode(
        "UpstreamMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A package cannot be updated, because its Kptfile has no upstream.",
    ),
)
