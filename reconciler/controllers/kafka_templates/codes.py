"""Finding codes about templates: missing parents, merges, and values that the Strimzi operator refuses or ignores."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    COMPONENT_NAME_COLLISION := FindingCode(
        "ComponentNameCollision",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "Two KafkaNodePools in one namespace would produce objects with the same names.",
    ),
    DUPLICATE_MOUNT_PATH := FindingCode(
        "DuplicateMountPath",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A container template mounts two volumes at one path.",
    ),
    DUPLICATE_VOLUME_NAME := FindingCode(
        "DuplicateVolumeName",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A pod template has a volume with the name of another volume of the pod, possibly one of the operator.",
    ),
    ENV_NAME_RESERVED := FindingCode(
        "EnvNameReserved",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A container template sets a variable that the operator sets too. The value of the template is ignored.",
    ),
    ENV_WITHOUT_VALUE := FindingCode(
        "EnvWithoutValue",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A container template has a variable without a value, which the operator ignores.",
    ),
    FORBIDDEN_MOUNT_PATH := FindingCode(
        "ForbiddenMountPath",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A container template mounts a volume outside of /mnt. If the operator accepts it, the severity is warning.",
    ),
    IGNORED_LABEL := FindingCode(
        "IgnoredLabel",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A template sets an app.kubernetes.io label or annotation that the operator drops for this object.",
    ),
    INVALID_ENV_SOURCE := FindingCode(
        "InvalidEnvSource",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A variable of a container template has more than one value.",
    ),
    INVALID_TEMPLATE_TYPE := FindingCode(
        "InvalidTemplateType",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A template, one of its properties, or a value in it has an invalid type or range.",
    ),
    INVALID_VOLUME_NAME := FindingCode(
        "InvalidVolumeName",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A pod template has a volume with an invalid name.",
    ),
    INVALID_VOLUME_SOURCE := FindingCode(
        "InvalidVolumeSource",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A volume of a pod template has no source or several sources.",
    ),
    LITERAL_SECRET_SUSPECTED := FindingCode(
        "LiteralSecretSuspected",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A container template contains the value of a variable with the name of a secret; use a Secret instead.",
    ),
    MATERIALISED_INPUT := FindingCode(
        "MaterialisedInput",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A child has a template that is already merged, so that inherited values cannot be distinguished from its own.",
    ),
    MOUNT_WITHOUT_VOLUME := FindingCode(
        "MountWithoutVolume",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A container template mounts a volume that the pod does not have.",
    ),
    NO_BROKER_POOL := FindingCode(
        "NoBrokerPool",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A Kafka has no KafkaNodePool with replicas and the role broker.",
    ),
    NO_CONTROLLER_POOL := FindingCode(
        "NoControllerPool",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A Kafka has no KafkaNodePool with replicas and the role controller.",
    ),
    NO_USABLE_POOL := FindingCode(
        "NoUsablePool", Severity.ERROR, FindingScope.PACKAGE, "A Kafka has no KafkaNodePool with replicas."
    ),
    NULL_TEMPLATE_PROPERTY := FindingCode(
        "NullTemplateProperty",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A property of a child's template is null and therefore inherited. The value {} resets it.",
    ),
    OPERATOR_LABEL_REPLACED := FindingCode(
        "OperatorLabelReplaced",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A template replaces an app.kubernetes.io label of the operator, against the operator's documentation.",
    ),
    ORPHAN_POOL := FindingCode(
        "OrphanPool",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A child names a parent that does not exist in its namespace on its cluster. The child is not changed.",
    ),
    POOL_WITHOUT_CLUSTER := FindingCode(
        "PoolWithoutCluster",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A child such as a KafkaNodePool names no parent, and is not changed.",
    ),
    POOL_WITHOUT_ROLE := FindingCode(
        "PoolWithoutRole", Severity.ERROR, FindingScope.PACKAGE, "A KafkaNodePool has no roles or unknown roles."
    ),
    REDUNDANT_OVERRIDE := FindingCode(
        "RedundantOverride",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A property of a child equals the parent's, and therefore does not follow changes of the parent.",
    ),
    RESERVED_ANNOTATION := FindingCode(
        "ReservedAnnotation",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A template sets a strimzi.io annotation that the operator refuses. If the operator accepts it, the "
        "severity is warning.",
    ),
    RESERVED_LABEL := FindingCode(
        "ReservedLabel",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A template sets a strimzi.io label that the operator refuses. If the operator accepts it, the "
        "severity is warning.",
    ),
    SECURITY_CONTEXT_REPLACED := FindingCode(
        "SecurityContextReplaced",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A template replaces the complete security context of the operator's restricted profile.",
    ),
    SHADOWED_TEMPLATE_FIELDS := FindingCode(
        "ShadowedTemplateFields",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A property of a child replaces the parent's property, so that settings of the parent have no effect.",
    ),
    TEMPLATE_MODE_INVALID := FindingCode(
        "TemplateModeInvalid",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "The annotation for the merge mode of a child has an invalid value.",
    ),
    TEMPLATE_RESULT_UNWRITABLE := FindingCode(
        "TemplateResultUnwritable",
        Severity.ERROR,
        FindingScope.PACKAGE,
        "A child with its merged template cannot be written as YAML.",
    ),
    TEMPLATE_RULE_INVALID := FindingCode(
        "TemplateRuleInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A field of a template merge rule is invalid, or two rules contradict each other.",
    ),
    TEMPLATE_VERSION_UNKNOWN := FindingCode(
        "TemplateVersionUnknown",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "The rule for a kind does not support the API version of a document, which is not changed.",
    ),
    TEMPLATE_WITHOUT_EFFECT := FindingCode(
        "TemplateWithoutEffect",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A KafkaNodePool has a template for objects that it does not create.",
    ),
    UNKNOWN_TEMPLATE_FIELD := FindingCode(
        "UnknownTemplateField",
        Severity.INFO,
        FindingScope.PACKAGE,
        "A property of a template has an unknown field, which is passed on unchanged.",
    ),
    UNKNOWN_TEMPLATE_PROPERTY := FindingCode(
        "UnknownTemplateProperty",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A template has an unknown property, which is ignored in the merge.",
    ),
)
# Codes for values that the Strimzi documentation forbids, although the operator does not refuse the resource.
STRICT = frozenset(
    code.name
    for code in (
        FORBIDDEN_MOUNT_PATH,
        OPERATOR_LABEL_REPLACED,
        RESERVED_ANNOTATION,
        RESERVED_LABEL,
        UNKNOWN_TEMPLATE_PROPERTY,
    )
)
# Codes of findings that can be warnings. Users can turn these warnings into errors with the setting `rules.strict`.
WARNINGS = STRICT | {code.name for code in CODES if code.severity is Severity.WARNING}
