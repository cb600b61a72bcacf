"""Finding codes that several controllers use: Repositories, clusters, containers and deletions."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    DELETION_HELD := FindingCode(
        "DeletionHeld",
        Severity.ERROR,
        FindingScope.OBJECT,
        "Packages are no longer requested. They are kept until a person confirms the deletion.",
    ),
    DEPRECATED := FindingCode(
        "Deprecated",
        Severity.WARNING,
        FindingScope.OBJECT,
        "An object uses a deprecated field or notation. The object is read anyway.",
    ),
    DESTINATION_CONFLICT := FindingCode(
        "DestinationConflict",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "Repositories or clusters share a name, a directory on a branch, or a draft branch.",
    ),
    DUPLICATE_ENV_NAME := FindingCode(
        "DuplicateEnvName",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A container sets an environment variable twice. The last value is used.",
    ),
    FIELD_MISSPELT := FindingCode(
        "FieldMisspelt",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A field has no effect, and its name is similar to that of a valid field. The field is kept.",
    ),
    KAFKA_NOT_PLACED := FindingCode(
        "KafkaNotPlaced",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A Kafka or KafkaNodePool is placed on no cluster, and no other object uses it.",
    ),
    KUBERNETES_VERSION_INVALID := FindingCode(
        "KubernetesVersionInvalid",
        Severity.WARNING,
        FindingScope.CLUSTER,
        "A cluster's Kubernetes version is invalid.",
    ),
    NAME_NOT_USABLE := FindingCode(
        "NameNotUsable",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "A cluster name, branch or tag prefix is invalid in Git, or is reserved.",
    ),
    NO_DESTINATION := FindingCode(
        "NoDestination",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "An object names no cluster, or it names a cluster without a Repository and `fleet.url` is empty.",
    ),
    OVERRIDE_UNUSED := FindingCode(
        "OverrideUnused",
        Severity.WARNING,
        FindingScope.OBJECT,
        "An override or policy applies to no object.",
    ),
    REPOSITORY_INVALID := FindingCode(
        "RepositoryInvalid",
        Severity.ERROR,
        FindingScope.DESTINATION,
        "A field of a Repository has an invalid value.",
    ),
    SECRET_IN_BRANCH := FindingCode(
        "SecretInBranch",
        Severity.WARNING,
        FindingScope.PACKAGE,
        "A package contains a Secret with values. The settings can make this an error.",
    ),
    SELECTOR_INVALID := FindingCode(
        "SelectorInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A selector is invalid.",
    ),
    SELECTOR_MATCHES_NOTHING := FindingCode(
        "SelectorMatchesNothing",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A selector matches no object.",
    ),
    UNKNOWN_CLUSTER := FindingCode(
        "UnknownCluster",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A policy or an annotation names a cluster that does not exist.",
    ),
    UNUSED := FindingCode("Unused", Severity.INFO, FindingScope.OBJECT, "No object uses this object."),
)
