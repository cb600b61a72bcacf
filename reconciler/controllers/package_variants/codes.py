"""Finding codes of PackageVariants and PackageVariantSets."""

from __future__ import annotations

from reconciler.controllers.codes import ControllerCodes
from reconciler.krm.findings import CodeTable, CommonCodes, FindingScope, error, info, warning
from reconciler.packages.source_codes import SourceCodes

PACKAGE = FindingScope.PACKAGE


class VariantCodes(CodeTable):
    """Finding codes of PackageVariants and PackageVariantSets."""

    DOWNSTREAM_NOT_FOUND = error("The Repository of a downstream package does not exist.")
    DUPLICATE_TARGET = error("Two targets of a set request the same package with different specs.")
    INJECTION_GATE_KEPT = warning("A readiness gate is kept, although its injection point is optional.", PACKAGE)
    INJECTION_MISSING = warning(
        "A required injection point has no matching object. The draft cannot be published.", PACKAGE
    )
    INJECTION_POINT_INVALID = error(
        "An injection point is invalid, or two injection points have the same condition type.", PACKAGE
    )
    INJECTOR_MATCHES_NOTHING = info("An injector names an object that does not exist. The injector injects nothing.")
    LINK_SKIPPED = warning("Symbolic links and submodules of an upstream package are not copied.", PACKAGE)
    NAME_CONFLICT = error("A set would create a PackageVariant with a name that another object has.")
    NOT_PORTABLE = info("An expression of a set is not standard CEL. Other engines may reject it.")
    NO_MATCH = warning("No target of a set matches an object.")
    NO_MATCHING_TARGETS = error("A set selects objects of a kind that does not exist.")
    NO_TARGETS = error(
        "The targets of a set match nothing any more. The packages of the set are kept until a person "
        "confirms the deletion."
    )
    RENDER_ERROR = error("An expression of a set fails for a target.")
    REVISION_PENDING = error(
        "An upstream with tagMode: rewrite has no fixed revision yet. Merge the config proposal that sets it."
    )
    TAG_UNPINNED = warning("A tag names a commit that has no revision. With tagMode: rewrite, a revision is required.")
    TARGET_REPEATED = warning("A target of a set requests only packages that earlier targets already request.")
    UPSTREAM_CYCLE = error("The upstreams of PackageVariants form a cycle. A package would be created from itself.")
    UPSTREAM_NOT_FOUND = error("An upstream package, revision or Repository does not exist.")
    UPSTREAM_NOT_PUBLISHED = error("An upstream revision is a draft or proposed, and therefore not published.")
    UPSTREAM_SETTLING = info("A tag has moved, and its settle duration has not passed.")
    UPSTREAM_UNREACHABLE = error("The repository of an upstream cannot be read at the moment.")
    UPSTREAM_WARNING = warning(
        "A channel file and a tag with the same name select different revisions. The channel file is used."
    )
    VALIDATION_ERROR = error("A field of an object has an invalid value.")


# Finding codes by name. The reason of a condition is the name of a finding code.
BY_REASON = {
    **VariantCodes.by_name,
    **SourceCodes.by_name,
    "DeletionHeld": ControllerCodes.DELETION_HELD,
    "UnverifiedCommit": ControllerCodes.UNVERIFIED_COMMIT,
}

FIELD_CODES = {**CommonCodes.by_name, **SourceCodes.by_name}
"""Finding codes that validation errors of PackageVariants and PackageVariantSets can have, by name."""

# Codes of findings about an upstream. A pass reports these findings even if it does not render the package, because the
# recorded state of the package contains only the findings of the last render.
REFERENCE_FINDINGS = frozenset(
    code.name
    for code in (
        VariantCodes.UPSTREAM_WARNING, ControllerCodes.UNVERIFIED_COMMIT, SourceCodes.CHART_ENTRY_INVALID,
        SourceCodes.CREDENTIAL_HELPER_IGNORED, SourceCodes.NOT_IN_CACHE, SourceCodes.SOURCE_ADDRESS_REFUSED,
        SourceCodes.SOURCE_INVALID, SourceCodes.SOURCE_TOO_LARGE, SourceCodes.SOURCE_UNAUTHORIZED,
        SourceCodes.SOURCE_UNREACHABLE, SourceCodes.DIGEST_MISMATCH, SourceCodes.DIGEST_UNAVAILABLE,
        SourceCodes.VERSION_WITHDRAWN,
        VariantCodes.UPSTREAM_NOT_FOUND,
    )
)  # fmt: skip
