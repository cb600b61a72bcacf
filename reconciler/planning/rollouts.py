"""Rollouts: how far rules have come, from what is published on the clusters of each wave (design 10.23)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary
from reconciler.planning.claims import ask, chosen
from reconciler.planning.decide import is_current
from reconciler.planning.last_mile import ROLLOUT, LastMile
from reconciler.planning.state import PackageRecord, Seen
from reconciler.planning.survey import Surveyed
from reconciler.rules.overrides.rollout import Behind, Gate, Progress, Published, RuleId, Unknown, gate
from reconciler.rules.variant import Variant
from reconciler.snapshot.objects import TreeId
from reconciler.snapshot.trace import Answers, question

# since when the packages of each cluster are published as they are, as far as anybody has looked
SeenSince = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Rollouts:
    """The gate of every rule that is rolled out in waves. `due` is when the next one opens, if nothing moves.

    `is_unsure`: of some package it is not known yet what becomes of it today, so that a next pass may say more.
    """

    gates: Mapping[RuleId, Gate] = field(default_factory=dict)
    is_unsure: bool = False

    @property
    def due(self) -> int | None:
        """When, in seconds since 1970, another wave opens if nothing moves; None if that is up to people."""
        return min((one.due for one in self.gates.values() if one.due is not None), default=None)


class Progresses:
    """How far the packages of each cluster have come, as their states and branches tell."""

    def __init__(
        self, surveyed: Mapping[str, Surveyed | None], answers: Answers, last_mile: LastMile, first_seen: SeenSince
    ) -> None:
        # a cluster that could not be read is there, with nothing known of it
        self._surveyed = surveyed
        self._first_seen = first_seen
        self._answers = answers
        self._last_mile = last_mile
        self._current: dict[tuple[str, str], bool] = {}
        self.is_unsure = False
        self.failures: list[InternalFailure] = []

    def rollouts(self, now: int) -> Rollouts:
        """Return the gates as they are `now`, in seconds since 1970."""
        gates = {
            name: self._left_open(name, gate(rule, self._last_mile.clusters, partial(self._of, name), now))
            for name, rule in self._last_mile.rollouts.items()
        }
        return Rollouts(gates, self.is_unsure)

    def _left_open(self, rule: RuleId, found: Gate) -> Gate:
        """Return the gate with the clusters open that today's text has come to, unless an earlier wave went back.

        Otherwise an unrelated change on a cluster of an earlier wave, such as a new version or a new package, would
        close a wave that is open, and take today's text off its drafts.
        """
        return replace(found, open=found.open | {one for one in found.undecided if self._has_arrived(rule, one)})

    def _has_arrived(self, rule: RuleId, cluster: str) -> bool:
        surveyed = self._surveyed.get(cluster)
        if surveyed is None:
            return False
        winners, _ = chosen(surveyed.claims, surveyed.ground.state)
        answers = {self._arrived(rule, variant, surveyed) for variant in winners.values()}
        return True in answers and False not in answers

    def _arrived(self, rule: RuleId, variant: Variant, surveyed: Surveyed) -> bool | None:
        """Return whether a package was last made with today's text; None if it was made without the rule, or never."""
        record = _record(variant, surveyed)
        answer = record.trace.get(question(ROLLOUT, str(rule), variant.cluster)) if record else None
        return None if answer is None else answer == self._last_mile.rollouts[rule].digest

    def _of(self, rule: RuleId, cluster: str) -> Iterator[Progress]:
        if cluster not in self._surveyed:
            return
        surveyed = self._surveyed[cluster]
        if surveyed is None:
            yield Unknown()
            return
        try:
            with boundary(f"the rollout {rule} on cluster {cluster}"):
                yield from tuple(self._of_known(rule, surveyed))
        except ScopeFailedError as error:
            self.failures.append(error.failure)
            yield Unknown()

    def _of_known(self, rule: RuleId, surveyed: Surveyed) -> Iterator[Progress]:
        winners, _ = chosen(surveyed.claims, surveyed.ground.state)
        for variant in winners.values():
            told = self._progress(rule, variant, surveyed)
            self.is_unsure |= isinstance(told, Unknown)
            if told:
                yield told
        yield from map(Unknown, _in_doubt(rule, surveyed, winners))

    def _progress(self, rule: RuleId, variant: Variant, surveyed: Surveyed) -> Progress | None:
        package, record = variant.place.package, _record(variant, surveyed)
        today = self._last_mile.rollouts[rule]
        ours = record.ours if record else None
        is_published = ours is not None and surveyed.ground.look(package).published is not None
        if record and ours and is_published and ours.rules.get(rule) == today.text:
            # a draft of a newer version, made for another reason, does not take the text back
            return Published(package, self._since(record, surveyed, package, ours.rendered))
        if record is None or not self._is_current(variant, surveyed):
            return Unknown(package)
        has_retreated = any(one.offer.rules.get(rule) == today.text for one in record.revisions)
        answer = record.trace.get(question(ROLLOUT, str(rule), variant.cluster))
        if answer is None:
            return Behind(package, has_retreated) if rule in record.rules else None
        if answer != today.digest:
            # nobody asks before the wave of this cluster is open: it is rendered with today's text by this very pass
            return Unknown(package)
        if record.outcome.get("kind") == "blocked" or not _is_published(record, surveyed.ground.look(package)):
            return Behind(package, has_retreated)
        return Published(package, self._since(record, surveyed, package, record.wanted))

    def _since(self, record: PackageRecord, surveyed: Surveyed, package: str, tree: TreeId | None) -> int:
        """Return when what is published was; what was there before us has been there for ever.

        A commit of ours has the date of its content, and may become what is published much later: then it counts since
        when it was seen there.
        """
        brought = [one.commit for one in record.revisions if one.offer.rendered == tree]
        if not brought:
            return 0
        objects, name = surveyed.ground.objects, surveyed.destination.name
        dated = objects.seconds(brought[-1])
        if not objects.is_ours(brought[-1]):
            return dated
        return max(dated, self._first_seen.get(name, {}).get(package, 0))

    def _is_current(self, variant: Variant, surveyed: Surveyed) -> bool:
        """Return whether the package was made from what it is made of today, as far as that has arrived."""
        place = (variant.cluster, variant.place.package)
        if place not in self._current:
            asked = ask(variant, surveyed.claims, surveyed.ground)
            self._current[place] = is_current(asked, self._answers, surveyed.shop.sources)
        return self._current[place]


