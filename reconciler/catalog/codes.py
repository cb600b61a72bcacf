"""Finding codes of the catalog: problems with files and objects of the config."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

FILE = FindingScope.FILE


class CatalogCodes(CodeTable):
    """Finding codes about files and objects of the config."""

    CHART_IN_CONFIG = info("A folder of the config contains a Helm chart. Its files are not read as config.", FILE)
    CLAIM_CONFLICT = error(
        "Another object already defines the same object, cluster or target. The first definition applies."
    )
    DUPLICATE_OBJECT = error(
        "An object is defined several times, and no record shows which definition came first. No definition applies."
    )
    FILE_UNREADABLE = error(
        "A file of the config cannot be read. While this error exists, no object that may be in this file is treated as"
        " deleted.",
        FILE,
    )
    NAME_MISSING = error("An object has no name. While this error exists, no package is removed.")
    UNKNOWN_KIND = warning(
        "The kind of an object is unknown although its API group is known, or the object has no apiVersion."
    )
