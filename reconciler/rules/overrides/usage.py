"""Which policies are in use, as far as all packages on their way to clusters tell (kubeadmiral 10.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.rules.overrides.apply import Overridden
from reconciler.rules.overrides.codes import POLICY_UNUSED
from reconciler.rules.overrides.model import CLUSTER_KIND, GROUP, NAMESPACED_KIND
from reconciler.rules.overrides.read_policy import Policies

UsageData = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Usage:
    """How a policy is used: resources by group and kind, the clusters of each rule, and failed resources.

    A resource counts once, on however many clusters it is.
    """

    policy: ObjectKey
    kinds: tuple[tuple[str, str, int], ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()
    failed: tuple[str, ...] = ()


def usage_data(overridden: Iterable[Overridden]) -> UsageData:
    """Return how one package on one cluster uses policies, as state keeps it: by the policy's name.

    `resources` are those that name it, by `group/kind`; `rules` the numbers of its rules that are for the cluster, and
    `failed` the resources that could not be made.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in overridden:
        resource = one.resource
        rules = {str(matched.policy.key): matched.rules for matched in one.matched}
        for policy in map(str, one.asked):
            data = found.setdefault(policy, {"resources": {}, "rules": []})
            kind = data["resources"].setdefault(f"{resource.group}/{resource.kind}", [])
            kind.append(f"{resource.file} {resource.key}")
            data["rules"] = sorted({*data["rules"], *rules.get(policy, ())})
            if one.failed:
                data.setdefault("failed", []).append(str(resource.key))
    return dict(sorted(found.items()))


def policy_of(name: str) -> ObjectKey | None:
    """Return the policy that usage data name; None for what is no name of one."""
    kind, _, rest = name.partition("/")
    namespace, _, policy = rest.partition("/")
    if kind not in (CLUSTER_KIND, NAMESPACED_KIND) or not policy:
        return None
    return ObjectKey(GROUP, kind, "" if kind == CLUSTER_KIND else namespace, policy)


def usage_of(policies: Policies, packages: Iterable[tuple[str, str, UsageData]]) -> tuple[Usage, ...]:
    """Return the usage of every sound policy; what a package's usage is comes with its cluster and its name."""
    named: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for cluster, package, data in packages:
        for policy, used in data.items():
            named.setdefault(policy, []).append((cluster, package, used))
    return tuple(
        _usage(key, len(policy.rules), named.get(str(key), [])) for key, policy in sorted(policies.sound.items())
    )


def unused_findings(usages: Iterable[Usage], policies: Policies) -> tuple[Finding, ...]:
    """Return a warning for every sound policy that no resource on its way to a cluster names."""
    idle = [(one.policy, policies.sound[one.policy]) for one in usages if not one.kinds]
    return tuple(
        POLICY_UNUSED.finding(f"no resource on its way to a cluster names {key}", Where(one.file, one.line, str(key)))
        for key, one in idle
    )


def _usage(key: ObjectKey, rules: int, entries: list[tuple[str, str, Mapping[str, Any]]]) -> Usage:
    resources = {
        (package, kind, name)
        for _, package, used in entries
        for kind, names in used["resources"].items()
        for name in names
    }
    kinds = Counter(tuple(kind.rsplit("/", 1)) for _, kind, _ in resources)
    clusters: list[set[str]] = [set() for _ in range(rules)]
    for cluster, _, used in entries:
        # a policy may have had more rules when the package was made
        for number in (one for one in used["rules"] if one < rules):
            clusters[number].add(cluster)
    failed = {f"{cluster} {package} {one}" for cluster, package, used in entries for one in used.get("failed", ())}
    counted = tuple((group, kind, count) for (group, kind), count in sorted(kinds.items()))
    return Usage(key, counted, tuple(tuple(sorted(names)) for names in clusters), tuple(sorted(failed)))
