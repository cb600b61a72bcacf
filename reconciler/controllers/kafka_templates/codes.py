"""Finding codes about templates: missing parents, merges, and values that the Strimzi operator refuses or ignores."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, Severity, error, info, warning

PACKAGE = FindingScope.PACKAGE


class TemplateCodes(CodeTable):
    """Finding codes about templates: missing parents, merges, and values that Strimzi refuses or ignores."""

    COMPONENT_NAME_COLLISION = error(
        "Two KafkaNodePools in one namespace would produce objects with the same names.", PACKAGE
    )
    DUPLICATE_MOUNT_PATH = error("A container template mounts two volumes at one path.", PACKAGE)
    DUPLICATE_VOLUME_NAME = error(
        "A pod template has a volume with the same name as another volume of the pod. The operator can also add such a "
        "volume.",
        PACKAGE,
    )
    ENV_NAME_RESERVED = warning(
        "A container template sets a variable that the operator sets too. The value of the template is ignored.",
        PACKAGE,
    )
    ENV_WITHOUT_VALUE = warning(
        "A container template has a variable without a value, which the operator ignores.", PACKAGE
    )
    FORBIDDEN_MOUNT_PATH = error(
        "A container template mounts a volume outside of /mnt. If the operator accepts the path, the "
        "severity is warning.",
        PACKAGE,
    )
    IGNORED_LABEL = warning(
        "A template sets an app.kubernetes.io label or annotation that the operator drops for this object.", PACKAGE
    )
    INVALID_ENV_SOURCE = error("A variable of a container template has more than one value.", PACKAGE)
    INVALID_TEMPLATE_TYPE = error(
        "A template, one of its properties, or a value in it has an invalid type or range.", PACKAGE
    )
    INVALID_VOLUME_NAME = error("A pod template has a volume with an invalid name.", PACKAGE)
    INVALID_VOLUME_SOURCE = error("A volume of a pod template has no source or several sources.", PACKAGE)
    LITERAL_SECRET_SUSPECTED = warning(
        "A container template sets a variable to a value, although the name of the variable suggests a secret; use a "
        "Secret instead.",
        PACKAGE,
    )
    MATERIALISED_INPUT = error(
        "A child has a template that is already merged, so that inherited values cannot be distinguished "
        "from values of the child.",
        PACKAGE,
    )
    MOUNT_WITHOUT_VOLUME = warning("A container template mounts a volume that the pod does not have.", PACKAGE)
    NO_BROKER_POOL = error("A Kafka has no KafkaNodePool with replicas and the role broker.", PACKAGE)
    NO_CONTROLLER_POOL = error("A Kafka has no KafkaNodePool with replicas and the role controller.", PACKAGE)
    NO_USABLE_POOL = error("A Kafka has no KafkaNodePool with replicas.", PACKAGE)
    NULL_TEMPLATE_PROPERTY = warning(
        "A property of a child's template is null and therefore inherited. To inherit nothing, set the value {}.",
        PACKAGE,
    )
    OPERATOR_LABEL_REPLACED = warning(
        "A template replaces an app.kubernetes.io label of the operator. The documentation of the operator "
        "forbids this.",
        PACKAGE,
    )
    ORPHAN_POOL = warning(
        "A child names a parent that does not exist in the namespace and on the cluster of the child. The "
        "child is not changed.",
        PACKAGE,
    )
    POOL_WITHOUT_CLUSTER = warning(
        "A child, such as a KafkaNodePool, names no parent. The child is not changed.", PACKAGE
    )
    POOL_WITHOUT_ROLE = error("A KafkaNodePool has no roles or unknown roles.", PACKAGE)
    REDUNDANT_OVERRIDE = info(
        "A property of a child is set to the same value as in the parent. Later changes of the parent do not "
        "change the child.",
        PACKAGE,
    )
    RESERVED_ANNOTATION = error(
        "A template sets a strimzi.io annotation that is reserved for the operator. If the operator accepts the "
        "annotation, the severity is warning.",
        PACKAGE,
    )
    RESERVED_LABEL = error(
        "A template or a KafkaNodePool sets a strimzi.io label that is reserved for the operator. If the operator "
        "accepts the label, the severity is warning.",
        PACKAGE,
    )
    SECURITY_CONTEXT_REPLACED = warning(
        "A template replaces the complete security context that the operator sets in its restricted profile.", PACKAGE
    )
    SHADOWED_TEMPLATE_FIELDS = warning(
        "A property of a child replaces the parent's property, so that settings of the parent have no effect.", PACKAGE
    )
    TEMPLATE_MODE_INVALID = error("The annotation that sets the merge mode of a child has an invalid value.", PACKAGE)
    TEMPLATE_RESULT_UNWRITABLE = error("A child with its merged template cannot be written as YAML.", PACKAGE)
    TEMPLATE_RULE_INVALID = error("A field of a template merge rule is invalid, or two rules contradict each other.")
    TEMPLATE_VERSION_UNKNOWN = warning(
        "A template merge rule does not support the API version of a resource. The resource is not changed.", PACKAGE
    )
    TEMPLATE_WITHOUT_EFFECT = info(
        "A KafkaNodePool has a template for objects that the operator does not create for this KafkaNodePool.", PACKAGE
    )
    UNKNOWN_TEMPLATE_FIELD = info(
        "A property of a template has an unknown field. The field is kept unchanged.", PACKAGE
    )
    UNKNOWN_TEMPLATE_PROPERTY = warning("A template has an unknown property. The merge ignores this property.", PACKAGE)


# Codes for values that the Strimzi documentation forbids, although the operator does not refuse the resource.
STRICT = frozenset(
    code.name
    for code in (
        TemplateCodes.FORBIDDEN_MOUNT_PATH,
        TemplateCodes.OPERATOR_LABEL_REPLACED,
        TemplateCodes.RESERVED_ANNOTATION,
        TemplateCodes.RESERVED_LABEL,
        TemplateCodes.UNKNOWN_TEMPLATE_PROPERTY,
    )
)
# Codes of findings that can be warnings. Users can turn these warnings into errors with the setting `rules.strict`.
WARNINGS = STRICT | {code.name for code in TemplateCodes.by_name.values() if code.severity is Severity.WARNING}
