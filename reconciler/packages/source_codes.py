"""Finding codes for errors, warnings and information about the source of a package, e.g. a Helm chart."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info, warning

PACKAGE = FindingScope.PACKAGE


class SourceCodes(CodeTable):
    """Finding codes for errors, warnings and information about the source of a package, e.g. a Helm chart."""

    ARCHIVE_INVALID = error(
        "The archive of a chart or artifact is damaged, or contains an entry that is not allowed.", PACKAGE
    )
    BASE_UNAVAILABLE = error(
        "The recorded state of a package is lost, and the files from which it was created cannot be rendered again.",
        PACKAGE,
    )
    CHART_ENTRY_INVALID = info("An entry in the index of a chart repository is invalid, and is ignored.")
    CHART_KUBE_VERSION = error("A chart does not support the Kubernetes version of the cluster.", PACKAGE)
    CHART_NOT_INSTALLABLE = error("A library chart cannot be rendered.", PACKAGE)
    CHART_NOT_LOCKED = error("A chart or an overlay requires another chart without an exact version.", PACKAGE)
    CHART_RENDER_FAILED = error("The program helm could not render a chart.", PACKAGE)
    CRD_IN_TWO_PACKAGES = warning(
        "Two packages of a cluster contain the same CustomResourceDefinition, and at least one of these packages is"
        " rendered from a chart.",
        PACKAGE,
        "CRDInTwoPackages",
    )
    CRD_REMOVAL_HELD = warning(
        "A chart no longer has a CustomResourceDefinition, or a resource of another kind in `guards.hold_kinds`. The "
        "resource stays in the package until a person confirms its deletion.",
        PACKAGE,
        "CRDRemovalHeld",
    )
    CREDENTIAL_HELPER_IGNORED = warning(
        "The Docker config of the settings names a credential helper. The reconciler does not start it."
    )
    DEPENDENCY_REPOSITORY_MISSING = error(
        "A chart or an overlay requires a chart that it does not contain and that no Repository provides.", PACKAGE
    )
    DIGEST_MISMATCH = error("A download does not have the digest that the package or the repository names.", PACKAGE)
    DIGEST_UNAVAILABLE = error("A repository or registry no longer has the content that a package names.", PACKAGE)
    ENGINE_UNSUPPORTED = error("The program that renders a source has a version that is not supported.", PACKAGE)
    FILE_REPEATED = error("Two sources of a package contain a file with the same path.", PACKAGE)
    GENERATE_NAME_NOT_SUPPORTED = error("A chart rendered a resource with `generateName` and without a name.", PACKAGE)
    HELM_HOOKS_PRESENT = info("A package contains resources that are Helm hooks.", PACKAGE)
    HELM_UNAVAILABLE = error("A chart needs the program helm, which cannot run on this machine.", PACKAGE)
    HOOK_LEFT_OUT = info("A Helm hook is not part of the package.", PACKAGE)
    KUSTOMIZE_FAILED = error("A Kustomize overlay is not valid, or cannot be built.", PACKAGE)
    KUSTOMIZE_UNAVAILABLE = error(
        "A Kustomize overlay needs the program kustomize or kubectl, which cannot run on this machine.", PACKAGE
    )
    LOOKUP_RETURNS_NOTHING = info("A chart calls `lookup`, which returns nothing during a render.", PACKAGE)
    NONDETERMINISTIC_CHART = error(
        "The output of a chart depends on a clock, on randomness or on the order of maps.", PACKAGE
    )
    NOT_IN_CACHE = error("With the option --offline, a source that is not in the cache cannot be read.", PACKAGE)
    PATH_INVALID = error("The path of a file in a source is absolute, or contains `..`.", PACKAGE)
    PLAINTEXT_SECRET = error("A secret value in a package is not encrypted.", PACKAGE)
    REMOTE_BASE_REFUSED = error("A Kustomize overlay refers to a URL. The reconciler does not download it.", PACKAGE)
    RELEASE_RENAMED = warning(
        "The release name or the namespace of a published chart changes, so that the cluster replaces workloads.",
        PACKAGE,
    )
    RENDERED_OUTPUT_INVALID = error("A chart rendered a document that is not a Kubernetes resource.", PACKAGE)
    RENDERED_TEXT_NORMALIZED = info(
        "The text of a rendered resource was written again, because YAML parsers read it differently.", PACKAGE
    )
    RENDER_OUT_OF_MEMORY = error("The program that renders a source exceeded its memory limit.", PACKAGE)
    RENDER_TIMEOUT = error("The program that renders a source exceeded its time limit. It is tried again.", PACKAGE)
    RESOURCE_KEPT = info(
        "A chart no longer has a resource with the annotation `helm.sh/resource-policy: keep`. The resource stays in "
        "the package.",
        PACKAGE,
    )
    RESOURCE_REPEATED = error(
        "Two sources of a package contain the same resource. With `onRepeatedResource: lastWins`, this is a warning.",
        PACKAGE,
    )
    SEALED_SECRET_SCOPE = warning(
        "A rule changes the name, namespace or scope of a SealedSecret, so that its controller cannot decrypt it.",
        PACKAGE,
    )
    SECRET_VALUES_REFUSED = error("Values of a Secret would be written to a branch in plain text.", PACKAGE)
    SIGNATURE_INVALID = error("The signature of a source is not valid, or the key of a signer cannot be used.", PACKAGE)
    SIGNATURE_MISSING = error("A Repository requires signatures, and a source has none.", PACKAGE)
    SOPS_MAC_BROKEN = error("A rule would change a SOPS document, so that SOPS could not decrypt it.", PACKAGE)
    SOPS_MAC_SUSPECT = warning(
        "A SOPS document was changed but not encrypted again, so that SOPS probably cannot decrypt it.", PACKAGE
    )
    SOPS_WITHHELD = info("A function does not receive a SOPS document.", PACKAGE)
    SOURCE_ADDRESS_REFUSED = error("The settings do not allow the address of a chart repository or registry.", PACKAGE)
    SOURCE_INVALID = error("A chart repository or registry returned an answer that is not valid.", PACKAGE)
    SOURCE_KIND_AMBIGUOUS = error(
        "The files of a source belong to several kinds of packages. Set the field `kind` of the upstream.", PACKAGE
    )
    SOURCE_TOO_LARGE = error("A source or its rendered output exceeds a limit.", PACKAGE)
    SOURCE_UNAUTHORIZED = error("A repository or registry refuses access, or its credentials cannot be read.", PACKAGE)
    SOURCE_UNREACHABLE = warning(
        "A chart repository or registry cannot be reached. The last known versions are used. For a package without "
        "content, this is an error."
    )
    UPSTREAM_EMPTY = error("A source contains no Kubernetes resource.", PACKAGE)
    VALUES_INVALID = error(
        "Values of a chart are not a map, cannot be merged, or do not match the schema of the chart.", PACKAGE
    )
    VALUES_NOT_FOUND = error(
        "Values of a chart do not exist: an object, its key or field, or a values file. For optional values, the "
        "severity is info.",
        PACKAGE,
    )
    VALUES_PRECISION = warning("An integer in the values of a chart loses digits in Helm.", PACKAGE)
    VERIFIER_UNAVAILABLE = error("The program or Python package that verifies signatures cannot be used.", PACKAGE)
    VERSION_REWRITTEN = warning(
        "A chart repository or registry has different files for a version that a package uses. Review the draft.",
        PACKAGE,
    )
    VERSION_WITHDRAWN = warning("A chart repository or registry does not list the version of a package any more.")


TEMPORARY_CODES = frozenset(
    code.name
    for code in (
        SourceCodes.HELM_UNAVAILABLE, SourceCodes.KUSTOMIZE_UNAVAILABLE, SourceCodes.RENDER_OUT_OF_MEMORY,
        SourceCodes.RENDER_TIMEOUT,
    )
)  # fmt: skip
"""Codes of errors that can disappear although no input of a package changes. Each pass tries again."""
