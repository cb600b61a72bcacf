"""The codes of PackageVariants and their sets (porch 2, 10, 11; design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity, by_name
from reconciler.rules.codes import DELETION_HELD

CODES = (
    DOWNSTREAM_NOT_FOUND := Code(
        "DownstreamNotFound", Severity.ERROR, Scope.OBJECT, "The Repository that a package is to go to does not exist."
    ),
    DUPLICATE_TARGET := Code(
        "DuplicateTarget", Severity.ERROR, Scope.OBJECT, "Two targets of a set ask for one package differently."
    ),
    INJECTION_GATE_KEPT := Code(
        "InjectionGateKept",
        Severity.WARNING,
        Scope.PACKAGE,
        "A readiness gate stays, although its injection point is optional.",
    ),
    INJECTION_MISSING := Code(
        "InjectionMissing",
        Severity.WARNING,
        Scope.PACKAGE,
        "No object fills a required injection point, so that the draft cannot be published.",
    ),
    INJECTION_POINT_INVALID := Code(
        "InjectionPointInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "An injection point of a package cannot be read, or two of them share a condition.",
    ),
    INJECTOR_MATCHES_NOTHING := Code(
        "InjectorMatchesNothing",
        Severity.INFO,
        Scope.OBJECT,
        "An injector names an object that does not exist, so that it never injects anything.",
    ),
    LINK_SKIPPED := Code(
        "LinkSkipped", Severity.WARNING, Scope.PACKAGE, "Links and submodules of an upstream package are not copied."
    ),
    NAME_CONFLICT := Code(
        "NameConflict", Severity.ERROR, Scope.OBJECT, "A set would make a PackageVariant with a name that is taken."
    ),
    NO_MATCH := Code("NoMatch", Severity.WARNING, Scope.OBJECT, "No target of a set matches anything."),
    NO_MATCHING_TARGETS := Code(
        "NoMatchingTargets", Severity.ERROR, Scope.OBJECT, "A set selects objects of a kind that nobody knows."
    ),
    NO_TARGETS := Code(
        "NoTargets",
        Severity.ERROR,
        Scope.OBJECT,
        "No target of a set matches any more, and all its packages would go; they are kept.",
    ),
    NOT_PORTABLE := Code(
        "NotPortable",
        Severity.INFO,
        Scope.OBJECT,
        "An expression of a set uses more than standard CEL, which other engines may not know.",
    ),
    RENDER_ERROR := Code("RenderError", Severity.ERROR, Scope.OBJECT, "An expression of a set fails for a target."),
    REVISION_PENDING := Code(
        "RevisionPending",
        Severity.ERROR,
        Scope.OBJECT,
        "A tag is to be written down as a revision, and no revision is there yet.",
    ),
    TAG_UNPINNED := Code(
        "TagUnpinned",
        Severity.WARNING,
        Scope.OBJECT,
        "A tag names a commit that no revision names, so that it cannot be written down as one.",
    ),
    TARGET_REPEATED := Code(
        "TargetRepeated",
        Severity.WARNING,
        Scope.OBJECT,
        "A target of a set asks for nothing that earlier ones do not ask for alike.",
    ),
    UPSTREAM_CYCLE := Code(
        "UpstreamCycle",
        Severity.ERROR,
        Scope.OBJECT,
        "The upstreams of PackageVariants lead in a circle, so that a package would be made from itself.",
    ),
    UPSTREAM_NOT_FOUND := Code(
        "UpstreamNotFound", Severity.ERROR, Scope.OBJECT, "An upstream package, revision or Repository does not exist."
    ),
    UPSTREAM_NOT_PUBLISHED := Code(
        "UpstreamNotPublished", Severity.ERROR, Scope.OBJECT, "An upstream is a draft or proposed, and not published."
    ),
    UPSTREAM_SETTLING := Code(
        "UpstreamSettling", Severity.INFO, Scope.OBJECT, "A moved tag has not stood long enough to be followed."
    ),
    UPSTREAM_UNREACHABLE := Code(
        "UpstreamUnreachable", Severity.ERROR, Scope.OBJECT, "The repository of an upstream cannot be read now."
    ),
    UPSTREAM_WARNING := Code(
        "UpstreamWarning",
        Severity.WARNING,
        Scope.OBJECT,
        "A channel file and a tag of the same name disagree; the file wins.",
    ),
    VALIDATION_ERROR := Code(
        "ValidationError", Severity.ERROR, Scope.OBJECT, "A field of an object has a value that it must not have."
    ),
)

# what keeps an object from its packages is a reason of its conditions first
BY_REASON = by_name((*CODES, DELETION_HELD))
