"""Finding codes for the placement of resources on clusters and for propagation policies."""

from __future__ import annotations

from reconciler.krm.findings import FindingCode, FindingScope, Severity

CODES = (
    NOT_IN_EFFECT := FindingCode(
        "NotInEffect",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A field of a propagation policy has no effect, because only KubeAdmiral's scheduler uses it.",
    ),
    NOT_PLACED := FindingCode(
        "NotPlaced",
        Severity.WARNING,
        FindingScope.OBJECT,
        "An object has a placement, but its kind is not copied to clusters.",
    ),
    PLACEMENT_INCONCLUSIVE := FindingCode(
        "PlacementInconclusive",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A resource stays on a cluster outside of its placement, because the placement names an unknown cluster.",
    ),
    PLACEMENT_INVALID := FindingCode(
        "PlacementInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The placement label or annotation of a resource is invalid. The resource stays on its clusters.",
    ),
    PROPAGATION_LABEL_IGNORED := FindingCode(
        "PropagationLabelIgnored",
        Severity.WARNING,
        FindingScope.OBJECT,
        "The propagation policy label of a resource has no effect on this resource.",
    ),
    PROPAGATION_POLICY_INVALID := FindingCode(
        "PropagationPolicyInvalid",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A propagation policy is invalid. The resources that name it stay on their clusters.",
    ),
    PROPAGATION_POLICY_MATCHES_NO_CLUSTER := FindingCode(
        "PropagationPolicyMatchesNoCluster",
        Severity.WARNING,
        FindingScope.OBJECT,
        "A propagation policy selects no cluster.",
    ),
    PROPAGATION_POLICY_NOT_FOUND := FindingCode(
        "PropagationPolicyNotFound",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A resource names a propagation policy that does not exist. The resource stays on its clusters.",
    ),
    PROPAGATION_POLICY_UNUSABLE := FindingCode(
        "PropagationPolicyUnusable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "A resource names a propagation policy that is invalid or defined twice. The resource stays on its clusters.",
    ),
    PROPAGATION_POLICY_UNUSED := FindingCode(
        "PropagationPolicyUnused", Severity.INFO, FindingScope.OBJECT, "No resource names a propagation policy."
    ),
    RESOURCE_PATH_NOT_USABLE := FindingCode(
        "ResourcePathNotUsable",
        Severity.ERROR,
        FindingScope.OBJECT,
        "The namespace or name of a resource is not valid in a path, or another resource has the same file.",
    ),
)
