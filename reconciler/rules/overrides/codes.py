"""The codes of override policies: reading them, attaching them, and what overriders refuse (kubeadmiral 2, 3, 5, 7)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    ANNOTATIONS_TOO_LARGE := Code(
        "AnnotationsTooLarge",
        Severity.ERROR,
        Scope.PACKAGE,
        "The annotations of a resource are larger than Kubernetes takes once its policies are applied.",
    ),
    COMPONENT_PRESENT := Code(
        "ComponentPresent",
        Severity.ERROR,
        Scope.PACKAGE,
        "An image has the component that a policy adds where it is absent.",
    ),
    CONTAINER_NOT_FOUND := Code(
        "ContainerNotFound",
        Severity.WARNING,
        Scope.PACKAGE,
        "A policy names a container that a resource does not have; nothing is changed for it.",
    ),
    DIGEST_INVALID := Code("DigestInvalid", Severity.ERROR, Scope.OBJECT, "A policy sets a digest that is none."),
    DIGEST_PINNED := Code(
        "DigestPinned",
        Severity.WARNING,
        Scope.PACKAGE,
        "A policy changes the repository or tag of an image whose digest stays, and the digest decides what is pulled.",
    ),
    FIELD_PATH_INVALID := Code(
        "FieldPathInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The fieldPath of a policy does not lead to a string in a resource, or is no JSON pointer.",
    ),
    FIELD_UNPARSABLE := Code(
        "FieldUnparsable",
        Severity.ERROR,
        Scope.PACKAGE,
        "A string whose inside a policy is to change is not of the format that the policy says, or cannot be edited.",
    ),
    FORBIDDEN_PATH := Code(
        "ForbiddenPath",
        Severity.ERROR,
        Scope.OBJECT,
        "A policy patches what makes a resource the one that it is: its kind, name or namespace.",
    ),
    IDENTITY_CHANGED := Code(
        "IdentityChanged",
        Severity.ERROR,
        Scope.PACKAGE,
        "Policies would make another resource of one: its kind, name or namespace differs afterwards.",
    ),
    IMAGE_PATH_INVALID := Code(
        "ImagePathInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The imagePath of a policy does not lead to a string in a resource, or is no JSON pointer.",
    ),
    IMAGE_RESULT_INVALID := Code(
        "ImageResultInvalid", Severity.ERROR, Scope.PACKAGE, "What a policy makes of an image is no image reference."
    ),
    IMAGE_UNPARSABLE := Code(
        "ImageUnparsable", Severity.ERROR, Scope.PACKAGE, "A policy is to change an image that is no image reference."
    ),
    KEY_EXISTS := Code(
        "KeyExists",
        Severity.ERROR,
        Scope.PACKAGE,
        "A resource has the label, annotation or variable that a policy adds where it is absent.",
    ),
    MAP_MALFORMED := Code(
        "MapMalformed",
        Severity.ERROR,
        Scope.PACKAGE,
        "The labels or annotations of a resource are not strings, so that a policy cannot be attached or applied.",
    ),
    OPERATOR_UNSUPPORTED := Code(
        "OperatorUnsupported",
        Severity.ERROR,
        Scope.OBJECT,
        "A policy names an operator that its overrider does not have.",
    ),
    POLICY_LABEL_IGNORED := Code(
        "OverridePolicyLabelIgnored",
        Severity.WARNING,
        Scope.PACKAGE,
        "A resource names an override policy where none can be attached: it has no namespace, or stands in a List.",
    ),
    PATCH_DROPPED_KEYS := Code(
        "PatchDroppedKeys",
        Severity.WARNING,
        Scope.PACKAGE,
        "A patch puts a mapping in the place of one that has more keys; patches replace, and do not merge.",
    ),
    PATCH_FIELD_UNKNOWN := Code(
        "PatchFieldUnknown",
        Severity.ERROR,
        Scope.PACKAGE,
        "A patch would create a field that the schema of a built-in Kubernetes kind does not have.",
    ),
    PATCH_INDEX_INVALID := Code(
        "PatchIndexInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The last step of a patch's path is no index of the list that it leads to.",
    ),
    PATCH_PARENT_MISSING := Code(
        "PatchParentMissing", Severity.ERROR, Scope.PACKAGE, "What a patch's path leads through does not exist."
    ),
    PATCH_PATH_INVALID := Code(
        "PatchPathInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "The path of a patch is no JSON pointer, or is the whole document.",
    ),
    PATCH_TARGET_MISSING := Code(
        "PatchTargetMissing", Severity.ERROR, Scope.PACKAGE, "A patch removes what does not exist."
    ),
    PATCH_VALUE_MISSING := Code(
        "PatchValueMissing",
        Severity.ERROR,
        Scope.OBJECT,
        "A patch that adds or replaces has no value; null would have to be written.",
    ),
    POD_SPEC_MALFORMED := Code(
        "PodSpecMalformed",
        Severity.ERROR,
        Scope.PACKAGE,
        "The pod template of a resource is not of the form that it must have.",
    ),
    POD_SPEC_MISSING := Code(
        "PodSpecMissing", Severity.ERROR, Scope.PACKAGE, "A resource that must have a pod template has none."
    ),
    POD_SPEC_UNKNOWN_KIND := Code(
        "PodSpecUnknownKind",
        Severity.ERROR,
        Scope.PACKAGE,
        "A policy is to change containers of a kind whose pod template nobody knows.",
    ),
    POLICY_DUPLICATE := Code(
        "PolicyDuplicate",
        Severity.ERROR,
        Scope.PACKAGE,
        "A resource names an override policy that stands twice in the config, so that neither counts.",
    ),
    POLICY_INVALID := Code(
        "PolicyInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A field of an override policy has a value that it must not have, or a resource names such a policy.",
    ),
    POLICY_NAME_EMPTY := Code(
        "PolicyNameEmpty",
        Severity.ERROR,
        Scope.PACKAGE,
        "The label of a resource that names its override policy is empty.",
    ),
    POLICY_NO_EFFECT := Code(
        "PolicyNoEffect",
        Severity.WARNING,
        Scope.PACKAGE,
        "Rules of the override policies of a resource apply to a cluster, and change nothing.",
    ),
    POLICY_NOT_FOUND := Code(
        "PolicyNotFound", Severity.ERROR, Scope.PACKAGE, "The override policy that a resource names does not exist."
    ),
    POLICY_UNUSED := Code(
        "PolicyUnused", Severity.WARNING, Scope.OBJECT, "No resource on its way to a cluster names an override policy."
    ),
    REPLACE_CREATED_MEMBER := Code(
        "ReplaceCreatedMember", Severity.WARNING, Scope.PACKAGE, "A patch replaces what did not exist, and so adds it."
    ),
    RESULT_UNWRITABLE := Code(
        "OverrideResultUnwritable", Severity.ERROR, Scope.PACKAGE, "What policies make of a resource cannot be written."
    ),
    RULE_MATCHES_NO_CLUSTER := Code(
        "RuleMatchesNoCluster",
        Severity.WARNING,
        Scope.OBJECT,
        "A rule of an override policy applies to none of the clusters that there are.",
    ),
    RULE_OVERWRITTEN := Code(
        "RuleOverwritten",
        Severity.WARNING,
        Scope.OBJECT,
        "Whatever a rule of an override policy sets, a later rule of it sets anew wherever the first applies.",
    ),
    RULE_TEXT_UNKNOWN := Code(
        "RuleTextUnknown",
        Severity.ERROR,
        Scope.PACKAGE,
        "After a lost state nobody knows which text of a rule a package has; it stays until the rollout comes to it.",
    ),
    RULE_UNREACHED := Code(
        "RuleUnreached",
        Severity.WARNING,
        Scope.OBJECT,
        "A rule of an override policy applies to clusters to which no resource with that policy goes.",
    ),
    RULE_TEXT_UNREADABLE := Code(
        "RuleTextUnreadable",
        Severity.WARNING,
        Scope.PACKAGE,
        "An earlier text of a rule, which a closed wave keeps, cannot be read any more; the rule does nothing there.",
    ),
    TAG_INVALID := Code("TagInvalid", Severity.ERROR, Scope.OBJECT, "A policy sets a tag that is none."),
    VARIABLE_UNRESOLVED := Code(
        "ClusterVariableUnresolved",
        Severity.ERROR,
        Scope.PACKAGE,
        "A variable of an override policy has no value for a cluster, or one that the policy could not say.",
    ),
    VALUE_REQUIRED := Code(
        "ValueRequired", Severity.ERROR, Scope.OBJECT, "An operator of an override policy needs a value, and has none."
    ),
    WAVE_MATCHES_NO_CLUSTER := Code(
        "WaveMatchesNoCluster",
        Severity.WARNING,
        Scope.OBJECT,
        "No cluster is in a wave of a rollout: it matches none, or only those that earlier waves have.",
    ),
)
# what is odd about the overrides of one package on one cluster
WARNINGS = frozenset(one.name for one in CODES if one.severity is Severity.WARNING and one.scope is Scope.PACKAGE)
