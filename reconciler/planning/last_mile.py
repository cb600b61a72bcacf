"""The last mile: what is particular to the cluster that a package goes to (design 4.6, 10.16, 10.23)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from reconciler.krm.conditions import Condition
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where, errors, hardened
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.overrides.apply import Options
from reconciler.rules.overrides.codes import RULE_TEXT_UNKNOWN
from reconciler.rules.overrides.in_force import kept_text
from reconciler.rules.overrides.model import API_VERSION, Rule
from reconciler.rules.overrides.package import OverriddenPackage, Overriding
from reconciler.rules.overrides.reach import reach
from reconciler.rules.overrides.read_policy import Policies, policy_key
from reconciler.rules.overrides.rollout import RuleId, rollouts_of, rule_id_of
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import ABSENT, View

OVERRIDDEN = "Overridden"
CLOSED = "closed"
# the first words of questions in a trace
CLUSTER, POLICY, SELECTORS, ROLLOUT = "cluster", "policy", "selectors", "rollout"


@dataclass(frozen=True)
class Had:
    """What a package was last made with: the policies of its resources, and the texts of their rules.

    `is_known`: False after a lost state, when nobody knows by which texts it was made.
    """

    policies: tuple[ObjectKey, ...] = ()
    rules: Mapping[RuleId, str] = field(default_factory=dict)
    is_known: bool = True


@dataclass(frozen=True)
class LastMile:
    """The clusters and override policies of one config commit, and what those who run the program decided of them.

    `closed` are the clusters, by rule with a rollout, that today's text of the rule has not reached. Warnings of the
    `strict` codes are errors.
    """

    policies: Policies = field(default_factory=Policies)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    closed: Mapping[RuleId, frozenset[str]] = field(default_factory=dict)
    strict: frozenset[str] = frozenset()

    @cached_property
    def rollouts(self) -> Mapping[RuleId, Rule]:
        """The rules that are rolled out in waves."""
        return rollouts_of(self.policies)

    @cached_property
    def _overriding(self) -> Overriding:
        return Overriding(self.policies, self.options)

    def answers(self) -> Mapping[str, Callable[[Sequence[str]], str]]:
        """Return who answers the questions that `override` asks, by their first words."""
        return {CLUSTER: self._cluster, POLICY: self._policy, SELECTORS: self._selectors, ROLLOUT: self._rollout}

    def override(self, files: FileTree, name: str, view: View, had: Had) -> OverriddenPackage:
        """Return a package as a cluster is to have it, after asking for all that this depends on.

        Where a rule has not arrived yet, the package goes by what it `had` of it; and a policy that it had is not taken
        for gone while files of the config cannot be read. It is withheld where nobody knows what it had.
        """
        if kinds := self._overriding.kinds(files):
            view.ask(SELECTORS, ",".join(kinds))
        closed = [rule for rule, clusters in self.closed.items() if name in clusters]
        texts = {rule: kept_text(self.policies.sound[rule.policy], rule, had.rules) for rule in closed}
        result = self._overriding.override(files, self._known(name), texts, had.policies)
        self._note(result, name, view)
        result = self._hardened(result, files)
        return result if had.is_known else _without_unknown(result, files, closed)

    def _hardened(self, result: OverriddenPackage, files: FileTree) -> OverriddenPackage:
        if all(one.code not in self.strict for one in result.findings):
            # one outcome that many clusters share
            return result
        findings = tuple(hardened(one) if one.code in self.strict else one for one in result.findings)
        return replace(result, findings=findings, files=files if errors(findings) else result.files)

    def _known(self, cluster: str) -> Cluster:
        return self.clusters.get(cluster, Cluster(cluster))

    def _note(self, result: OverriddenPackage, name: str, view: View) -> None:
        for key in result.asked:
            place = (key.kind, key.namespace or DEFAULT_NAMESPACE, key.name)
            view.ask(POLICY, API_VERSION, *place, name)
            if key in self.policies.sound:
                view.files[place] = self.policies.sound[key].file
        if result.asked and any(key not in self.policies.sound for key in result.asked):
            # whether one is gone, or only cannot be read, decides what becomes of the package
            view.is_whole()
        if result.asked:
            view.ask(CLUSTER, name)
        for rule in self.rollouts.keys() & result.rules.keys():
            view.ask(ROLLOUT, str(rule), name)

    def _cluster(self, words: Sequence[str]) -> str:
        found = self.clusters.get(words[0]) if len(words) == 1 else None
        return digest(dict(found.labels)) if found else ABSENT

    def _policy(self, words: Sequence[str]) -> str:
        match words:
            case [str(), str(kind), str(namespace), str(name), str(cluster)]:
                return reach(self.policies, policy_key(kind, namespace, name), self._known(cluster)) or ABSENT
        return ""

    def _selectors(self, words: Sequence[str]) -> str:
        return self.policies.choosing(words[0].split(",")) or ABSENT if len(words) == 1 else ""

    def _rollout(self, words: Sequence[str]) -> str:
        if len(words) != 2:
            return ""
        rule, cluster = rule_id_of(words[0]), words[1]
        if rule is None or rule not in self.rollouts:
            return ABSENT
        return CLOSED if cluster in self.closed.get(rule, ()) else self.rollouts[rule].digest


def _without_unknown(result: OverriddenPackage, files: FileTree, closed: Iterable[RuleId]) -> OverriddenPackage:
    """Return the package, withheld if rules that have not arrived are for it: it may have had earlier texts of them."""
    findings = tuple(_unknown(rule) for rule in closed if rule in result.rules)
    return replace(result, files=files, findings=(*result.findings, *findings)) if findings else result


def _unknown(rule: RuleId) -> Finding:
    message = (
        f"which text of the rule {rule} is in force here is not known any more, since state was lost; what stands there"
        " stays until the rollout has come to this cluster, or the rule has none"
    )
    return RULE_TEXT_UNKNOWN.finding(message, Where())


def overridden_condition(result: OverriddenPackage) -> tuple[Condition, ...]:
    """Return what reviewers are told of policies that changed something in a package; nothing where none did."""
    policies = dict.fromkeys(step.by for one in result.resources for step in one.steps)
    if not policies:
        return ()
    message = f"resources are as these policies have them here: {', '.join(sorted(policies))}"
    return (Condition(OVERRIDDEN, "True", result.reason, message),)
