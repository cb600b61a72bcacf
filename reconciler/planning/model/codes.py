"""Finding codes of planning. Most codes are reasons why a package or a whole target is not changed."""

from __future__ import annotations

from typing import Final

from reconciler.controllers.codes import UNKNOWN_CLUSTER
from reconciler.controllers.override_policies.codes import (
    POLICY_UNUSED,
    RULE_MATCHES_NO_CLUSTER,
    WAVE_MATCHES_NO_CLUSTER,
)
from reconciler.controllers.package_variants.codes import NO_MATCH
from reconciler.controllers.placement.codes import PROPAGATION_POLICY_MATCHES_NO_CLUSTER, PROPAGATION_POLICY_UNUSED
from reconciler.controllers.plugin_presets.codes import OVERRIDE_CLUSTER_UNKNOWN, OVERRIDE_DEFINITION_UNKNOWN
from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    API_DEPRECATED := FindingCode(
        "ApiDeprecated",
        Severity.WARNING,
        FindingScope.CLUSTER,
        "A resource has an API version that Kubernetes has deprecated, or will remove.",
    ),
    API_NOT_SERVED := FindingCode(
        "ApiNotServed",
        Severity.ERROR,
        FindingScope.CLUSTER,
        "A resource has an API version that its cluster, or the definition of its kind, does not serve.",
    ),
    APPROVAL_AHEAD := FindingCode(
        "ApprovalAhead",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A draft will be published without a review, because an annotation of its owner requests it.",
    ),
    APPROVAL_POLICY_INVALID := FindingCode(
        "ApprovalPolicyInvalid",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "An annotation for automatic approval has an invalid value. The draft waits for a review.",
    ),
    CONFIG_DIRECTORY_HIDES := FindingCode(
        "ConfigDirectoryHides",
        Severity.ERROR,
        FindingScope.CONFIG,
        "The setting `config.directory` excludes too many objects that existing packages depend on. No package is"
        " removed.",
    ),
    CONFIG_DIRECTORY_MISSING := FindingCode(
        "ConfigDirectoryMissing",
        Severity.ERROR,
        FindingScope.CONFIG,
        "The config repository does not contain the directory in `config.directory`. No package is removed.",
    ),
    CONFIG_EMPTY := FindingCode(
        "ConfigEmpty",
        Severity.ERROR,
        FindingScope.CONFIG,
        "The config has no Repository and no cluster. No package is removed.",
    ),
    CONFIG_HISTORY_REPLACED := FindingCode(
        "ConfigHistoryReplaced",
        Severity.ERROR,
        FindingScope.CONFIG,
        "The history of the config branch was replaced since the last pass. No package is removed.",
    ),
    DESTINATION_MISSING := FindingCode(
        "DestinationMissing",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "A known branch was deleted, or a Repository has another URL, branch or directory now.",
    ),
    DIRECTORY_NOT_OWNED := FindingCode(
        "DirectoryNotOwned",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A directory without an owner occupies the path of a generated package.",
    ),
    DOWNSTREAM_CONFLICT := FindingCode(
        "DownstreamConflict",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "Two requested packages are nested, or two owners request the same package.",
    ),
    DOWNSTREAM_EXISTS := FindingCode(
        "DownstreamExists",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A package without an owner already exists at the path of a requested package.",
    ),
    DRAFT_EDITED := FindingCode(
        "DraftEdited",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The target branch and local changes on a draft changed the same files outside of the draft's packages.",
    ),
    FILE_INCONCLUSIVE := FindingCode(
        "FileInconclusive",
        Severity.ERROR,
        FindingScope.FILE,
        "A config file that defined objects exists, but is no longer read or no longer valid. No package is removed.",
    ),
    FIELD_NOT_IN_SCHEMA := FindingCode(
        "FieldNotInSchema",
        Severity.WARNING,
        FindingScope.CLUSTER,
        "A resource has a field that its schema does not define. The cluster drops or rejects the field.",
    ),
    FUNCTION_INTERRUPTED := FindingCode(
        "FunctionInterrupted",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The environment interrupted a function, e.g. with a timeout or a signal. The next pass runs the function"
        " again.",
    ),
    FUNCTION_UNAVAILABLE := FindingCode(
        "FunctionUnavailable",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A function cannot run in this environment. The draft contains no function changes, and cannot be published.",
    ),
    KUBERNETES_VERSION_UNKNOWN := FindingCode(
        "KubernetesVersionUnknown",
        Severity.INFO,
        FindingScope.CLUSTER,
        "The Kubernetes version of a cluster is unknown. Its resources are validated with the newest known version.",
    ),
    LOCAL_FILE_IN_THE_WAY := FindingCode(
        "LocalFileInTheWay",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A local file, folder, symbolic link or submodule on a branch occupies a path of the package.",
    ),
    MERGE_BASE_MISSING := FindingCode(
        "MergeBaseMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The upstreamLock of a package that the reconciler did not render names a commit that no Repository contains.",
    ),
    MERGE_CONFLICT := FindingCode(
        "MergeConflict",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A local change and an upstream change affect the same field, and the conflictPolicy is block.",
    ),
    OWNERSHIP_CONFLICT := FindingCode(
        "OwnershipConflict", Severity.ERROR, FindingScope.PACKAGE, "Another object already owns the requested package."
    ),
    PACKAGE_TOO_LARGE := FindingCode(
        "PackageTooLarge", Severity.ERROR, FindingScope.PACKAGE, "A package exceeds a size limit for reading packages."
    ),
    PATH_REFUSED := FindingCode(
        "PathRefused",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A package has a path that must not be written to a branch.",
    ),
    NOT_VALIDATED := FindingCode(
        "NotValidated",
        Severity.ERROR,
        FindingScope.CLUSTER,
        "Resources of built-in Kubernetes kinds could not be validated, because their schemas are not installed.",
    ),
    PROPOSAL_EDITED := FindingCode(
        "ProposalEdited",
        Severity.WARNING,
        FindingScope.CONFIG,
        "Revisions cannot be proposed, because the proposal branch has local changes.",
    ),
    PROPOSAL_NOT_POSSIBLE := FindingCode(
        "ProposalNotPossible",
        Severity.WARNING,
        FindingScope.CONFIG,
        "The config is a plain folder without Git, so that revisions cannot be proposed. A person must change the"
        " files.",
    ),
    REMOVAL_DECLINED := FindingCode(
        "RemovalDeclined",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A person rejected the removal of a package. The removal is proposed again when the package changes.",
    ),
    REMOVAL_PROPOSED := FindingCode(
        "RemovalProposed",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A removal draft deletes a package that is no longer requested. A merge of this draft approves the removal.",
    ),
    REMOVAL_WAITS := FindingCode(
        "RemovalWaits",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A package that is no longer requested is kept until another condition is met.",
    ),
    RENDER_FAILED := FindingCode(
        "RenderFailed",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A function failed. The draft contains no function changes, and cannot be published.",
    ),
    REPOSITORY_RESET := FindingCode(
        "RepositoryReset",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "The branch and the state of a known target are missing. Nothing is pushed until an annotation acknowledges"
        " the reset.",
    ),
    RESOURCE_INVALID := FindingCode(
        "ResourceInvalid", Severity.ERROR, FindingScope.CLUSTER, "A resource does not match the schema of its kind."
    ),
    REVISION_DECLINED := FindingCode(
        "RevisionDeclined",
        Severity.INFO,
        FindingScope.CONFIG,
        "A person rejected a proposed revision. The revision is proposed again when its tag moves.",
    ),
    REVISION_PROPOSED := FindingCode(
        "RevisionProposed",
        Severity.INFO,
        FindingScope.CONFIG,
        "A tag moved. A change of the config to the new revision is proposed.",
    ),
    SCHEMA_MISSING := FindingCode(
        "SchemaMissing",
        Severity.INFO,
        FindingScope.CLUSTER,
        "Resources were not validated, because no schema of their kind is known.",
    ),
    UPSTREAM_LOCK_MISSING := FindingCode(
        "UpstreamLockMissing",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A package was adopted without an upstreamLock. Mutations are applied, but the package is not updated.",
    ),
)


ABSENCE_CODES: Final = frozenset(
    code.name
    for code in (
        UNKNOWN_CLUSTER,
        POLICY_UNUSED,
        RULE_MATCHES_NO_CLUSTER,
        WAVE_MATCHES_NO_CLUSTER,
        PROPAGATION_POLICY_MATCHES_NO_CLUSTER,
        PROPAGATION_POLICY_UNUSED,
        OVERRIDE_CLUSTER_UNKNOWN,
        OVERRIDE_DEFINITION_UNKNOWN,
        NO_MATCH,
    )
)
"""Codes of warnings and infos that only report a missing object.

They are omitted if a config file cannot be read, because the object can be in this file.
"""
