"""The codes of placements: what a resource or a propagation policy says of clusters (design 10.24, 10.32)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    NOT_IN_EFFECT := Code(
        "NotInEffect",
        Severity.WARNING,
        Scope.OBJECT,
        "A field of a propagation policy is for a scheduler that moves running workloads, and does nothing here.",
    ),
    NOT_PLACED := Code(
        "NotPlaced",
        Severity.WARNING,
        Scope.OBJECT,
        "An object says to which clusters it goes, and is of a kind that is not placed as it is.",
    ),
    PLACEMENT_INCONCLUSIVE := Code(
        "PlacementInconclusive",
        Severity.ERROR,
        Scope.OBJECT,
        "A resource stays on a cluster that its placement does not name, because it names one that does not exist.",
    ),
    PLACEMENT_INVALID := Code(
        "PlacementInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A label or annotation does not say where a resource is to go; the resource stays where it is.",
    ),
    PROPAGATION_LABEL_IGNORED := Code(
        "PropagationLabelIgnored",
        Severity.WARNING,
        Scope.OBJECT,
        "A label names a propagation policy that does not count for this resource.",
    ),
    PROPAGATION_POLICY_INVALID := Code(
        "PropagationPolicyInvalid",
        Severity.ERROR,
        Scope.OBJECT,
        "A propagation policy cannot be read; the resources that name it stay where they are.",
    ),
    PROPAGATION_POLICY_MATCHES_NO_CLUSTER := Code(
        "PropagationPolicyMatchesNoCluster",
        Severity.WARNING,
        Scope.OBJECT,
        "No cluster is one that a propagation policy chooses.",
    ),
    PROPAGATION_POLICY_NOT_FOUND := Code(
        "PropagationPolicyNotFound",
        Severity.ERROR,
        Scope.OBJECT,
        "A resource names a propagation policy that does not exist; it stays where it is.",
    ),
    PROPAGATION_POLICY_UNUSABLE := Code(
        "PropagationPolicyUnusable",
        Severity.ERROR,
        Scope.OBJECT,
        "A resource names a propagation policy that is invalid or stands twice; it stays where it is.",
    ),
    PROPAGATION_POLICY_UNUSED := Code(
        "PropagationPolicyUnused", Severity.INFO, Scope.OBJECT, "No resource names a propagation policy."
    ),
    RESOURCE_PATH_NOT_USABLE := Code(
        "ResourcePathNotUsable",
        Severity.ERROR,
        Scope.OBJECT,
        "A resource cannot have a file of its own: its namespace or name is none that a path can have, or is shared.",
    ),
)
