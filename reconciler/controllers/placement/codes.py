"""Finding codes for the placement of resources on clusters and for propagation policies."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, error, info, warning


class PlacementCodes(CodeTable):
    """Finding codes for the placement of resources on clusters and for propagation policies."""

    NOT_IN_EFFECT = warning(
        "A field of a propagation policy has no effect, because only KubeAdmiral's scheduler uses it."
    )
    NOT_PLACED = warning("An object has a placement, but objects of its kind are not copied to clusters.")
    PLACEMENT_INCONCLUSIVE = error(
        "A resource stays on a cluster outside of its placement, because the placement names an unknown cluster."
    )
    PLACEMENT_INVALID = error(
        "The placement label or annotation of a resource is invalid. The resource stays on its clusters."
    )
    PROPAGATION_LABEL_IGNORED = warning("The propagation policy label of a resource has no effect on this resource.")
    PROPAGATION_POLICY_INVALID = error(
        "A propagation policy is invalid. The resources that name it stay on their clusters."
    )
    PROPAGATION_POLICY_MATCHES_NO_CLUSTER = warning("A propagation policy selects no cluster.")
    PROPAGATION_POLICY_NOT_FOUND = error(
        "A resource names a propagation policy that does not exist. The resource stays on its clusters."
    )
    PROPAGATION_POLICY_UNUSABLE = error(
        "A resource names a propagation policy that is invalid or defined twice. The resource stays on its clusters."
    )
    PROPAGATION_POLICY_UNUSED = info("No resource names a propagation policy.")
    RESOURCE_PATH_NOT_USABLE = error(
        "The namespace or name of a resource is not valid in a path, or two resources would be written to the same"
        " file."
    )