def with_rollouts(last_mile: LastMile, rollouts: Rollouts) -> LastMile:
    """Return the last mile with the waves closed that are."""
    everywhere = frozenset(last_mile.clusters)
    return replace(last_mile, closed={name: everywhere - one.open for name, one in rollouts.gates.items()})


def _record(variant: Variant, surveyed: Surveyed) -> PackageRecord | None:
    """Return what is remembered of a package, if it is this variant's."""
    record = surveyed.ground.state.packages.get(variant.place.package)
    return record if record and record.owner.key == variant.owner.key else None


def _in_doubt(rule: RuleId, surveyed: Surveyed, winners: Collection[str]) -> Iterator[str]:
    """Yield the packages with the policy of a rule that somebody may want, though what cannot be worked out now."""
    claims = surveyed.claims
    for package, record in surveyed.ground.state.packages.items():
        # what was found again by its status file may have any policy
        has_policy = str(rule.policy) in record.policies or record.wanted is None
        is_kept = claims.wants(package) or claims.keeps(record.owner) or bool(claims.look_alike(record.owner))
        if record.owned and package not in winners and has_policy and (is_kept or not claims.complete):
            yield package


def _is_published(record: PackageRecord, seen: Seen) -> bool:
    """Return whether the cluster branch has what was wanted last, people's later edits aside."""
    return record.wanted is not None and record.wanted in (seen.published, record.ours and record.ours.rendered)
