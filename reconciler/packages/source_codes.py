"""Finding codes for errors, warnings and information about the source of a package, e.g. a Helm chart."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error

PACKAGE = FindingScope.PACKAGE


class SourceCodes(CodeTable):
    """Finding codes for errors, warnings and information about the source of a package, e.g. a Helm chart."""

    PATH_INVALID = error("The path of a file in a source is absolute, or contains `..`.", PACKAGE)
