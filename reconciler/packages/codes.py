"""Finding codes for errors and warnings about the content of one package."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, warning

PACKAGE = FindingScope.PACKAGE


class PackageCodes(CodeTable):
    """Finding codes for errors and warnings about the content of one package."""

    DUPLICATE_RESOURCE = error("A file contains the same resource twice. Its resources cannot be merged.", PACKAGE)
    FAST_FORWARD_LOCAL_CHANGES = error("A package with the update strategy fast-forward has local changes.", PACKAGE)
    KPTFILE_DEPRECATED = error("A Kptfile has an old schema version.", PACKAGE)
    KPTFILE_INVALID = error("A field of a Kptfile has an invalid value.", PACKAGE)
    KPTFILE_MISSING = error("A package has no Kptfile.", PACKAGE)
    KPTFILE_SYNTAX = error("A Kptfile is not valid YAML, or does not contain exactly one mapping.", PACKAGE)
    KPTFILE_UNKNOWN = error("A file with the name Kptfile contains another kind of object.", PACKAGE)
    MERGE_COMMENTS_SKIPPED = warning("A file has no merge comments, because it cannot be parsed.", PACKAGE)
    MERGE_IMPOSSIBLE = error("A resource cannot be merged.", PACKAGE)
    NO_ORIGIN = error(
        "A subpackage cannot be merged, because upstream did not contain its files when the package was cloned.",
        PACKAGE,
    )
    PACKAGE_CONTEXT = error("The package context is missing or invalid.", PACKAGE)
    SUBPACKAGE_ADDED_TWICE = error("A subpackage was added both upstream and locally, with different content.", PACKAGE)
    SUBPACKAGE_DEPTH = error("Subpackages with their own upstreams are nested too deeply.", PACKAGE)
    UPSTREAM_MISSING = error("A package cannot be updated, because its Kptfile has no upstream.", PACKAGE)
