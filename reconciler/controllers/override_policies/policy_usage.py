"""Use of override policies by rendered packages, and findings about policies, rules and waves that have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.controllers.clusters.selection import Cluster, ClusterSelection, explain_no_cluster, is_cluster_selected
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import (
    CLUSTER_OVERRIDE_POLICY_KIND,
    OVERRIDE_POLICY_KIND,
    EnvItem,
    ImageItem,
    ListItem,
    MapItem,
    OverrideItem,
    OverridePolicy,
    OverrideRule,
    Rollout,
)
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from reconciler.controllers.override_policies.rollout import find_wave
from reconciler.krm.field_text import suggest_name
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass

UsageData = Mapping[str, Mapping[str, Any]]
WrittenFields = frozenset[tuple[str, ...]]
"""The fields that a rule writes. Two rules write the same field of a resource if they have the same tuple."""


@dataclass(frozen=True)
class PolicyUsage:
    """The use of an override policy by rendered packages.

    Attributes:
        kinds: For each kind of resource that uses the policy: its API group, the kind, and the number of resources. A
            resource that several clusters have is counted once.
        clusters: For each rule, the clusters on which the rule applies to a resource.
        failed: The cluster, package and name of each resource to which the policy could not be applied.
    """

    policy: ObjectKey
    kinds: tuple[tuple[str, str, int], ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()
    failed: tuple[str, ...] = ()


def build_usage_data(overridden: Iterable[OverriddenResource]) -> UsageData:
    """Return data about the policies that one package on one cluster uses. The state stores this data.

    The result maps the name of a policy to data with these fields:

    - `resources`: maps `group/kind` to the resources of this kind that use the policy
    - `rules`: the indexes of the rules that apply to the cluster
    - `failed`: the resources to which the policy could not be applied
    """
    usage: dict[str, dict[str, Any]] = {}
    for overridden_resource in overridden:
        resource = overridden_resource.resource
        rules = {matched.policy.key.reference: matched.rule_numbers for matched in overridden_resource.matched_policies}
        for policy in (key.reference for key in overridden_resource.candidate_policies):
            data = usage.setdefault(policy, {"resources": {}, "rules": []})
            kind = data["resources"].setdefault(f"{resource.group}/{resource.kind}", [])
            kind.append(f"{resource.file} {resource.key.reference}")
            data["rules"] = sorted({*data["rules"], *rules.get(policy, ())})
            if overridden_resource.has_errors:
                data.setdefault("failed", []).append(resource.key.reference)
    return dict(sorted(usage.items()))


def parse_policy_name(name: str) -> ObjectKey | None:
    """Return the identity of the policy for a name in usage data. Return None if the text is not a policy name."""
    kind, _, rest = name.partition("/")
    namespace, _, policy = rest.partition("/")
    if kind not in (CLUSTER_OVERRIDE_POLICY_KIND, OVERRIDE_POLICY_KIND) or not policy:
        return None
    return ObjectKey(KUBEADMIRAL_GROUP, kind, "" if kind == CLUSTER_OVERRIDE_POLICY_KIND else namespace, policy)


def compute_policy_usage(
    policies: OverridePolicies, packages: Iterable[tuple[str, str, UsageData]]
) -> tuple[PolicyUsage, ...]:
    """Return for every valid policy which packages use it.

    Each entry of `packages` contains the cluster, the name and the usage data of one package.
    """
    entries_by_policy: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for cluster, package, data in packages:
        for policy, usage in data.items():
            entries_by_policy.setdefault(policy, []).append((cluster, package, usage))
    return tuple(
        _build_usage(key, len(policy.rules), entries_by_policy.get(key.reference, []))
        for key, policy in sorted(policies.valid.items())
    )


def check_unused_policies(usages: Iterable[PolicyUsage], policies: OverridePolicies) -> tuple[Finding, ...]:
    """Return a warning for every valid policy that no rendered resource uses."""
    unused = [(usage.policy, policies.valid[usage.policy]) for usage in usages if not usage.kinds]
    return tuple(
        PolicyCodes.POLICY_UNUSED.finding(
            f"{key} has no effect, because no rendered resource uses it",
            SourceLocation(usage.file, usage.line, key.reference),
        )
        for key, usage in unused
    )


def _build_usage(key: ObjectKey, rules: int, entries: list[tuple[str, str, Mapping[str, Any]]]) -> PolicyUsage:
    resources = {
        (package, kind, name)
        for _, package, usage in entries
        for kind, names in usage["resources"].items()
        for name in names
    }
    kinds = Counter(tuple(kind.rsplit("/", 1)) for _, kind, _ in resources)
    clusters: list[set[str]] = [set() for _ in range(rules)]
    for cluster, _, usage in entries:
        # Ignore rule numbers that are too high, because the policy may have had more rules when the package was
        # rendered.
        for number in usage["rules"]:
            if number < rules:
                clusters[number].add(cluster)
    failed = {f"{cluster} {package} {name}" for cluster, package, usage in entries for name in usage.get("failed", ())}
    counted = tuple((group, kind, count) for (group, kind), count in sorted(kinds.items()))
    return PolicyUsage(key, counted, tuple(tuple(sorted(names)) for names in clusters), tuple(sorted(failed)))


def lint_policies(policies: Iterable[OverridePolicy], clusters: Mapping[str, Cluster]) -> Iterator[Finding]:
    """Yield a warning for each rule that later rules overwrite completely on all clusters of the rule.

    A rule is checked only if it writes the same fields in every resource. Such a rule sets labels, annotations,
    environment variables, `args`, `command`, or parts of image references. Rules with a rollout are skipped, because
    clusters may use different versions of such a rule.
    """
    for policy in policies:
        reached = [
            frozenset(name for name, cluster in clusters.items() if is_cluster_selected(rule.targets, cluster))
            for rule in policy.rules
        ]
        for number, rule in enumerate(policy.rules):
            later = _find_overwriting_rule(number, rule, policy.rules, reached)
            if later is not None:
                message = (
                    f"spec.overrideRules[{number}] has no effect, because spec.overrideRules[{later}] applies later and"
                    f" sets the same fields on all clusters of spec.overrideRules[{number}]. Next step: remove one of"
                    " the two rules, or change their order"
                )
                yield PolicyCodes.RULE_OVERWRITTEN.finding(message, _get_rule_location(policy, number))


def check_unreached_rules(
    usages: Iterable[PolicyUsage], policies: OverridePolicies, clusters: Mapping[str, Cluster]
) -> Iterator[Finding]:
    """Yield a warning for each rule that never applies.

    A rule never applies if none of the clusters that it selects has a resource to which the policy is attached.
    """
    for usage in usages:
        policy = policies.valid[usage.policy]
        for number, (rule, reached_clusters) in enumerate(zip(policy.rules, usage.clusters, strict=True)):
            selected = sorted(name for name, cluster in clusters.items() if is_cluster_selected(rule.targets, cluster))
            if usage.kinds and selected and not reached_clusters:
                message = (
                    f"spec.overrideRules[{number}] has no effect, because no resource on the clusters of this rule"
                    f" ({_format_names(selected)}) uses {policy.label}"
                )
                yield PolicyCodes.RULE_UNREACHED.finding(message, _get_rule_location(policy, number))


def _find_overwriting_rule(
    number: int, rule: OverrideRule, rules: tuple[OverrideRule, ...], reached: list[frozenset[str]]
) -> int | None:
    written_fields = _find_written_fields(rule)
    if not written_fields or not reached[number]:
        return None
    for later in range(number + 1, len(rules)):
        later_written = _find_written_fields(rules[later])
        if later_written is None:
            # Do not report the earlier rule as overwritten: the fields of the later rule are unknown, and the later
            # rule may need the result of the earlier rule.
            return None
        if reached[number] <= reached[later] and written_fields <= later_written:
            return later
    return None


def _find_written_fields(rule: OverrideRule) -> WrittenFields | None:
    """Return all fields that a rule writes. Return None if the fields differ between resources or clusters."""
    if rule.template is not None or rule.rollout:
        return None
    written_fields: set[tuple[str, ...]] = set()
    for overrider, items in rule.overriders:
        for item in items:
            fields = _list_written_fields(overrider, item)
            if fields is None:
                return None
            written_fields.update(fields)
    return frozenset(written_fields)


def _list_written_fields(overrider: str, item: OverrideItem) -> list[tuple[str, ...]] | None:
    """Return the fields that an item overwrites. Return None if the effect of the item depends on the current value."""
    match item:
        case MapItem("overwrite" | "set", value):
            return [(overrider, item.operator, key) for key in value]
        case EnvItem(container, "overwrite" | "set", value):
            return [(overrider, item.operator, container, str(entry.get("name"))) for entry in value]
        case ListItem(container, "overwrite"):
            return [(overrider, container)]
        case ImageItem(names, path, operations) if all(entry.operator == "overwrite" for entry in operations):
            path_prefix = path or ()
            return [(overrider, *path_prefix, name, entry.component) for entry in operations for name in names or ("",)]
        case _:
            return None


def _get_rule_location(policy: OverridePolicy, number: int) -> SourceLocation:
    return SourceLocation(policy.file, policy.line, policy.key.reference, f"/spec/overrideRules/{number}")


def _format_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def check_rule_clusters(
    policies: Iterable[OverridePolicy], clusters: Iterable[Cluster], uncertain_clusters: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return a warning for every unknown cluster name, and for every rule or wave that selects no cluster.

    `uncertain_clusters` are names of clusters that may exist, but whose labels are unknown. If there are such clusters,
    only unknown names are reported, because a rule or wave may select one of these clusters.
    """
    known = {cluster.name: cluster for cluster in clusters}
    findings = (finding for policy in policies for finding in _check_policy(policy, known, uncertain_clusters))
    return tuple(
        finding
        for finding in findings
        if not uncertain_clusters or finding.code == ControllerCodes.UNKNOWN_CLUSTER.name
    )


