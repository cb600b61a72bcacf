"""The codes that rooms share: Repositories, clusters, containers, and what is no longer wanted (design 10.24)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    DELETION_HELD := Code(
        "DeletionHeld",
        Severity.ERROR,
        Scope.OBJECT,
        "Packages are not wanted any more, and are kept until somebody confirms that they may go.",
    ),
    DEPRECATED := Code(
        "Deprecated",
        Severity.WARNING,
        Scope.OBJECT,
        "An object was read although something in it is written in an old way.",
    ),
    DESTINATION_CONFLICT := Code(
        "DestinationConflict",
        Severity.ERROR,
        Scope.DESTINATION,
        "Two Repositories or clusters share a name, directories of Repositories on one branch overlap, or their drafts"
        " would share a branch.",
    ),
    DUPLICATE_ENV_NAME := Code(
        "DuplicateEnvName",
        Severity.WARNING,
        Scope.PACKAGE,
        "A container names a variable twice; the last one counts.",
    ),
    FIELD_MISSPELT := Code(
        "FieldMisspelt",
        Severity.WARNING,
        Scope.OBJECT,
        "A field that nobody reads is called almost like one that is read; it is kept, and says nothing.",
    ),
    KAFKA_NOT_PLACED := Code(
        "KafkaNotPlaced",
        Severity.WARNING,
        Scope.OBJECT,
        "A Kafka or KafkaNodePool of the config is placed on no cluster, and nothing else uses it.",
    ),
    KUBERNETES_VERSION_INVALID := Code(
        "KubernetesVersionInvalid",
        Severity.WARNING,
        Scope.CLUSTER,
        "A cluster says that it runs a version of Kubernetes that is none.",
    ),
    NAME_NOT_USABLE := Code(
        "NameNotUsable",
        Severity.ERROR,
        Scope.DESTINATION,
        "The name of a cluster, or a branch or tag prefix of a Repository, cannot be one in Git, or is reserved.",
    ),
    NO_DESTINATION := Code(
        "NoDestination",
        Severity.ERROR,
        Scope.DESTINATION,
        "Something goes to no cluster, or to one that has no Repository, while no fleet repository is set.",
    ),
    OVERRIDE_UNUSED := Code(
        "OverrideUnused", Severity.WARNING, Scope.OBJECT, "What overrides others applies to nothing that there is."
    ),
    REPOSITORY_INVALID := Code(
        "RepositoryInvalid",
        Severity.ERROR,
        Scope.DESTINATION,
        "A field of a Repository has a value that it must not have.",
    ),
    SECRET_IN_BRANCH := Code(
        "SecretInBranch",
        Severity.WARNING,
        Scope.PACKAGE,
        "A Secret with its values is on its way to a branch; an error where the settings say so.",
    ),
    SELECTOR_INVALID := Code(
        "SelectorInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A selector of a policy asks for something that no cluster can be asked.",
    ),
    SELECTOR_MATCHES_NOTHING := Code(
        "SelectorMatchesNothing",
        Severity.WARNING,
        Scope.OBJECT,
        "A selector matches nothing of what there is.",
    ),
    UNKNOWN_CLUSTER := Code(
        "UnknownCluster",
        Severity.WARNING,
        Scope.OBJECT,
        "A policy, or an annotation, names a cluster that does not exist.",
    ),
    UNUSED := Code("Unused", Severity.INFO, Scope.OBJECT, "Nothing in the config uses an object of it."),
)
