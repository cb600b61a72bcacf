"""Rollouts: on which clusters the text of a rule is in force today, as far as it is published (design 10.23).

What has been published, and since when, is told by the caller: state is Git's, and the clock is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.caching import cached
from reconciler.krm.dates import rfc3339
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.overrides.model import CLUSTER_KIND, GROUP, NAMESPACED_KIND, Policy, Rollout, Rule
from reconciler.rules.overrides.read_policy import Policies

_NAMED_AT_MOST = 5
_NO_NAMESPACE = "_cluster"
# the states of all clusters name the same rules
_REMEMBERED_NAMES = 4096
_UNUSUAL = re.compile(r"[^A-Za-z0-9.-]")
_ESCAPED = re.compile(rb"%([0-9A-F]{2})")


@dataclass(frozen=True, order=True)
class RuleId:
    """Which rule is meant, by its name, else by its number in the policy; as text it is one word."""

    policy: ObjectKey
    rule: str

    def __str__(self) -> str:
        namespace = _escaped(self.policy.namespace) or _NO_NAMESPACE
        return f"{self.policy.kind}/{namespace}/{_escaped(self.policy.name)}#{self.rule}"


@cached(_REMEMBERED_NAMES)
def rule_id_of(text: str) -> RuleId | None:
    """Return which rule is meant by the text of a RuleId, None if it is none."""
    policy, _, rule = text.partition("#")
    match policy.split("/"):
        case [str(kind), str(namespace), str(name)] if kind in (CLUSTER_KIND, NAMESPACED_KIND) and name and rule:
            where = "" if namespace == _NO_NAMESPACE else _unescaped(namespace)
            return RuleId(ObjectKey(GROUP, kind, where, _unescaped(name)), rule)
    return None


def _escaped(name: str) -> str:
    # people may call a policy what Kubernetes would not: one with a blank must stay one word
    return _UNUSUAL.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def _unescaped(text: str) -> str:
    data = text.encode(errors="replace")
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), data).decode(errors="replace")


def rule_ids(policy: Policy) -> Iterator[tuple[RuleId, Rule]]:
    """Yield the rules of a policy in their order, each with what it goes by."""
    for number, rule in enumerate(policy.rules):
        yield RuleId(policy.key, rule.name or str(number)), rule


def rollouts_of(policies: Policies) -> Mapping[RuleId, Rule]:
    """Return every rule of a sound policy that has a rollout, sorted."""
    return dict(sorted((name, rule) for one in policies.sound.values() for name, rule in rule_ids(one) if rule.rollout))


def wave_of(rollout: Rollout, cluster: Cluster) -> int:
    """Return the wave that a cluster is in, from 0: the first that matches it, else the one after all of them."""
    return next((number for number, wave in enumerate(rollout.waves) if is_target(wave, cluster)), len(rollout.waves))


@dataclass(frozen=True)
class Unknown:
    """A package that has not been rendered with what it is made of today, so that nobody knows what it would be.

    Without a name it stands for all that a cluster has.
    """

    package: str = ""


@dataclass(frozen=True)
class Behind:
    """A package that is not published with today's text of the rule. `has_retreated`: it was, and went back."""

    package: str
    has_retreated: bool = False


@dataclass(frozen=True)
class Published:
    """A package that is published with today's text, `since` the date of the commit that brought it."""

    package: str
    since: int


Progress = Unknown | Behind | Published
Told = tuple[str, Progress]


@dataclass(frozen=True)
class Gate:
    """The clusters whose wave is open; when the next one opens if nothing moves, None if that is up to people.

    `waits` says for every closed wave what it waits for. `undecided` are the clusters of closed waves if no
    package went back from today's text: those of them that have the text already keep it.
    """

    open: frozenset[str]
    due: int | None = None
    waits: Mapping[int, str] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Wait:
    """What keeps the next wave closed, and until when, if known. `is_unsure`: no package went back from the text."""

    why: str
    until: int | None = None
    is_unsure: bool = False


def gate(rule: Rule, clusters: Mapping[str, Cluster], progress: Callable[[str], Iterable[Progress]], now: int) -> Gate:
    """Return which waves of a rollout are open: the first, and each that all before it are done for.

    A wave is done when every package that `progress` tells of its clusters is published with today's text, and has
    been for the soak time. All clusters of a wave count, those that targetClusters leaves out as well: where an earlier
    text took effect, and today's does not, the rollout takes something away, and that may go wrong, too.
    Without a soak time dates do not matter, not even one that is still to come. `progress` is asked once for each
    cluster of the waves before the first that is closed.
    """
    assert rule.rollout is not None
    waves = _waves(rule.rollout, clusters)
    for done in range(1, len(waves)):
        told = [(name, one) for name in waves[done - 1][1] for one in sorted(progress(name), key=_package)]
        if wait := _wait(told, rule.rollout, now):
            first, *later = (number for number, _ in waves[done:])
            waits = {first: wait.why, **dict.fromkeys(later, f"waits for wave {first} to open")}
            return Gate(_names(waves[:done]), wait.until, waits, _names(waves[done:] if wait.is_unsure else ()))
    return Gate(_names(waves))


def _waves(rollout: Rollout, clusters: Mapping[str, Cluster]) -> list[tuple[int, list[str]]]:
    """Return the waves that have clusters, with these, in their order."""
    waves: dict[int, list[str]] = {}
    for name in sorted(clusters):
        waves.setdefault(wave_of(rollout, clusters[name]), []).append(name)
    return sorted(waves.items())


def _names(waves: Iterable[tuple[int, list[str]]]) -> frozenset[str]:
    return frozenset(name for _, names in waves for name in names)


def _package(one: Progress) -> str:
    return one.package


def _wait(told: list[Told], rollout: Rollout, now: int) -> _Wait | None:
    behind = [_behind(cluster, one) for cluster, one in told if not isinstance(one, Published)]
    if behind:
        more = f"; and {len(behind) - _NAMED_AT_MOST} more" if len(behind) > _NAMED_AT_MOST else ""
        is_unsure = not any(isinstance(one, Behind) and one.has_retreated for _, one in told)
        return _Wait(f"waits for {'; '.join(behind[:_NAMED_AT_MOST])}{more}", is_unsure=is_unsure)
    return _soaking(told, rollout, now) if rollout.soak_seconds else None


def _behind(cluster: str, one: Progress) -> str:
    if not one.package:
        return f"cluster {cluster}: what it has is not known"
    # of one that this pass renders only now, the next would say the same
    return f"cluster {cluster}: {one.package} is not published with this text"


def _soaking(told: list[Told], rollout: Rollout, now: int) -> _Wait | None:
    dates = [(one.since, cluster, one.package) for cluster, one in told if isinstance(one, Published)]
    since, cluster, package = max(dates, default=(0, "", ""))
    until = since + rollout.soak_seconds
    if not dates or until <= now:
        return None
    last = f"cluster {cluster} has {package} with this text since {rfc3339(since)}"
    return _Wait(f"waits until {rfc3339(until)}, for soak {rollout.soak}: {last}", until, is_unsure=True)
