"""The scope of SealedSecrets: the name and the namespace to which the ciphertexts of a SealedSecret are bound."""

from __future__ import annotations

from reconciler.packages.resource import KrmResource

KIND, GROUP = "SealedSecret", "bitnami.com"
_CLUSTER_WIDE = "sealedsecrets.bitnami.com/cluster-wide"
_NAMESPACE_WIDE = "sealedsecrets.bitnami.com/namespace-wide"


def read_scope(resource: KrmResource) -> str | None:
    """Return the scope of a SealedSecret, such as `the name "db" in namespace "shop"`, or None for other resources.

    The controller can decrypt a SealedSecret only while its scope is unchanged.
    """
    if resource.kind != KIND or resource.group != GROUP:
        return None
    namespace = f'namespace "{resource.namespace}"'
    if resource.annotations.get(_CLUSTER_WIDE) == "true":
        return "the whole cluster"
    if resource.annotations.get(_NAMESPACE_WIDE) == "true":
        return namespace
    return f'the name "{resource.name}" in {namespace}'


def format_scope_change(cause: str, old: str, new: str, excluded_from: str) -> str:
    """Return the message for a SealedSecret whose scope has changed.

    Args:
        cause: The function or the policies that change the scope.
        excluded_from: The noun for the cause in the next step of the message: "function" or "policy".
    """
    return (
        f"{cause} changes the scope of the SealedSecret from {old} to {new}, so that the controller of SealedSecrets"
        f" cannot decrypt it. Next step: exclude the SealedSecret from the {excluded_from}, or seal it again"
    )
