"""Finding codes about override policies: invalid policies, and problems when policies are applied to resources."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    ANNOTATIONS_TOO_LARGE := FindingCode(
        "AnnotationsTooLarge",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "After the overrides, the annotations of a resource exceed the size limit of Kubernetes.",
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
        "A string that a policy edits does not contain text in the format of the policy, or the text cannot be edited.",
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
        "Overrides change the kind, name or namespace of a resource, which is not allowed.",
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
        "A patch replaces a map and removes keys that the new map does not contain. Patches do not merge maps.",
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
        "PatchParentMissing",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A parent field on the path of a patch does not exist.",
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
        "A field of an override policy is invalid, or a resource uses an invalid policy.",
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
        "The override rules for a resource apply to a cluster, but do not change the resource.",
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
        "A patch with the operator replace adds a field that did not exist.",
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
        "A rule has no effect, because a later rule of the policy sets the same fields on all clusters of the rule.",
    ),
    RULE_TEXT_UNKNOWN := FindingCode(
        "RuleTextUnknown",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The recorded state is missing, so that the earlier version of a rule is unknown. The package stays unchanged "
        "until the rollout reaches its cluster.",
    ),
    RULE_UNREACHED := FindingCode(
        "RuleUnreached",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A rule of an override policy selects only clusters that have no resource with this policy.",
    ),
    RULE_TEXT_UNREADABLE := FindingCode(
        "RuleTextUnreadable",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "In a closed wave, the earlier version of a rule cannot be read any more. The rule has no effect there.",
    ),
    TAG_INVALID := FindingCode(
        "TagInvalid", Severity.ERROR, FindingScope.OBJECT, "A policy sets a value that is not a valid image tag."
    ),
    VARIABLE_UNRESOLVED := FindingCode(
        "ClusterVariableUnresolved",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A variable of an override policy has no value for a cluster, or an invalid value.",
    ),
    VALUE_REQUIRED := FindingCode(
        "ValueRequired",
        Severity.ERROR,
        FindingScope.OBJECT,
        "An operator of an override policy requires a value, but the value is missing.",
    ),
    WAVE_MATCHES_NO_CLUSTER := FindingCode(
        "WaveMatchesNoCluster",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A wave of a rollout selects no cluster, or only clusters of earlier waves.",
    ),
)
# The codes of warnings about the overrides of one package on one cluster.
WARNINGS = frozenset(
    code.name for code in CODES if code.severity is Severity.WARNING and code.scope is FindingScope.PACKAGE
)
