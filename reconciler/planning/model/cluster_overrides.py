"""Override policies of a package's cluster.

This module applies the policies to a package, and records the policies and clusters that the package depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from reconciler.api.kubeadmiral import KUBEADMIRAL_API_VERSION
from reconciler.catalog.files import FileTree
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.catalog.trace import ABSENT_FINGERPRINT, CatalogView
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.effective_rules import digest_policy_for_cluster, find_retained_text
from reconciler.controllers.override_policies.model import OverrideRule
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage, PackageOverrider
from reconciler.controllers.override_policies.read_policies import OverridePolicies, build_override_policy_key
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.controllers.override_policies.rollout import RuleId, find_rollouts, parse_rule_id
from reconciler.krm.findings import Finding, SourceLocation, select_errors, upgrade_to_error
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace

OVERRIDDEN = "Overridden"
CLOSED_FINGERPRINT = "closed"
# Types of dependencies. The trace of a render contains its dependencies. The key of a dependency starts with its type.
CLUSTER_DEPENDENCY, POLICY_DEPENDENCY, SELECTORS_DEPENDENCY, ROLLOUT_DEPENDENCY = (
    "cluster",
    "policy",
    "selectors",
    "rollout",
)


@dataclass(frozen=True)
class PreviousOverrides:
    """Override policies of the last render of a package.

    Attributes:
        rule_texts: The content of the override rules that were applied, by rule.
        is_known: False if the recorded state is missing, so that the applied rules are unknown.
    """

    policies: tuple[ObjectKey, ...] = ()
    rule_texts: Mapping[RuleId, str] = field(default_factory=dict)
    is_known: bool = True


@dataclass(frozen=True)
class ClusterOverrides:
    """Clusters and override policies of one config commit, and the settings for override policies.

    Attributes:
        closed_clusters: For each rule with a rollout, the clusters that must not receive the current version of the
            rule yet.
        strict_codes: Finding codes whose warnings are treated as errors.
    """

    policies: OverridePolicies = field(default_factory=OverridePolicies)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    options: OverrideOptions = field(default_factory=OverrideOptions)
    closed_clusters: Mapping[RuleId, frozenset[str]] = field(default_factory=dict)
    strict_codes: frozenset[str] = frozenset()

    @cached_property
    def rollouts(self) -> Mapping[RuleId, OverrideRule]:
        """The override rules that are rolled out in waves."""
        return find_rollouts(self.policies)

    @cached_property
    def _overrider(self) -> PackageOverrider:
        return PackageOverrider(self.policies, self.options)

    def build_dependency_functions(self) -> Mapping[str, Callable[[Sequence[str]], str]]:
        """Return the functions that compute fingerprints. The keys are dependency types, e.g. "policy"."""
        return {
            CLUSTER_DEPENDENCY: self._fingerprint_cluster,
            POLICY_DEPENDENCY: self._fingerprint_policy,
            SELECTORS_DEPENDENCY: self._fingerprint_selectors,
            ROLLOUT_DEPENDENCY: self._fingerprint_rollout,
        }

    def override(
        self, files: FileTree, cluster: str, view: CatalogView, previous: PreviousOverrides
    ) -> OverriddenPackage:
        """Apply the override policies of a cluster to a package, and record the dependencies in `view`.

        If the rollout of a rule has not reached the cluster, the previous version of the rule is applied. The package
        is blocked in two cases: the previous version of a rule is unknown, or a policy of the last render is missing
        and may be in a config file that cannot be read.
        """
        if kinds := self._overrider.find_kinds(files):
            view.record(SELECTORS_DEPENDENCY, ",".join(kinds))
        closed = [rule for rule, clusters in self.closed_clusters.items() if cluster in clusters]
        texts = {
            rule: find_retained_text(self.policies.valid[rule.policy], rule, previous.rule_texts) for rule in closed
        }
        result = self._overrider.override(files, self._find_cluster(cluster), texts, previous.policies)
        self._record_dependencies(result, cluster, view)
        result = self._apply_strict_codes(result, files)
        return result if previous.is_known else _block_unknown_texts(result, files, closed, cluster)

    def _apply_strict_codes(self, result: OverriddenPackage, files: FileTree) -> OverriddenPackage:
        if all(finding.code not in self.strict_codes for finding in result.findings):
            # Return the same Python object and no copy, because the packages of many clusters share it.
            return result
        findings = tuple(
            upgrade_to_error(finding) if finding.code in self.strict_codes else finding for finding in result.findings
        )
        return replace(result, findings=findings, files=files if select_errors(findings) else result.files)

    def _find_cluster(self, cluster: str) -> Cluster:
        return self.clusters.get(cluster, Cluster(cluster))

    def _record_dependencies(self, result: OverriddenPackage, cluster: str, view: CatalogView) -> None:
        for key in result.candidate_policies:
            name = (key.kind, key.namespace or DEFAULT_NAMESPACE, key.name)
            view.record(POLICY_DEPENDENCY, KUBEADMIRAL_API_VERSION, *name, cluster)
            if key in self.policies.valid:
                view.files[name] = self.policies.valid[key].file
        if result.candidate_policies and any(key not in self.policies.valid for key in result.candidate_policies):
            # Call `is_complete` to record the completeness of the config as a dependency. The reason is that a missing
            # policy counts as deleted only if the config is complete.
            view.is_complete()
        if result.candidate_policies:
            view.record(CLUSTER_DEPENDENCY, cluster)
        for rule in self.rollouts.keys() & result.rule_texts.keys():
            view.record(ROLLOUT_DEPENDENCY, str(rule), cluster)

    def _fingerprint_cluster(self, arguments: Sequence[str]) -> str:
        cluster = self.clusters.get(arguments[0]) if len(arguments) == 1 else None
        return compute_digest(dict(cluster.labels)) if cluster else ABSENT_FINGERPRINT

    def _fingerprint_policy(self, arguments: Sequence[str]) -> str:
        match arguments:
            case [str(), str(kind), str(namespace), str(name), str(cluster)]:
                return (
                    digest_policy_for_cluster(
                        self.policies, build_override_policy_key(kind, namespace, name), self._find_cluster(cluster)
                    )
                    or ABSENT_FINGERPRINT
                )
        return ""

    def _fingerprint_selectors(self, arguments: Sequence[str]) -> str:
        return (
            self.policies.digest_selectors(arguments[0].split(",")) or ABSENT_FINGERPRINT if len(arguments) == 1 else ""
        )

    def _fingerprint_rollout(self, arguments: Sequence[str]) -> str:
        if len(arguments) != 2:
            return ""
        rule, cluster = parse_rule_id(arguments[0]), arguments[1]
        if rule is None or rule not in self.rollouts:
            return ABSENT_FINGERPRINT
        return CLOSED_FINGERPRINT if cluster in self.closed_clusters.get(rule, ()) else self.rollouts[rule].digest


def _block_unknown_texts(
    result: OverriddenPackage, files: FileTree, closed: Iterable[RuleId], cluster: str
) -> OverriddenPackage:
    """Block the package if a rule in `closed` applies to it.

    `closed` contains the rules whose current version must not be applied yet. The published package may contain an
    unknown previous version of such a rule.
    """
    findings = tuple(_create_unknown_text_finding(rule, cluster) for rule in closed if rule in result.rule_texts)
    return replace(result, files=files, findings=(*result.findings, *findings)) if findings else result


def _create_unknown_text_finding(rule: RuleId, cluster: str) -> Finding:
    message = (
        f'the package is not changed on cluster "{cluster}", because the rollout of the rule {rule} has not reached'
        " this cluster yet, and the recorded state with the earlier version of the rule is missing. Next step: wait for"
        " the rollout, or delete the field `rollout` of the rule"
    )
    return PolicyCodes.RULE_TEXT_UNKNOWN.finding(message, SourceLocation())


def build_overridden_condition(result: OverriddenPackage) -> tuple[Condition, ...]:
    """Return a condition that lists the override policies that changed the package.

    Return () if no policy changed it.
    """
    policies = dict.fromkeys(step.source_name for resource in result.resources for step in resource.steps)
    if not policies:
        return ()
    message = f"resources were changed by these override policies: {', '.join(sorted(policies))}"
    return (Condition(OVERRIDDEN, "True", result.condition_reason, message),)
