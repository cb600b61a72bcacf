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
    CONFIG_DIRECTORY_HIDES := Code(
        "ConfigDirectoryHides",
        Severity.ERROR,
        Scope.CONFIG,
        "The setting config.directory leaves out too many of the objects that packages were made of: nothing is"
        " removed.",
    ),
    CONFIG_DIRECTORY_MISSING := Code(
        "ConfigDirectoryMissing",
        Severity.ERROR,
        Scope.CONFIG,
        "The config repository does not have the directory that config.directory names: nothing is removed.",
    ),
    CONFIG_EMPTY := Code(
        "ConfigEmpty",
        Severity.ERROR,
        Scope.CONFIG,
        "The config has no Repository and no cluster, so that there is nothing to reconcile: nothing is removed.",
    ),
    CONFIG_HISTORY_REPLACED := Code(
        "ConfigHistoryReplaced",
        Severity.ERROR,
        Scope.CONFIG,
        "The config branch has an unrelated history since the last pass: nothing is removed.",
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
    FILE_INCONCLUSIVE := Code(
        "FileInconclusive",
        Severity.ERROR,
        Scope.FILE,
        "A file that defined objects before is there, and is no longer valid config: nothing is removed.",
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
    LOCAL_FILE_IN_THE_WAY := Code(
        "LocalFileInTheWay",
        Severity.ERROR,
        Scope.PACKAGE,
        "A local file, folder, symbolic link or submodule on a branch occupies the place of a part of the package.",
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
    NOT_VALIDATED := Code(
        "NotValidated",
        Severity.ERROR,
        Scope.CLUSTER,
        "Resources of built-in Kubernetes kinds could not be validated, because their schemas are not installed.",
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
    REPOSITORY_RESET := Code(
        "RepositoryReset",
        Severity.ERROR,
        Scope.DESTINATION,
        "The branch and the state of a cluster are gone although its branch is known; nothing is pushed until an"
        " annotation acknowledges it.",
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
