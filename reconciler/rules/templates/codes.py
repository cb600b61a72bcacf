"""The codes of templates: how parents and children are paired, merged, and what operators make of it (strimzi 9)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    COMPONENT_NAME_COLLISION := Code(
        "ComponentNameCollision",
        Severity.ERROR,
        Scope.PACKAGE,
        "Two KafkaNodePools of a namespace would have objects of one name: theirs begins with the Kafka's name.",
    ),
    DUPLICATE_MOUNT_PATH := Code(
        "DuplicateMountPath", Severity.ERROR, Scope.PACKAGE, "A container template mounts two volumes at one path."
    ),
    DUPLICATE_VOLUME_NAME := Code(
        "DuplicateVolumeName",
        Severity.ERROR,
        Scope.PACKAGE,
        "A pod template names a volume as another volume of the pod, which may be the operator's.",
    ),
    ENV_NAME_RESERVED := Code(
        "EnvNameReserved",
        Severity.WARNING,
        Scope.PACKAGE,
        "A container template names a variable that the operator sets, and then ignores in the template.",
    ),
    ENV_WITHOUT_VALUE := Code(
        "EnvWithoutValue",
        Severity.WARNING,
        Scope.PACKAGE,
        "A container template names a variable without a value, which the operator ignores.",
    ),
    FORBIDDEN_MOUNT_PATH := Code(
        "ForbiddenMountPath",
        Severity.ERROR,
        Scope.PACKAGE,
        "A container template mounts a volume elsewhere than below /mnt; a warning where the operator takes it still.",
    ),
    IGNORED_LABEL := Code(
        "IgnoredLabel",
        Severity.WARNING,
        Scope.PACKAGE,
        "A template sets an app.kubernetes.io label or annotation where the operator drops it.",
    ),
    INVALID_ENV_SOURCE := Code(
        "InvalidEnvSource",
        Severity.ERROR,
        Scope.PACKAGE,
        "A variable of a container template has more than one value.",
    ),
    INVALID_TEMPLATE_TYPE := Code(
        "InvalidTemplateType",
        Severity.ERROR,
        Scope.PACKAGE,
        "A template, a property of one, or a value in it is not of the type or range that it must have.",
    ),
    INVALID_VOLUME_NAME := Code(
        "InvalidVolumeName", Severity.ERROR, Scope.PACKAGE, "A pod template has a volume whose name cannot be one."
    ),
    INVALID_VOLUME_SOURCE := Code(
        "InvalidVolumeSource",
        Severity.ERROR,
        Scope.PACKAGE,
        "A volume of a pod template has no source, or several.",
    ),
    LITERAL_SECRET_SUSPECTED := Code(
        "LiteralSecretSuspected",
        Severity.WARNING,
        Scope.PACKAGE,
        "A container template writes out a variable whose name is that of a secret, instead of naming a Secret.",
    ),
    MATERIALISED_INPUT := Code(
        "MaterialisedInput",
        Severity.ERROR,
        Scope.PACKAGE,
        "A child has a template that was merged already: what it inherited cannot be told from its own any more.",
    ),
    MOUNT_WITHOUT_VOLUME := Code(
        "MountWithoutVolume",
        Severity.WARNING,
        Scope.PACKAGE,
        "A container template mounts a volume that the pod does not have.",
    ),
    NO_BROKER_POOL := Code(
        "NoBrokerPool", Severity.ERROR, Scope.PACKAGE, "A Kafka has no KafkaNodePool with replicas and the role broker."
    ),
    NO_CONTROLLER_POOL := Code(
        "NoControllerPool",
        Severity.ERROR,
        Scope.PACKAGE,
        "A Kafka has no KafkaNodePool with replicas and the role controller.",
    ),
    NO_USABLE_POOL := Code(
        "NoUsablePool", Severity.ERROR, Scope.PACKAGE, "A Kafka has no KafkaNodePool that has replicas."
    ),
    NULL_TEMPLATE_PROPERTY := Code(
        "NullTemplateProperty",
        Severity.WARNING,
        Scope.PACKAGE,
        "A child's template has a property that is null, and so inherits it; {} would reset it.",
    ),
    OPERATOR_LABEL_REPLACED := Code(
        "OperatorLabelReplaced",
        Severity.WARNING,
        Scope.PACKAGE,
        "A template replaces an app.kubernetes.io label of the operator's, which its documentation says not to do.",
    ),
    ORPHAN_POOL := Code(
        "OrphanPool",
        Severity.WARNING,
        Scope.PACKAGE,
        "The parent that a child names is not on its cluster, in its namespace; the child is written as it is.",
    ),
    POOL_WITHOUT_CLUSTER := Code(
        "PoolWithoutCluster",
        Severity.WARNING,
        Scope.PACKAGE,
        "A child such as a KafkaNodePool names no parent, and is written as it is.",
    ),
    POOL_WITHOUT_ROLE := Code(
        "PoolWithoutRole", Severity.ERROR, Scope.PACKAGE, "A KafkaNodePool has no roles, or unknown ones."
    ),
    REDUNDANT_OVERRIDE := Code(
        "RedundantOverride",
        Severity.INFO,
        Scope.PACKAGE,
        "A child's property equals its parent's, and so will not follow it when that changes.",
    ),
    RESERVED_ANNOTATION := Code(
        "ReservedAnnotation",
        Severity.ERROR,
        Scope.PACKAGE,
        "A template sets a strimzi.io annotation where the operator refuses it; a warning where it does not.",
    ),
    RESERVED_LABEL := Code(
        "ReservedLabel",
        Severity.ERROR,
        Scope.PACKAGE,
        "A template sets a strimzi.io label where the operator refuses it; a warning where it does not.",
    ),
    SECURITY_CONTEXT_REPLACED := Code(
        "SecurityContextReplaced",
        Severity.WARNING,
        Scope.PACKAGE,
        "A template replaces the whole security context of the operator's restricted profile.",
    ),
    SHADOWED_TEMPLATE_FIELDS := Code(
        "ShadowedTemplateFields",
        Severity.WARNING,
        Scope.PACKAGE,
        "A child's property replaces its parent's as a whole, and settings of the parent's are lost by that.",
    ),
    TEMPLATE_MODE_INVALID := Code(
        "TemplateModeInvalid",
        Severity.ERROR,
        Scope.PACKAGE,
        "The annotation that says what becomes of a child's template says something else.",
    ),
    TEMPLATE_RESULT_UNWRITABLE := Code(
        "TemplateResultUnwritable", Severity.ERROR, Scope.PACKAGE, "A child cannot be written with its merged template."
    ),
    TEMPLATE_RULE_INVALID := Code(
        "TemplateRuleInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A field of a template merge rule has a value that it must not have, or two rules contradict each other.",
    ),
    TEMPLATE_VERSION_UNKNOWN := Code(
        "TemplateVersionUnknown",
        Severity.WARNING,
        Scope.PACKAGE,
        "A document has an API version that the rule for its kind does not know, and is left alone.",
    ),
    TEMPLATE_WITHOUT_EFFECT := Code(
        "TemplateWithoutEffect",
        Severity.INFO,
        Scope.PACKAGE,
        "A KafkaNodePool has a template for objects that it does not have.",
    ),
    UNKNOWN_TEMPLATE_FIELD := Code(
        "UnknownTemplateField",
        Severity.INFO,
        Scope.PACKAGE,
        "A property of a template has a field that nobody knows; it is passed on as it is.",
    ),
    UNKNOWN_TEMPLATE_PROPERTY := Code(
        "UnknownTemplateProperty",
        Severity.WARNING,
        Scope.PACKAGE,
        "A template has a property that it cannot have; it is left out of what is merged.",
    ),
)
# where operators take more than their documentation says (strimzi 12), and what they would leave out without a word
STRICT = frozenset(
    one.name
    for one in (
        FORBIDDEN_MOUNT_PATH,
        OPERATOR_LABEL_REPLACED,
        RESERVED_ANNOTATION,
        RESERVED_LABEL,
        UNKNOWN_TEMPLATE_PROPERTY,
    )
)
# what can be told as a warning of the templates of one package
WARNINGS = STRICT | {one.name for one in CODES if one.severity is Severity.WARNING}
