"""The codes of planning: what keeps a package, or a whole destination, as it is (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    API_DEPRECATED := Code(
        "ApiDeprecated",
        Severity.WARNING,
        Scope.CLUSTER,
        "A resource is of an API version that Kubernetes has deprecated, or given up if its cluster is new enough.",
    ),
    API_NOT_SERVED := Code(
        "ApiNotServed",
        Severity.ERROR,
        Scope.CLUSTER,
        "A resource is of an API version that the Kubernetes of its cluster, or the definition of its kind, has not.",
    ),
    APPROVAL_AHEAD := Code(
        "ApprovalAhead",
        Severity.INFO,
        Scope.PACKAGE,
        "A draft is published without asking, as an annotation of its owner says, once nothing is in its way.",
    ),
    APPROVAL_POLICY_INVALID := Code(
        "ApprovalPolicyInvalid",
        Severity.WARNING,
        Scope.PACKAGE,
        "An annotation about approvals has a value that means nothing; the draft waits for people.",
    ),
    DESTINATION_MISSING := Code(
        "DestinationMissing",
        Severity.ERROR,
        Scope.DESTINATION,
        "A branch that was there before is gone, or a Repository points elsewhere now.",
    ),
    DIRECTORY_NOT_OWNED := Code(
        "DirectoryNotOwned",
        Severity.ERROR,
        Scope.PACKAGE,
        "A directory that nobody here owns is in the way of what is generated.",
    ),
    DOWNSTREAM_CONFLICT := Code(
        "DownstreamConflict",
        Severity.ERROR,
        Scope.PACKAGE,
        "Packages would lie in one another, or two owners want one place.",
    ),
    DOWNSTREAM_EXISTS := Code(
        "DownstreamExists", Severity.ERROR, Scope.PACKAGE, "A package that nobody here owns is in the way."
    ),
    DRAFT_EDITED := Code(
        "DraftEdited",
        Severity.ERROR,
        Scope.PACKAGE,
        "People changed files of a draft beside our packages that the cluster branch has changed as well.",
    ),
    FIELD_NOT_IN_SCHEMA := Code(
        "FieldNotInSchema",
        Severity.WARNING,
        Scope.CLUSTER,
        "A resource has a field that its schema does not have, and that its cluster drops or refuses.",
    ),
    FUNCTION_INTERRUPTED := Code(
        "FunctionInterrupted", Severity.ERROR, Scope.PACKAGE, "A function was stopped from outside; it is tried again."
    ),
    FUNCTION_UNAVAILABLE := Code(
        "FunctionUnavailable",
        Severity.WARNING,
        Scope.PACKAGE,
        "A function cannot run here; the draft shows the package without it, and is gated.",
    ),
    KUBERNETES_VERSION_UNKNOWN := Code(
        "KubernetesVersionUnknown",
        Severity.INFO,
        Scope.CLUSTER,
        "Clusters do not say which version of Kubernetes they run; what goes there is held against the newest known.",
    ),
    MERGE_BASE_MISSING := Code(
        "MergeBaseMissing",
        Severity.ERROR,
        Scope.PACKAGE,
        "A package that people made came from an upstream commit that no Repository has.",
    ),
    MERGE_CONFLICT := Code(
        "MergeConflict",
        Severity.ERROR,
        Scope.PACKAGE,
        "People and upstream changed the same, and the conflictPolicy is block.",
    ),
    OWNERSHIP_CONFLICT := Code(
        "OwnershipConflict", Severity.ERROR, Scope.PACKAGE, "A package is owned by another object."
    ),
    PACKAGE_TOO_LARGE := Code(
        "PackageTooLarge", Severity.ERROR, Scope.PACKAGE, "A package is beyond the limits of what is read."
    ),
    PATH_REFUSED := Code(
        "PathRefused", Severity.ERROR, Scope.PACKAGE, "A package has a path that no tree of ours may hold."
    ),
    PROPOSAL_EDITED := Code(
        "ProposalEdited",
        Severity.WARNING,
        Scope.CONFIG,
        "Revisions cannot be proposed, because people changed the branch of the proposal.",
    ),
    PROPOSAL_NOT_POSSIBLE := Code(
        "ProposalNotPossible",
        Severity.WARNING,
        Scope.CONFIG,
        "Revisions cannot be proposed to a plain folder; people write them there.",
    ),
    REMOVAL_DECLINED := Code(
        "RemovalDeclined",
        Severity.INFO,
        Scope.PACKAGE,
        "People declined the removal of a package that nothing wants; it is proposed again when the package changes.",
    ),
    REMOVAL_PROPOSED := Code(
        "RemovalProposed",
        Severity.INFO,
        Scope.PACKAGE,
        "A published package that nothing wants any more is on a removal draft; merging that approves it.",
    ),
    REMOVAL_WAITS := Code(
        "RemovalWaits",
        Severity.WARNING,
        Scope.PACKAGE,
        "A package that nothing wants any more stays until something else is done.",
    ),
    RENDER_FAILED := Code(
        "RenderFailed",
        Severity.WARNING,
        Scope.PACKAGE,
        "A function failed; the draft shows the package without it, and is gated.",
    ),
    RESOURCE_INVALID := Code(
        "ResourceInvalid", Severity.ERROR, Scope.CLUSTER, "A resource is not what the schema of its kind allows."
    ),
    REVISION_DECLINED := Code(
        "RevisionDeclined",
        Severity.INFO,
        Scope.CONFIG,
        "A proposed revision was declined; it is proposed again when its tag has moved on.",
    ),
    REVISION_PROPOSED := Code(
        "RevisionProposed",
        Severity.INFO,
        Scope.CONFIG,
        "A tag has moved, and the revision that it names is proposed to the config.",
    ),
    SCHEMA_MISSING := Code(
        "SchemaMissing",
        Severity.INFO,
        Scope.CLUSTER,
        "Resources were not held against a schema, for none of their kind is known.",
    ),
    UPSTREAM_LOCK_MISSING := Code(
        "UpstreamLockMissing",
        Severity.WARNING,
        Scope.PACKAGE,
        "A package was adopted without an upstreamLock: it is mutated and not updated.",
    ),
)
