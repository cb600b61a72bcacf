"""Which policies are in use, as far as all packages on their way to clusters tell (kubeadmiral 10.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.rules.overrides.apply import Overridden
from reconciler.rules.overrides.codes import POLICY_UNUSED
from reconciler.rules.overrides.read_policy import Policies


@dataclass(frozen=True)
class Usage:
    """How a policy is used: resources by group and kind, the clusters of each rule, and failed resources.

    A resource counts once, on however many clusters it is.
    """

    policy: ObjectKey
    kinds: tuple[tuple[str, str, int], ...]
    clusters: tuple[tuple[str, ...], ...]
    failed: tuple[str, ...]


def usage_of(policies: Policies, overridden: Iterable[tuple[str, str, Overridden]]) -> tuple[Usage, ...]:
    """Return the usage of every sound policy; each resource comes with its cluster and its package."""
    named: dict[ObjectKey, list[tuple[str, str, Overridden]]] = {}
    for entry in overridden:
        for key in entry[2].asked:
            named.setdefault(key, []).append(entry)
    return tuple(_usage(key, len(policy.rules), named.get(key, [])) for key, policy in sorted(policies.sound.items()))


def unused_findings(policies: Policies, asked: Iterable[ObjectKey]) -> tuple[Finding, ...]:
    """Return a warning for every sound policy that no resource names; `asked` are all that any does."""
    known = set(asked)
    return tuple(
        POLICY_UNUSED.finding(f"no resource on its way to a cluster names {key}", Where(one.file, one.line, str(key)))
        for key, one in sorted(policies.sound.items())
        if key not in known
    )


def _usage(key: ObjectKey, rules: int, entries: list[tuple[str, str, Overridden]]) -> Usage:
    resources = {(package, one.resource.file, one.resource.key) for _, package, one in entries}
    kinds = Counter((resource.group, resource.kind) for _, _, resource in resources)
    clusters: list[set[str]] = [set() for _ in range(rules)]
    for cluster, _, one in entries:
        for matched in one.matched:
            for number in matched.rules if matched.policy.key == key else ():
                clusters[number].add(cluster)
    failed = {f"{cluster} {package} {one.resource.key}" for cluster, package, one in entries if one.failed}
    counted = tuple((group, kind, count) for (group, kind), count in sorted(kinds.items()))
    return Usage(key, counted, tuple(tuple(sorted(names)) for names in clusters), tuple(sorted(failed)))
