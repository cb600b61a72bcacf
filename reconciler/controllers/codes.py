"""Finding codes that several controllers use: Repositories, clusters, containers and deletions."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

PACKAGE = FindingScope.PACKAGE
TARGET = FindingScope.TARGET
CLUSTER = FindingScope.CLUSTER


class ControllerCodes(CodeTable):
    """Finding codes that several controllers use: Repositories, clusters, containers and deletions."""

    DELETION_HELD = error("Packages are no longer requested. They are kept until a person confirms the deletion.")
    DEPRECATED = warning("An object uses a deprecated field or notation. The object is read anyway.")
    DESTINATION_CONFLICT = error(
        "Repositories or clusters share a name, a directory on a branch, or a draft branch.", TARGET
    )
    DUPLICATE_ENV_NAME = warning("A container sets an environment variable twice. The last value is used.", PACKAGE)
    FIELD_MISSPELT = warning(
        "An unknown field has no effect, and its name is similar to the name of a valid field. The field is kept."
    )
    KAFKA_NOT_PLACED = warning("No cluster receives a Kafka or KafkaNodePool, and no other object uses it.")
    KUBERNETES_VERSION_INVALID = warning("A cluster's Kubernetes version is invalid.", CLUSTER)
    NAME_NOT_USABLE = error("A cluster name, branch or tag prefix is invalid in Git, or is reserved.", TARGET)
    NO_DESTINATION = error(
        "An object names no cluster, or it names a cluster without a Repository and `fleet.url` is empty.", TARGET
    )
    OVERRIDE_UNUSED = warning("An override or policy applies to no object.")
    REPOSITORY_INVALID = error("A field of a Repository has an invalid value.", TARGET)
    SECRET_IN_BRANCH = warning(
        "A package contains a Secret with unencrypted values. The setting `rules.secrets` can change this warning to"
        " an error.",
        PACKAGE,
    )
    SECRET_PATH_SHADOWED = warning(
        "A literal value replaces a value from a Secret, because the paths of both values overlap or lead into the same"
        " list.",
        PACKAGE,
    )
    SELECTOR_INVALID = error("A selector is invalid.")
    SELECTOR_MATCHES_NOTHING = warning("A selector matches no object.")
    UNVERIFIED_COMMIT = error(
        "A commit of the config or of an upstream has no valid signature by an allowed signer. With "
        "`verify_inputs: require`, the last verified commit stays in use. If no commit is verified, nothing "
        "changes."
    )
    UNKNOWN_CLUSTER = warning("A policy or an annotation names a cluster that does not exist.")
    UNUSED = info("No other object places, injects or selects this object.")
