"""Finding codes of override policies: reading, attachment, and application of overriders."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    ANNOTATIONS_TOO_LARGE := FindingCode(
        "AnnotationsTooLarge",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "With the overrides applied, the annotations of a resource exceed the size limit of Kubernetes.",
    ),
    COMPONENT_PRESENT := FindingCode(
        "ComponentPresent",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An image already has the component that a policy adds with addIfAbsent.",
    ),
    CONTAINER_NOT_FOUND := FindingCode(
        "ContainerNotFound",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A policy names a container that the resource does not have; the policy item has no effect.",
    ),
    DIGEST_INVALID := FindingCode(
        "DigestInvalid", Severity.ERROR, FindingScope.OBJECT, "A policy sets a value that is not a valid image digest."
    ),
    DIGEST_PINNED := FindingCode(
        "DigestPinned",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A policy changes the repository or tag of an image but not its digest, which determines the pulled image.",
    ),
    FIELD_PATH_INVALID := FindingCode(
        "FieldPathInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The fieldPath of a policy is not a JSON pointer, or does not lead to a string in the resource.",
    ),
    FIELD_UNPARSABLE := FindingCode(
        "FieldUnparsable",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The text in a string that a policy edits does not have the stated format, or cannot be edited.",
    ),
    FORBIDDEN_PATH := FindingCode(
        "ForbiddenPath",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A policy patches the identity of a resource: its kind, name or namespace.",
    ),
    IDENTITY_CHANGED := FindingCode(
        "IdentityChanged",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "With the overrides applied, the kind, name or namespace of a resource differs.",
    ),
    IMAGE_PATH_INVALID := FindingCode(
        "ImagePathInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The imagePath of a policy is not a JSON pointer, or does not lead to a string in the resource.",
    ),
    IMAGE_RESULT_INVALID := FindingCode(
        "ImageResultInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The image that results from a policy is not a valid image reference.",
    ),
    IMAGE_UNPARSABLE := FindingCode(
        "ImageUnparsable",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "An image that a policy changes is not a valid image reference.",
    ),
    KEY_EXISTS := FindingCode(
        "KeyExists",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A resource already has the label, annotation or variable that a policy adds with addIfAbsent.",
    ),
    MAP_MALFORMED := FindingCode(
        "MapMalformed",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The labels or annotations of a resource are not strings. Policies cannot be attached or applied.",
    ),
    OPERATOR_UNSUPPORTED := FindingCode(
        "OperatorUnsupported",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A policy uses an operator that its overrider does not support.",
    ),
    POLICY_LABEL_IGNORED := FindingCode(
        "OverridePolicyLabelIgnored",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A resource without a namespace, or in a List, names an override policy; the label has no effect.",
    ),
    PATCH_DROPPED_KEYS := FindingCode(
        "PatchDroppedKeys",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A patch replaces a map and drops keys that the new map does not have. Patches do not merge maps.",
    ),
    PATCH_FIELD_UNKNOWN := FindingCode(
        "PatchFieldUnknown",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A patch would create a field that the schema of a built-in Kubernetes kind does not have.",
    ),
    PATCH_INDEX_INVALID := FindingCode(
        "PatchIndexInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The last step of a patch's path is not a valid index of the list.",
    ),
    PATCH_PARENT_MISSING := FindingCode(
        "PatchParentMissing", Severity.ERROR, FindingScope.PACKAGE, "A parent on the path of a patch does not exist."
    ),
    PATCH_PATH_INVALID := FindingCode(
        "PatchPathInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The path of a patch is not a JSON pointer, or refers to the whole document.",
    ),
    PATCH_TARGET_MISSING := FindingCode(
        "PatchTargetMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A patch removes a field or item that does not exist.",
    ),
    PATCH_VALUE_MISSING := FindingCode(
        "PatchValueMissing",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A patch with add, replace or set has no value; null must be written explicitly.",
    ),
    POD_SPEC_MALFORMED := FindingCode(
        "PodSpecMalformed",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The pod template of a resource has an invalid structure.",
    ),
    POD_SPEC_MISSING := FindingCode(
        "PodSpecMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A resource has no pod template, although its kind requires one.",
    ),
    POD_SPEC_UNKNOWN_KIND := FindingCode(
        "PodSpecUnknownKind",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A policy changes containers of a kind for which the location of the pod template is unknown.",
    ),
    POLICY_DUPLICATE := FindingCode(
        "PolicyDuplicate",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A resource uses an override policy that is defined twice in the config. Neither definition applies.",
    ),
    POLICY_INVALID := FindingCode(
        "PolicyInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A field of an override policy is invalid, or a resource uses such a policy.",
    ),
    POLICY_NAME_EMPTY := FindingCode(
        "PolicyNameEmpty",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The label of a resource that names its override policy is empty.",
    ),
    POLICY_NO_EFFECT := FindingCode(
        "PolicyNoEffect",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "Rules of a resource's override policies apply to a cluster, but change nothing.",
    ),
    POLICY_NOT_FOUND := FindingCode(
        "PolicyNotFound",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A resource names an override policy that does not exist.",
    ),
    POLICY_UNUSED := FindingCode(
        "PolicyUnused",
        Severity.WARNING,
        FindingScope.OBJECT,
        "No rendered resource uses an override policy.",
    ),
    REPLACE_CREATED_MEMBER := FindingCode(
        "ReplaceCreatedMember",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A patch with replace adds a member, because it did not exist.",
    ),
    RESULT_UNWRITABLE := FindingCode(
        "OverrideResultUnwritable",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The overridden resource cannot be written as YAML.",
    ),
    RULE_MATCHES_NO_CLUSTER := FindingCode(
        "RuleMatchesNoCluster",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A rule of an override policy selects no existing cluster.",
    ),
    RULE_OVERWRITTEN := FindingCode(
        "RuleOverwritten",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A later rule of the same override policy sets the same fields on all clusters of a rule.",
    ),
    RULE_TEXT_UNKNOWN := FindingCode(
        "RuleTextUnknown",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The state was lost, so the earlier text of a rule is unknown. The package stays unchanged until the "
        "rollout reaches its cluster.",
    ),
    RULE_UNREACHED := FindingCode(
        "RuleUnreached",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A rule of an override policy selects only clusters that receive no resource with this policy.",
    ),
    RULE_TEXT_UNREADABLE := FindingCode(
        "RuleTextUnreadable",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A closed wave keeps an earlier text of a rule that cannot be read any more. The rule has no effect there.",
    ),
    TAG_INVALID := FindingCode(
        "TagInvalid", Severity.ERROR, FindingScope.OBJECT, "A policy sets a value that is not a valid image tag."
    ),
    VARIABLE_UNRESOLVED := FindingCode(
        "ClusterVariableUnresolved",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A variable of an override policy has no value for a cluster, or an invalid one.",
    ),
    VALUE_REQUIRED := FindingCode(
        "ValueRequired",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An operator of an override policy requires a value and has none.",
    ),
    WAVE_MATCHES_NO_CLUSTER := FindingCode(
        "WaveMatchesNoCluster",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A wave of a rollout selects no cluster, or only clusters of earlier waves.",
    ),
)
# Warnings about the overrides of one package on one cluster.
WARNINGS = frozenset(
    code.name for code in CODES if code.severity is Severity.WARNING and code.scope is FindingScope.PACKAGE
)
