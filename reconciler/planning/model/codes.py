"""Finding codes of planning. Most codes are reasons why a package or a whole target is not changed."""

from __future__ import annotations

from typing import Final

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.placement.codes import PlacementCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

FILE = FindingScope.FILE
PACKAGE = FindingScope.PACKAGE
TARGET = FindingScope.TARGET
CONFIG = FindingScope.CONFIG
CLUSTER = FindingScope.CLUSTER


class PlanningCodes(CodeTable):
    """Finding codes of planning. Most codes are reasons why a package or a whole target is not changed."""

    API_DEPRECATED = warning("A resource has an API version that Kubernetes has deprecated, or will remove.", CLUSTER)
    API_NOT_SERVED = error(
        "A resource has an API version that the cluster or the CustomResourceDefinition of the kind does not serve.",
        CLUSTER,
    )
    APPROVAL_AHEAD = info(
        "A draft will be published without a review, because an annotation of its owner requests it.", PACKAGE
    )
    APPROVAL_POLICY_INVALID = warning(
        "An annotation for automatic approval has an invalid value. The draft waits for a review.", PACKAGE
    )
    CONFIG_DIRECTORY_HIDES = error(
        "The setting `config.directory` excludes too many objects of existing packages. No package is removed.",
        CONFIG,
    )
    CONFIG_DIRECTORY_MISSING = error(
        "The config repository does not contain the directory in `config.directory`. No package is removed.", CONFIG
    )
    CONFIG_EMPTY = error("The config has no Repository and no cluster. No package is removed.", CONFIG)
    CONFIG_HISTORY_REPLACED = error(
        "The history of the config branch was replaced since the last pass. No package is removed.", CONFIG
    )
    DESTINATION_MISSING = error(
        "A target branch was deleted, or the Repository of a target has a new URL, branch or directory.", TARGET
    )
    DIRECTORY_NOT_OWNED = error("A directory without an owner occupies the path of a generated package.", PACKAGE)
    DOWNSTREAM_CONFLICT = error("Two requested packages are nested, or two owners request the same package.", PACKAGE)
    DOWNSTREAM_EXISTS = error("A package without an owner already exists at the path of a requested package.", PACKAGE)
    DRAFT_EDITED = error(
        "The draft cannot be updated. The target branch and local changes on the draft branch changed the same files "
        "outside of the drafted packages.",
        PACKAGE,
    )
    FIELD_NOT_IN_SCHEMA = warning(
        "A resource has a field that its schema does not define. The cluster drops or rejects the field.", CLUSTER
    )
    FILE_INCONCLUSIVE = error(
        "A config file defined objects in an earlier pass, but is excluded or not valid now. No package is removed.",
        FILE,
    )
    FUNCTION_INTERRUPTED = error(
        "A function was stopped from outside, for example by a timeout. The next pass runs the function again.",
        PACKAGE,
    )
    FUNCTION_UNAVAILABLE = warning(
        "A function cannot run in this environment. The draft does not contain the changes that functions make, and"
        " cannot be published.",
        PACKAGE,
    )
    KUBERNETES_VERSION_UNKNOWN = info(
        "The Kubernetes version of a cluster is unknown. Its resources are validated with the newest known version.",
        CLUSTER,
    )
    LOCAL_FILE_IN_THE_WAY = error(
        "A local file, folder, symbolic link or submodule on a branch occupies a path of the package.", PACKAGE
    )
    MERGE_BASE_MISSING = error(
        "The reconciler did not render a package, and its upstreamLock names a commit that no Repository contains.",
        PACKAGE,
    )
    MERGE_CONFLICT = error(
        "A local change and an upstream change affect the same field, and the conflictPolicy is block.", PACKAGE
    )
    NOT_VALIDATED = error(
        "Resources of built-in Kubernetes kinds could not be validated, because their schemas are not installed.",
        CLUSTER,
    )
    OWNERSHIP_CONFLICT = error("Another object already owns the requested package.", PACKAGE)
    PACKAGE_TOO_LARGE = error("A package has too many files, or its files are too large.", PACKAGE)
    PATH_REFUSED = error("A package contains a path that is not allowed on a branch.", PACKAGE)
    PROPOSAL_EDITED = warning(
        "New revisions cannot be proposed, because the branch of the config proposal has local changes.", CONFIG
    )
    PROPOSAL_NOT_POSSIBLE = warning(
        "The config is a plain folder, so the daemon cannot propose revisions. A person must set the revisions.",
        CONFIG,
    )
    REMOVAL_DECLINED = info(
        "A person rejected the removal of a package. The removal is proposed again when the package changes.", PACKAGE
    )
    REMOVAL_PROPOSED = info(
        "A removal draft deletes a package that is no longer requested. A merge of this draft approves the removal.",
        PACKAGE,
    )
    REMOVAL_WAITS = warning(
        "A package is no longer requested, but cannot be removed yet. The message contains the reason.", PACKAGE
    )
    RENDER_FAILED = warning(
        "A function failed. The draft does not contain the changes that functions make, and cannot be published.",
        PACKAGE,
    )
    REPOSITORY_RESET = error(
        "The target branch and the state of a target are missing. Nothing is pushed until an annotation confirms the"
        " reset.",
        TARGET,
    )
    RESOURCE_INVALID = error("A resource does not match the schema of its kind.", CLUSTER)
    REVISION_DECLINED = info(
        "A person rejected a proposed revision. The revision is proposed again when its tag moves.", CONFIG
    )
    REVISION_PROPOSED = info(
        "A tag or version range selects a revision that the config does not contain. The config proposal sets this"
        " revision.",
        CONFIG,
    )
    SCHEMA_MISSING = info("Resources were not validated, because no schema of their kind is known.", CLUSTER)
    UPSTREAM_LOCK_MISSING = warning(
        "A package was adopted without an upstreamLock. Mutations are applied, but upstream changes are not.", PACKAGE
    )


ABSENCE_CODES: Final = frozenset(
    code.name
    for code in (
        ControllerCodes.UNKNOWN_CLUSTER,
        PolicyCodes.POLICY_UNUSED,
        PolicyCodes.RULE_MATCHES_NO_CLUSTER,
        PolicyCodes.WAVE_MATCHES_NO_CLUSTER,
        PlacementCodes.PROPAGATION_POLICY_MATCHES_NO_CLUSTER,
        PlacementCodes.PROPAGATION_POLICY_UNUSED,
        PluginCodes.OVERRIDE_CLUSTER_UNKNOWN,
        PluginCodes.OVERRIDE_DEFINITION_UNKNOWN,
        VariantCodes.NO_MATCH,
    )
)
"""Codes of warnings and infos that only report a missing object.

These findings are omitted if a config file cannot be read, because the object can be in this file.
"""
