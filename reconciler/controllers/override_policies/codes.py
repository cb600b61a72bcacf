"""Finding codes about override policies: invalid policies, and problems when policies are applied to resources."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, Severity, error, warning

PACKAGE = FindingScope.PACKAGE


class PolicyCodes(CodeTable):
    """Finding codes about override policies and about their effect on packages."""

    ANNOTATIONS_TOO_LARGE = error(
        "After the overrides, the annotations of a resource exceed the size limit of Kubernetes.", PACKAGE
    )
    CLUSTER_VARIABLE_UNRESOLVED = error(
        "A variable of an override policy has no value for a cluster, or an invalid value.", PACKAGE
    )
    COMPONENT_PRESENT = error("An image already has the component that a policy adds with addIfAbsent.", PACKAGE)
    CONTAINER_NOT_FOUND = warning(
        "A policy names a container that the resource does not have; the policy item has no effect.", PACKAGE
    )
    DIGEST_INVALID = error("A policy sets a value that is not a valid image digest.")
    DIGEST_PINNED = warning(
        "A policy changes the repository or tag of an image but not its digest, which determines the pulled image.",
        PACKAGE,
    )
    FIELD_PATH_INVALID = error(
        "The fieldPath of a policy is not a JSON pointer, or does not lead to a string in the resource.", PACKAGE
    )
    FIELD_UNPARSABLE = error(
        "A string that a policy edits is not valid in the format that the policy names, or cannot be edited.",
        PACKAGE,
    )
    FORBIDDEN_PATH = error("A policy patches the identity of a resource: its kind, name or namespace.")
    IDENTITY_CHANGED = error(
        "Overrides change the kind, name or namespace of a resource, which is not allowed.", PACKAGE
    )
    IMAGE_PATH_INVALID = error(
        "The imagePath of a policy is not a JSON pointer, or does not lead to a string in the resource.", PACKAGE
    )
    IMAGE_RESULT_INVALID = error("The image that results from a policy is not a valid image reference.", PACKAGE)
    IMAGE_UNPARSABLE = error("An image that a policy changes is not a valid image reference.", PACKAGE)
    KEY_EXISTS = error(
        "A resource already has the label, annotation or variable that a policy adds with addIfAbsent.", PACKAGE
    )
    MAP_MALFORMED = error(
        "The labels or annotations of a resource are not strings. Policies cannot be attached or applied.", PACKAGE
    )
    OPERATOR_UNSUPPORTED = error("A policy uses an operator that its overrider does not support.")
    OVERRIDE_POLICY_LABEL_IGNORED = warning(
        "A resource without a namespace, or in a List, names an override policy; the label has no effect.", PACKAGE
    )
    OVERRIDE_RESULT_UNWRITABLE = error("The overridden resource cannot be written as YAML.", PACKAGE)
    PATCH_DROPPED_KEYS = warning(
        "A patch replaces a map and removes keys that the new map does not contain. Patches do not merge maps.", PACKAGE
    )
    PATCH_FIELD_UNKNOWN = error(
        "A patch would create a field that the schema of a built-in Kubernetes kind does not have.", PACKAGE
    )
    PATCH_INDEX_INVALID = error("The last step of a patch's path is not a valid index of the list.", PACKAGE)
    PATCH_PARENT_MISSING = error("A parent field on the path of a patch does not exist.", PACKAGE)
    PATCH_PATH_INVALID = error("The path of a patch is not a JSON pointer, or refers to the whole document.")
    PATCH_TARGET_MISSING = error("A patch removes a field or item that does not exist.", PACKAGE)
    PATCH_VALUE_MISSING = error("A patch with add, replace or set has no value; null must be written explicitly.")
    POD_SPEC_MALFORMED = error("The pod spec of a resource has an invalid structure.", PACKAGE)
    POD_SPEC_MISSING = error("A resource has no pod spec, although its kind requires one.", PACKAGE)
    POD_SPEC_UNKNOWN_KIND = error(
        "A policy changes containers of a kind for which the location of the pod spec is unknown.", PACKAGE
    )
    POLICY_DUPLICATE = error(
        "A resource uses an override policy that is defined twice in the config. Neither definition applies.", PACKAGE
    )
    POLICY_INVALID = error("A field of an override policy is invalid, or a resource uses an invalid policy.")
    POLICY_NAME_EMPTY = error("The label of a resource that names its override policy is empty.", PACKAGE)
    POLICY_NOT_FOUND = error("A resource names an override policy that does not exist.", PACKAGE)
    POLICY_NO_EFFECT = warning(
        "The override rules for a resource apply to a cluster, but do not change the resource.", PACKAGE
    )
    POLICY_UNUSED = warning("An override policy is not used by any rendered resource.")
    REPLACE_CREATED_MEMBER = warning("A patch with the operator replace adds a field that did not exist.", PACKAGE)
    RULE_MATCHES_NO_CLUSTER = warning("A rule of an override policy selects no existing cluster.")
    RULE_OVERWRITTEN = warning(
        "A rule has no effect, because a later rule of the policy sets the same fields on all clusters of the rule."
    )
    RULE_TEXT_UNKNOWN = error(
        "The state is missing, so the earlier version of a rule is unknown until the rollout reaches the cluster.",
        PACKAGE,
    )
    RULE_TEXT_UNREADABLE = warning(
        "The clusters of a wave that is not open yet need the earlier version of a rule, but this version cannot be"
        " read. The rule has no effect on these clusters.",
        PACKAGE,
    )
    RULE_UNREACHED = warning(
        "A rule of an override policy selects only clusters that have no resource with this policy."
    )
    TAG_INVALID = error("A policy sets a value that is not a valid image tag.")
    VALUE_REQUIRED = error("An operator of an override policy requires a value, but the value is missing.")
    WAVE_MATCHES_NO_CLUSTER = warning("A wave of a rollout selects no cluster, or only clusters of earlier waves.")


# The codes of warnings about the overrides of one package on one cluster.
WARNINGS = frozenset(
    code.name
    for code in PolicyCodes.by_name.values()
    if code.severity is Severity.WARNING and code.scope is FindingScope.PACKAGE
)
