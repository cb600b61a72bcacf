"""Progress of the rollouts of override rules.

A rollout applies a changed rule to one group of clusters (a wave) after another. Its progress is computed from the
published packages of the clusters in each wave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from reconciler.catalog.files import TreeId
from reconciler.catalog.trace import DependencyReader, format_dependency
from reconciler.controllers.override_policies.rollout import (
    ProgressPending,
    ProgressPublished,
    ProgressUnknown,
    RolloutGate,
    RolloutProgress,
    RuleId,
    evaluate_gate,
)
from reconciler.controllers.results import Variant
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.planning.decide.package_decision import is_render_current
from reconciler.planning.decide.target_inputs import (
    PreparedTarget,
    build_decision_input,
    resolve_claims,
)
from reconciler.planning.model.cluster_overrides import ROLLOUT_DEPENDENCY, ClusterOverrides
from reconciler.planning.model.state import ObservedPackage, PackageRecord

# Maps a cluster and a package to the time at which the current version of the package was first published. Times are in
# seconds since 1970.
PublishedSince = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class RolloutGates:
    """The progress of each override rule with a rollout: the clusters whose wave is open.

    Attributes:
        is_uncertain: Whether the progress of at least one package is unknown. In this case, the next pass can have a
            different result with the same inputs.
    """

    gates: Mapping[RuleId, RolloutGate] = field(default_factory=dict)
    is_uncertain: bool = False

    @property
    def next_due_seconds(self) -> int | None:
        """The next time, in seconds since 1970, at which a wave opens. None if no wave opens by time alone."""
        openings = (gate.next_opening_seconds for gate in self.gates.values())
        return min((seconds for seconds in openings if seconds is not None), default=None)


class RolloutTracker:
    """Computes the progress of rollouts from the states and branches of all clusters."""

    def __init__(
        self,
        targets: Mapping[str, PreparedTarget | None],
        reader: DependencyReader,
        overrides: ClusterOverrides,
        first_seen: PublishedSince,
    ) -> None:
        # Maps each cluster to its target. The value is None if the target could not be read.
        self._targets = targets
        self._first_seen = first_seen
        self._reader = reader
        self._overrides = overrides
        self._current: dict[tuple[str, str], bool] = {}
        self.is_uncertain = False
        self.failures: list[InternalFailure] = []

    def evaluate_gates(self, now: int) -> RolloutGates:
        """Return the rollout gates at the time `now`, in seconds since 1970."""
        gates = {
            name: self._keep_open(
                name, evaluate_gate(rule, self._overrides.clusters, partial(self._iterate_cluster_progress, name), now)
            )
            for name, rule in self._overrides.rollouts.items()
        }
        return RolloutGates(gates, self.is_uncertain)

    def _keep_open(self, rule: RuleId, gate: RolloutGate) -> RolloutGate:
        """Keep a wave open on clusters that already use the current version of the rule.

        Otherwise, an unrelated change of a package on a cluster of an earlier wave would close the wave, and its drafts
        would return to the previous version of the rule. The wave is not kept open if an earlier wave was reverted.
        """
        return replace(
            gate,
            open_clusters=gate.open_clusters
            | {cluster for cluster in gate.undecided_clusters if self._uses_current_text(rule, cluster)},
        )

    def _uses_current_text(self, rule: RuleId, cluster: str) -> bool:
        target = self._targets.get(cluster)
        if target is None:
            return False
        winners, _ = resolve_claims(target.claims, target.snapshot.state)
        results = {self._was_rendered_with_current_text(rule, variant, target) for variant in winners.values()}
        return True in results and False not in results

    def _was_rendered_with_current_text(self, rule: RuleId, variant: Variant, target: PreparedTarget) -> bool | None:
        """Return whether the last render used the current version of the rule.

        Return None if no render used the rule.
        """
        record = _find_record(variant, target)
        dependency = format_dependency(ROLLOUT_DEPENDENCY, str(rule), variant.cluster)
        fingerprint = record.trace.get(dependency) if record else None
        return None if fingerprint is None else fingerprint == self._overrides.rollouts[rule].digest

    def _iterate_cluster_progress(self, rule: RuleId, cluster: str) -> Iterator[RolloutProgress]:
        if cluster not in self._targets:
            return
        target = self._targets[cluster]
        if target is None:
            yield ProgressUnknown()
            return
        try:
            with isolation_boundary(f'the rollout {rule} on cluster "{cluster}"'):
                yield from tuple(self._iterate_target_progress(rule, target))
        except ScopeFailedError as error:
            self.failures.append(error.failure)
            yield ProgressUnknown()

    def _iterate_target_progress(self, rule: RuleId, target: PreparedTarget) -> Iterator[RolloutProgress]:
        winners, _ = resolve_claims(target.claims, target.snapshot.state)
        for variant in winners.values():
            progress = self._determine_package_progress(rule, variant, target)
            self.is_uncertain |= isinstance(progress, ProgressUnknown)
            if progress:
                yield progress
        yield from map(ProgressUnknown, _find_uncertain_packages(rule, target, winners))

    def _determine_package_progress(
        self, rule: RuleId, variant: Variant, target: PreparedTarget
    ) -> RolloutProgress | None:
        package, record = variant.target.package, _find_record(variant, target)
        current = self._overrides.rollouts[rule]
        published = record.published_version if record else None
        is_published = published is not None and target.snapshot.observe_package(package).published is not None
        if record and published and is_published and published.rules.get(rule) == current.text:
            # Ignore an open draft, because the published package already contains the current version of the rule.
            return ProgressPublished(
                package, self._get_publication_seconds(record, target, package, published.rendered)
            )
        if record is None or not self._is_render_current(variant, target):
            return ProgressUnknown(package)
        has_retreated = any(revision.version.rules.get(rule) == current.text for revision in record.revisions)
        fingerprint = record.trace.get(format_dependency(ROLLOUT_DEPENDENCY, str(rule), variant.cluster))
        if fingerprint is None:
            return ProgressPending(package, has_retreated) if rule in record.rule_texts else None
        if fingerprint != current.digest:
            # The last render used a different version of the rule, and this pass has not rendered the package yet.
            # Therefore, the progress is unknown.
            return ProgressUnknown(package)
        if record.outcome.get("kind") == "blocked" or not _is_published(
            record, target.snapshot.observe_package(package)
        ):
            return ProgressPending(package, has_retreated)
        return ProgressPublished(package, self._get_publication_seconds(record, target, package, record.desired_tree))

    def _get_publication_seconds(
        self, record: PackageRecord, target: PreparedTarget, package: str, tree: TreeId | None
    ) -> int:
        """Return the time since which a tree is published. Return 0 if no recorded revision has this tree.

        The date of a reconciler commit can be much earlier than its publication. Therefore, the result is never before
        the time when the reconciler first found the tree on the target branch.
        """
        commits = [revision.commit for revision in record.revisions if revision.version.rendered == tree]
        if not commits:
            return 0
        objects, name = target.snapshot.objects, target.target.name
        seconds = objects.read_commit_seconds(commits[-1])
        if not objects.is_reconciler_commit(commits[-1]):
            return seconds
        return max(seconds, self._first_seen.get(name, {}).get(package, 0))

    def _is_render_current(self, variant: Variant, target: PreparedTarget) -> bool:
        key = (variant.cluster, variant.target.package)
        if key not in self._current:
            inputs = build_decision_input(variant, target.claims, target.snapshot)
            self._current[key] = is_render_current(inputs, self._reader, target.context.contents)
        return self._current[key]


def apply_rollout_gates(overrides: ClusterOverrides, rollouts: RolloutGates) -> ClusterOverrides:
    """Return the overrides with new `closed_clusters`: for each rule, the clusters that are in no open wave."""
    all_clusters = frozenset(overrides.clusters)
    return replace(
        overrides, closed_clusters={name: all_clusters - gate.open_clusters for name, gate in rollouts.gates.items()}
    )


def _find_record(variant: Variant, target: PreparedTarget) -> PackageRecord | None:
    record = target.snapshot.state.packages.get(variant.target.package)
    return record if record and record.owner.key == variant.owner.key else None


def _find_uncertain_packages(rule: RuleId, target: PreparedTarget, winners: Collection[str]) -> Iterator[str]:
    """Yield each package that uses the policy of a rule, if it is unknown whether the package is still requested."""
    for package, record in target.snapshot.state.packages.items():
        # Include each package without a recorded render, because its policies are unknown.
        has_policy = rule.policy.reference in record.policy_usage or record.desired_tree is None
        if (
            record.is_owned
            and package not in winners
            and has_policy
            and target.claims.may_be_requested(package, record)
        ):
            yield package


def _is_published(record: PackageRecord, observed: ObservedPackage) -> bool:
    """Return whether the desired tree was published. Later local changes are ignored."""
    return record.desired_tree is not None and record.desired_tree in (
        observed.published,
        record.published_version and record.published_version.rendered,
    )