def _check_policy(
    policy: OverridePolicy, known: Mapping[str, Cluster], uncertain_clusters: Collection[str]
) -> Iterator[Finding]:
    for number, rule in enumerate(policy.rules):
        field = f"spec.overrideRules[{number}].targetClusters"
        location = SourceLocation(
            policy.file, policy.line, policy.key.reference, f"/spec/overrideRules/{number}/targetClusters"
        )
        yield from _check_cluster_names(rule.targets, {*known, *uncertain_clusters}, field, location)
        if not any(is_cluster_selected(rule.targets, cluster) for cluster in known.values()):
            reason = explain_no_cluster(rule.targets, known)
            yield PolicyCodes.RULE_MATCHES_NO_CLUSTER.finding(f"{field} selects no cluster, because {reason}", location)
        if rule.rollout:
            yield from _check_waves(policy, number, rule.rollout, known, uncertain_clusters)


def _check_waves(
    policy: OverridePolicy,
    rule: int,
    rollout: Rollout,
    known: Mapping[str, Cluster],
    uncertain_clusters: Collection[str],
) -> Iterator[Finding]:
    in_use = {find_wave(rollout, cluster) for cluster in known.values()}
    for number, wave in enumerate(rollout.waves):
        field = f"spec.overrideRules[{rule}].rollout.waves[{number}]"
        pointer = f"/spec/overrideRules/{rule}/rollout/waves/{number}"
        location = SourceLocation(policy.file, policy.line, policy.key.reference, pointer)
        yield from _check_cluster_names(wave, {*known, *uncertain_clusters}, field, location)
        if number not in in_use:
            message = f"{field} is skipped, because it selects no cluster, or only clusters of earlier waves"
            yield PolicyCodes.WAVE_MATCHES_NO_CLUSTER.finding(message, location)


def _check_cluster_names(
    targets: ClusterSelection, known: Collection[str], field: str, location: SourceLocation
) -> Iterator[Finding]:
    for name in dict.fromkeys((*targets.clusters, *targets.excluded_clusters)):
        if name not in known:
            guess = suggest_name(name, sorted(known))
            yield ControllerCodes.UNKNOWN_CLUSTER.finding(
                f'{field} contains "{name}", but there is no cluster with this name{guess}', location
            )
