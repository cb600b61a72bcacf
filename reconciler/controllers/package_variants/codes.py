"""Finding codes of PackageVariants and PackageVariantSets."""

from __future__ import annotations

from reconciler.controllers.codes import DELETION_HELD
from reconciler.krm.findings import FindingCode, FindingScope, Severity, index_codes_by_name

CODES = (
    DOWNSTREAM_NOT_FOUND := FindingCode(
        "DownstreamNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The Repository of a downstream package does not exist.",
    ),
    DUPLICATE_TARGET := FindingCode(
        "DuplicateTarget",
        Severity.ERROR,
        FindingScope.OBJECT,
        "Two targets of a set request the same package with different specs.",
    ),
    INJECTION_GATE_KEPT := FindingCode(
        "InjectionGateKept",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A readiness gate is kept, although its injection point is optional.",
    ),
    INJECTION_MISSING := FindingCode(
        "InjectionMissing",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A required injection point has no matching object. The draft cannot be published.",
    ),
    INJECTION_POINT_INVALID := FindingCode(
        "InjectionPointInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An injection point is invalid, or two injection points have the same condition type.",
    ),
    INJECTOR_MATCHES_NOTHING := FindingCode(
        "InjectorMatchesNothing",
        Severity.INFO,
        FindingScope.OBJECT,
        "An injector names an object that does not exist, and therefore injects nothing.",
    ),
    LINK_SKIPPED := FindingCode(
        "LinkSkipped",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "Links and submodules of an upstream package are not copied.",
    ),
    NAME_CONFLICT := FindingCode(
        "NameConflict",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A set would create a PackageVariant with a name that another object has.",
    ),
    NO_MATCH := FindingCode("NoMatch", Severity.WARNING, FindingScope.OBJECT, "No target of a set matches an object."),
    NO_MATCHING_TARGETS := FindingCode(
        "NoMatchingTargets", Severity.ERROR, FindingScope.OBJECT, "A set selects objects of a kind that does not exist."
    ),
    NO_TARGETS := FindingCode(
        "NoTargets",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The targets of a set match nothing any more. Its packages are kept until a person confirms the deletion.",
    ),
    NOT_PORTABLE := FindingCode(
        "NotPortable",
        Severity.INFO,
        FindingScope.OBJECT,
        "An expression of a set is not standard CEL. Other engines may reject it.",
    ),
    RENDER_ERROR := FindingCode(
        "RenderError", Severity.ERROR, FindingScope.OBJECT, "An expression of a set fails for a target."
    ),
    REVISION_PENDING := FindingCode(
        "RevisionPending",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An upstream with tagMode: rewrite has no revision yet. Merge the proposal that adds the revision, "
        "or set the field.",
    ),
    TAG_UNPINNED := FindingCode(
        "TagUnpinned",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A tag names a commit that has no revision. With tagMode: rewrite, a revision is required.",
    ),
    TARGET_REPEATED := FindingCode(
        "TargetRepeated",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A target of a set requests only packages that earlier targets already request.",
    ),
    UPSTREAM_CYCLE := FindingCode(
        "UpstreamCycle",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The upstreams of PackageVariants form a cycle. A package would be created from itself.",
    ),
    UPSTREAM_NOT_FOUND := FindingCode(
        "UpstreamNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An upstream package, revision or Repository does not exist.",
    ),
    UPSTREAM_NOT_PUBLISHED := FindingCode(
        "UpstreamNotPublished",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An upstream revision is a draft or proposed, and is not published.",
    ),
    UPSTREAM_SETTLING := FindingCode(
        "UpstreamSettling",
        Severity.INFO,
        FindingScope.OBJECT,
        "A tag has moved, and its settle duration has not passed.",
    ),
    UPSTREAM_UNREACHABLE := FindingCode(
        "UpstreamUnreachable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The repository of an upstream cannot be read at the moment.",
    ),
    UPSTREAM_WARNING := FindingCode(
        "UpstreamWarning",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A channel file and a tag of the same name differ. The channel file is used.",
    ),
    VALIDATION_ERROR := FindingCode(
        "ValidationError",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A field of an object has an invalid value.",
    ),
)

# Finding codes by name. The reason of a condition is the name of a finding code.
BY_REASON = index_codes_by_name((*CODES, DELETION_HELD))
