"""The kinds that the reconciler reads, by API group, and what is suggested for a kind that it does not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_SIMILARITY = 0.85
_POLICIES = ("ClusterOverridePolicy", "ClusterPropagationPolicy", "OverridePolicy", "PropagationPolicy")

# Component types add kinds to `platform`, and an unknown kind there is the error ComponentTypeNotFound.
KNOWN_KINDS: Mapping[str, tuple[str, ...]] = {
    "config.porch.kpt.dev": ("PackageVariant", "PackageVariantSet", "Repository"),
    "core.kubeadmiral.io": (*_POLICIES, "FederatedCluster"),
    "greenhouse.sap": (
        "Cluster", "ClusterPluginDefinition", "Organization", "Plugin", "PluginDefinition", "PluginOverride",
        "PluginPreset", "Team",
    ),
    "kafka.strimzi.io": ("Kafka", "KafkaNodePool"),
    "platform": ("Addon", "Component", "ComponentDefinition", "ComponentType", "EnvBinding", "RenderResult"),
    "reconciler.dev": ("Build", "Environment", "PackageRevisionSet", "PackageStatus", "TemplateMergeRule"),
}  # fmt: skip
# Groups of upstream projects whose kinds are read under another group.
READ_AS: Mapping[str, str] = {"openchoreo.dev": "platform"}


def group_read_for(group: str) -> str:
    """Return the group that is read in place of this one: itself, its counterpart or the similar one; "" if none."""
    if group in KNOWN_KINDS:
        return group
    if group in READ_AS:
        return READ_AS[group]
    return next(iter(_similar(group, KNOWN_KINDS)), "")


def kind_suggestion(kind: str, group: str = "") -> str:
    """Return the kind that may be meant, as `Kind of group`; the same or a similar one, of `group` first."""
    groups = ([group] if group else []) + [one for one in KNOWN_KINDS if one != group]
    for one in groups:
        if kind in KNOWN_KINDS[one]:
            return f"{kind} of {one}"
    for one in groups:
        if found := _similar(kind, KNOWN_KINDS[one]):
            return f"{found[0]} of {one}"
    return ""


def _similar(name: str, known: Iterable[str]) -> list[str]:
    by_lower_case = {one.lower(): one for one in known}
    return [by_lower_case[one] for one in get_close_matches(name.lower(), list(by_lower_case), 1, _SIMILARITY)]
