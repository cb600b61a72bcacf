"""The kinds of config objects that the reconciler reads, by API group, and suggestions for misspelled kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

PORCH_GROUP = "config.porch.kpt.dev"
_MIN_SIMILARITY = 0.85
_POLICIES = ("ClusterOverridePolicy", "ClusterPropagationPolicy", "OverridePolicy", "PropagationPolicy")

# The API group `platform` also has the kinds that ComponentType objects define. An object in this group with an
# unknown kind causes the finding ComponentTypeNotFound.
KNOWN_KINDS: Mapping[str, tuple[str, ...]] = {
    PORCH_GROUP: ("PackageVariant", "PackageVariantSet", "Repository"),
    "core.kubeadmiral.io": (*_POLICIES, "FederatedCluster"),
    "greenhouse.sap": (
        "Catalog", "Cluster", "ClusterPluginDefinition", "Organization", "Plugin", "PluginDefinition", "PluginOverride",
        "PluginPreset", "Team",
    ),
    "kafka.strimzi.io": ("Kafka", "KafkaNodePool"),
    "platform": ("Addon", "Component", "ComponentDefinition", "ComponentType", "EnvBinding", "RenderResult"),
    "reconciler.dev": ("Build", "Environment", "PackageRevisionSet", "PackageStatus", "TemplateMergeRule", "Tenant"),
}  # fmt: skip
# API groups with which users may confuse a known API group, e.g. "openchoreo.dev" instead of "platform". The reconciler
# reads only objects with the known API group.
COUNTERPART_GROUPS: Mapping[str, str] = {"openchoreo.dev": "platform"}


def find_known_group(group: str) -> str:
    """Return `group` if it is a known API group. Otherwise, return the known group that the user probably means.

    For example, return "platform" for "openchoreo.dev". Return "" if no known group is similar.
    """
    if group in KNOWN_KINDS:
        return group
    if group in COUNTERPART_GROUPS:
        return COUNTERPART_GROUPS[group]
    return next(iter(_find_similar(group, KNOWN_KINDS)), "")


def suggest_kind(kind: str, group: str = "") -> str:
    """Return the known kind with the most similar name, as `<kind> of <group>`. Return "" if no kind is similar.

    An equal name is preferred over a similar name, and a kind of `group` over a kind of another group.
    """
    groups = ([group] if group else []) + [known_group for known_group in KNOWN_KINDS if known_group != group]
    for known_group in groups:
        if kind in KNOWN_KINDS[known_group]:
            return f"{kind} of {known_group}"
    for known_group in groups:
        if similar_kinds := _find_similar(kind, KNOWN_KINDS[known_group]):
            return f"{similar_kinds[0]} of {known_group}"
    return ""


def _find_similar(name: str, known_names: Iterable[str]) -> list[str]:
    names = {known_name.lower(): known_name for known_name in known_names}
    return [names[match] for match in get_close_matches(name.lower(), list(names), 1, _MIN_SIMILARITY)]
