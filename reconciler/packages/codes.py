"""The codes of packages: what is wrong inside of one (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    DUPLICATE_RESOURCE := Code(
        "DuplicateResource",
        Severity.ERROR,
        Scope.PACKAGE,
        "A file holds one resource twice, so that it cannot be merged by resources.",
    ),
    FAST_FORWARD_LOCAL_CHANGES := Code(
        "FastForwardLocalChanges",
        Severity.ERROR,
        Scope.PACKAGE,
        "A package that is to be fast-forwarded was changed locally.",
    ),
    KPTFILE_DEPRECATED := Code(
        "KptfileDeprecated", Severity.ERROR, Scope.PACKAGE, "A Kptfile has an old version of the schema."
    ),
    KPTFILE_INVALID := Code(
        "KptfileInvalid", Severity.ERROR, Scope.PACKAGE, "A field of a Kptfile has a value that it must not have."
    ),
    KPTFILE_MISSING := Code("KptfileMissing", Severity.ERROR, Scope.PACKAGE, "A package has no Kptfile."),
    KPTFILE_SYNTAX := Code(
        "KptfileSyntax", Severity.ERROR, Scope.PACKAGE, "A Kptfile is not YAML, or not one mapping."
    ),
    KPTFILE_UNKNOWN := Code(
        "KptfileUnknown", Severity.ERROR, Scope.PACKAGE, "A file called Kptfile holds something else."
    ),
    MERGE_COMMENTS_SKIPPED := Code(
        "MergeCommentsSkipped",
        Severity.WARNING,
        Scope.PACKAGE,
        "A file got no merge comments, because it does not parse.",
    ),
    MERGE_IMPOSSIBLE := Code(
        "MergeImpossible", Severity.ERROR, Scope.PACKAGE, "A resource cannot be merged the way upstream's tool does."
    ),
    NO_ORIGIN := Code(
        "NoOrigin",
        Severity.ERROR,
        Scope.PACKAGE,
        "A subpackage cannot be merged, because upstream had not fetched it when the package came.",
    ),
    PACKAGE_CONTEXT := Code(
        "PackageContext", Severity.ERROR, Scope.PACKAGE, "The package context is missing, or is not one."
    ),
    SUBPACKAGE_ADDED_TWICE := Code(
        "SubpackageAddedTwice",
        Severity.ERROR,
        Scope.PACKAGE,
        "A subpackage was added upstream and locally, with different content.",
    ),
    SUBPACKAGE_DEPTH := Code(
        "SubpackageDepth",
        Severity.ERROR,
        Scope.PACKAGE,
        "Subpackages with upstreams of their own lie in each other too deeply.",
    ),
    UPSTREAM_MISSING := Code(
        "UpstreamMissing", Severity.ERROR, Scope.PACKAGE, "A package that is to be updated names no upstream."
    ),
)
