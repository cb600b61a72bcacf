"""Rollouts of override rules: computation of the clusters that use the current version of a rule.

A rollout applies a new version of a rule to groups of clusters, which are called waves. A wave opens when all earlier
waves are complete. On clusters of closed waves, the earlier version stays in effect.

The caller provides the published packages, their dates and the current time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.controllers.clusters.selection import Cluster, is_cluster_selected
from reconciler.controllers.override_policies.model import (
    CLUSTER_OVERRIDE_POLICY_KIND,
    OVERRIDE_POLICY_KIND,
    OverridePolicy,
    OverrideRule,
    Rollout,
)
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.krm.objects import ObjectKey
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached

_MAX_LISTED = 5
_CLUSTER_SCOPE = "_cluster"
# Cache the parsed ids, because the states of all clusters refer to the same rules.
_MAX_CACHED_IDS = 4096
_RESERVED_CHARACTERS = re.compile(r"[^A-Za-z0-9.-]")
_ESCAPE_SEQUENCE = re.compile(rb"%([0-9A-F]{2})")


@dataclass(frozen=True, order=True)
class RuleId:
    """Identity of a rule: the policy, and the name of the rule. A rule without a name has its number as `rule`.

    The text form is one word without spaces, e.g. "OverridePolicy/namespace/name#rule".
    """

    policy: ObjectKey
    rule: str

    def __str__(self) -> str:
        namespace = _escape(self.policy.namespace) or _CLUSTER_SCOPE
        return f"{self.policy.kind}/{namespace}/{_escape(self.policy.name)}#{self.rule}"


@cached(_MAX_CACHED_IDS)
def parse_rule_id(text: str) -> RuleId | None:
    """Return the rule id for its text form. Return None if the text is not a rule id."""
    policy, _, rule = text.partition("#")
    match policy.split("/"):
        case [str(kind), str(namespace), str(name)] if (
            kind in (CLUSTER_OVERRIDE_POLICY_KIND, OVERRIDE_POLICY_KIND) and name and rule
        ):
            decoded_namespace = "" if namespace == _CLUSTER_SCOPE else _unescape(namespace)
            return RuleId(ObjectKey(KUBEADMIRAL_GROUP, kind, decoded_namespace, _unescape(name)), rule)
    return None


def _escape(name: str) -> str:
    # Escape all characters except letters, digits, dots and hyphens, because the config may contain names that are
    # invalid in Kubernetes, e.g. with a space.
    return _RESERVED_CHARACTERS.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def _unescape(text: str) -> str:
    data = text.encode(errors="replace")
    return _ESCAPE_SEQUENCE.sub(lambda match: bytes.fromhex(match[1].decode()), data).decode(errors="replace")


def list_rule_ids(policy: OverridePolicy) -> Iterator[tuple[RuleId, OverrideRule]]:
    """Yield the rules of a policy in order, each with its id."""
    for number, rule in enumerate(policy.rules):
        yield RuleId(policy.key, rule.name or str(number)), rule


def find_rollouts(policies: OverridePolicies) -> Mapping[RuleId, OverrideRule]:
    """Return all rules of valid policies that have a rollout, sorted by id."""
    return dict(
        sorted(
            (rule_id, rule)
            for policy in policies.valid.values()
            for rule_id, rule in list_rule_ids(policy)
            if rule.rollout
        )
    )


def find_wave(rollout: Rollout, cluster: Cluster) -> int:
    """Return the index of a cluster's wave, which is the first wave that selects the cluster.

    If no wave selects the cluster, return the number of waves.
    """
    return next(
        (number for number, wave in enumerate(rollout.waves) if is_cluster_selected(wave, cluster)), len(rollout.waves)
    )


@dataclass(frozen=True)
class ProgressUnknown:
    """A package that has not been rendered with its current inputs, so that its content is unknown.

    If `package` is "", the content of all packages of a cluster is unknown.
    """

    package: str = ""


@dataclass(frozen=True)
class ProgressPending:
    """A package that is not published with the current version of the rule.

    `has_retreated` means that an earlier revision of the package was published with the current version of the rule.
    """

    package: str
    has_retreated: bool = False


@dataclass(frozen=True)
class ProgressPublished:
    """A package that is published with the current version of the rule.

    `since` is the date of the commit that published the package, in seconds since 1970.
    """

    package: str
    since: int


RolloutProgress = ProgressUnknown | ProgressPending | ProgressPublished
ClusterProgress = tuple[str, RolloutProgress]


@dataclass(frozen=True)
class RolloutGate:
    """The progress of a rollout.

    Attributes:
        open_clusters: Clusters whose wave is open.
        next_opening_seconds: Time at which the next wave opens, in seconds since 1970. None if a person must publish a
            package first.
        wait_reasons: The reasons why waves are closed, by number of the wave.
        undecided_clusters: Clusters whose wave is closed. If such a cluster already has the current version of the
            rule, it keeps this version. Empty if a person reverted a package that had the current version.
    """

    open_clusters: frozenset[str]
    next_opening_seconds: int | None = None
    wait_reasons: Mapping[int, str] = field(default_factory=dict)
    undecided_clusters: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _WaveWait:
    """The reason why the next wave is closed.

    Attributes:
        until: Time at which the wave opens, in seconds since 1970. None if the time is unknown.
        has_reverted_package: Whether a package was reverted from the current version of the rule.
    """

    reason: str
    until: int | None = None
    has_reverted_package: bool = False


def evaluate_gate(
    rule: OverrideRule, clusters: Mapping[str, Cluster], progress: Callable[[str], Iterable[RolloutProgress]], now: int
) -> RolloutGate:
    """Return which waves of a rollout are open: the first wave, and each wave whose previous waves are complete.

    A wave is complete when all packages of its clusters have been published with the current version of the rule for
    the soak time. If there is no soak time, the wave is complete when these packages are published. A wave also
    includes clusters that `targetClusters` does not select, because the new version may remove an effect of an earlier
    version on these clusters.

    Args:
        progress: Function that returns the progress of all packages of a cluster. The function is called once for each
            cluster of the complete waves and of the first incomplete wave.
        now: Current time in seconds since 1970.
    """
    assert rule.rollout is not None
    waves = _group_by_wave(rule.rollout, clusters)
    for completed in range(1, len(waves)):
        wave_progress = [
            (name, package_progress)
            for name in waves[completed - 1][1]
            for package_progress in sorted(progress(name), key=_get_package)
        ]
        if wait := _find_wait(wave_progress, rule.rollout, now):
            first, *later = (number for number, _ in waves[completed:])
            waits = {first: wait.reason, **dict.fromkeys(later, f"waits for wave {first} to open")}
            return RolloutGate(
                _collect_names(waves[:completed]),
                wait.until,
                waits,
                _collect_names(() if wait.has_reverted_package else waves[completed:]),
            )
    return RolloutGate(_collect_names(waves))


def _group_by_wave(rollout: Rollout, clusters: Mapping[str, Cluster]) -> list[tuple[int, list[str]]]:
    """Return a pair for each wave that has clusters: the number of the wave, and the names of its clusters."""
    waves: dict[int, list[str]] = {}
    for name in sorted(clusters):
        waves.setdefault(find_wave(rollout, clusters[name]), []).append(name)
    return sorted(waves.items())


def _collect_names(waves: Iterable[tuple[int, list[str]]]) -> frozenset[str]:
    return frozenset(name for _, names in waves for name in names)


def _get_package(progress: RolloutProgress) -> str:
    return progress.package


def _find_wait(wave_progress: list[ClusterProgress], rollout: Rollout, now: int) -> _WaveWait | None:
    pending = [
        _describe_pending(cluster, progress)
        for cluster, progress in wave_progress
        if not isinstance(progress, ProgressPublished)
    ]
    if pending:
        more = f"; and {len(pending) - _MAX_LISTED} more" if len(pending) > _MAX_LISTED else ""
        has_reverted_package = any(
            isinstance(progress, ProgressPending) and progress.has_retreated for _, progress in wave_progress
        )
        reason = f"waits for {'; '.join(pending[:_MAX_LISTED])}{more}"
        return _WaveWait(reason, has_reverted_package=has_reverted_package)
    return _find_soak_wait(wave_progress, rollout, now) if rollout.soak_seconds else None


def _describe_pending(cluster: str, progress: RolloutProgress) -> str:
    if not progress.package:
        return f'cluster "{cluster}": the content of its packages is unknown'
    # Use the same message while this pass renders the package (`ProgressUnknown`) and after the package is drafted
    # (`ProgressPending`). With different messages, the status would change in the next pass.
    return f'cluster "{cluster}": {progress.package} is not published with the current version of the rule'


def _find_soak_wait(wave_progress: list[ClusterProgress], rollout: Rollout, now: int) -> _WaveWait | None:
    dates = [
        (progress.since, cluster, progress.package)
        for cluster, progress in wave_progress
        if isinstance(progress, ProgressPublished)
    ]
    since, cluster, package = max(dates, default=(0, "", ""))
    until = since + rollout.soak_seconds
    if not dates or until <= now:
        return None
    last = f'cluster "{cluster}" has {package} with the current version of the rule since {format_rfc3339(since)}'
    return _WaveWait(f"waits until {format_rfc3339(until)}, because the soak time is {rollout.soak}: {last}", until)
