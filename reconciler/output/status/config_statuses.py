"""Statuses of config objects that do not belong to a single target, such as sets, presets and policies.

The module also computes the paths of objects on the status branch. The statuses of packages are in
`target_statuses.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.api.base import omit_empty
from reconciler.api.greenhouse import GROUP, PLUGIN, PRESET
from reconciler.api.kubeadmiral import KUBEADMIRAL_API_VERSION
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.keyed_cache import are_identical
from reconciler.controllers.override_policies.model import OverridePolicy
from reconciler.controllers.override_policies.policy_usage import PolicyUsage
from reconciler.controllers.override_policies.rollout import list_rule_ids
from reconciler.controllers.plugin_presets.status import PluginState, complete_status
from reconciler.controllers.results import ConfigStatus, Variant
from reconciler.krm.numbers import format_count
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, Unchanged

_CLUSTER_SCOPED = "_cluster"
_UNSAFE_IN_SEGMENT = re.compile(r"[^A-Za-z0-9._-]|^\.")
_MAX_LISTED = 20
_IN_USE = Condition("Ready", "True", "InUse", "at least one rendered resource uses this policy")
_UNUSED = Condition("Ready", "True", "PolicyUnused", "no rendered resource uses this policy")
# Include only removals that wait for the decision of a person. The controller already reports the Plugins that the
# deletion policy `Retain` keeps.
_PENDING_REMOVALS = ("proposed", "declined")


def get_object_path(key: ObjectKey) -> str:
    """Return the path of an object on the status branch: `objects/<namespace>/<Kind>/<name>.yaml`.

    Each segment is percent-encoded, because a name in a config file can contain any character, such as "/" or "..".
    """
    return f"objects/{_join_segments(key.namespace or _CLUSTER_SCOPED, key.kind, key.name)}.yaml"


def get_files_folder(folder: str, key: ObjectKey) -> str:
    """Return the folder for additional files of an object on the status branch: `<folder>/<namespace>/<name>/`."""
    return f"{folder}/{_join_segments(key.namespace or _CLUSTER_SCOPED, key.name)}/"


def _join_segments(*segments: str) -> str:
    return "/".join(_UNSAFE_IN_SEGMENT.sub(encode_percent, segment) for segment in segments)


def encode_percent(match: re.Match[str]) -> str:
    """Return the matched text with each byte percent-encoded."""
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, eq=False)
class ConfigStatuses:
    """The statuses that controllers and policies report. If an object has two statuses, the last status is used."""

    statuses: Sequence[ConfigStatus]

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, ConfigStatus]:
        """The status of each object."""
        return {status.key: status for status in self.statuses}

    @cached_property
    def parents(self) -> Sequence[ConfigStatus]:
        """The statuses of objects that generate other objects."""
        return [status for status in self.statuses if status.children]

    def find_children_of_large_sets(self, max_children: int) -> frozenset[ObjectKey]:
        """Return the children of all objects that generate more than `max_children` children."""
        large = (parent.children for parent in self.parents if len(parent.children) > max_children)
        return frozenset(chain.from_iterable(large))

    def find_parents(self, keys: Set[ObjectKey]) -> list[ObjectKey]:
        """Return the objects that generate at least one object of `keys`."""
        return [parent.key for parent in self.parents if not keys.isdisjoint(parent.children)]

    @cached_property
    def own_files(self) -> Mapping[str, bytes]:
        """The additional files of config objects, such as flattened component types. Maps each path to the content.

        Status files are not included.
        """
        return {
            get_files_folder(status.folder, status.key) + name: content
            for status in self.statuses
            if status.files
            for name, content in status.files.items()
        }

    @cached_property
    def unchanged_folders(self) -> tuple[str, ...]:
        """The folders of objects whose additional files on the status branch stay unchanged in this pass."""
        return tuple(
            get_files_folder(status.folder, status.key)
            for status in self.statuses
            if status.folder and status.files is None
        )


class ConfigStatusCache:
    """Caches values that are computed from controller results, until these results change."""

    def __init__(self) -> None:
        self._configs = ConfigStatuses(())
        self._children_of_large_sets: tuple[ConfigStatuses, int, frozenset[ObjectKey]] = (self._configs, 0, frozenset())
        self._variants: Sequence[Variant] = ()
        self._multi_target_owners: frozenset[ObjectKey] = frozenset()

    def get_config_statuses(self, statuses: Sequence[ConfigStatus]) -> ConfigStatuses:
        """Return the statuses as `ConfigStatuses`. Return the cached object if the statuses did not change."""
        if not are_identical(self._configs.statuses, statuses):
            self._configs = ConfigStatuses(statuses)
        return self._configs

    def get_children_of_large_sets(self, configs: ConfigStatuses, max_children: int) -> frozenset[ObjectKey]:
        """Return the children of all objects that generate more than `max_children` children.

        If the arguments are the same as in the previous call, return the same object as that call.
        """
        if self._children_of_large_sets[:2] != (configs, max_children):
            children = configs.find_children_of_large_sets(max_children)
            self._children_of_large_sets = (configs, max_children, children)
        return self._children_of_large_sets[2]

    def get_multi_target_owners(self, variants: Sequence[Variant]) -> frozenset[ObjectKey]:
        """Return the owners that can have packages on several targets."""
        if not are_identical(self._variants, variants):
            self._variants = variants
            self._multi_target_owners = frozenset(variant.owner.key for variant in variants if variant.is_per_cluster)
        return self._multi_target_owners


def build_policy_statuses(plan: FleetPlan) -> Iterator[ConfigStatus]:
    """Yield the status of every override policy: the usage of valid policies, the errors of invalid policies."""
    for usage in plan.policy_usages:
        policy = plan.policies.valid[usage.policy]
        fields = omit_empty(_build_policy_fields(policy, usage, plan))
        yield ConfigStatus(usage.policy, KUBEADMIRAL_API_VERSION, (_build_policy_condition(usage),), fields)
    messages: dict[str, list[str]] = {}
    for finding in plan.policies.findings:
        messages.setdefault(finding.location.object, []).append(finding.message)
    for key in sorted(plan.policies.invalid):
        message = "; ".join(messages.get(key.reference, ()))
        yield ConfigStatus(key, KUBEADMIRAL_API_VERSION, (Condition("Ready", "False", "PolicyInvalid", message),))


def _build_policy_condition(usage: PolicyUsage) -> Condition:
    if usage.failed:
        message = f"the policy could not be applied to {format_count(len(usage.failed), 'resource')}"
        return Condition("Ready", "False", "ApplyOverridesFailed", message)
    return _IN_USE if usage.kinds else _UNUSED


def _build_policy_fields(policy: OverridePolicy, usage: PolicyUsage, plan: FleetPlan) -> dict[str, Any]:
    return {
        "refCount": sum(count for _, _, count in usage.kinds),
        "typedRefCount": [
            omit_empty({"group": group, "kind": kind, "count": count}) for group, kind, count in usage.kinds
        ],
        "rules": [dict(rule) for rule in _build_rules(policy, usage, plan)],
        **_build_limited_list("failed", usage.failed),
    }


def _build_rules(policy: OverridePolicy, usage: PolicyUsage, plan: FleetPlan) -> Iterator[Mapping[str, Any]]:
    for (rule_id, _), clusters in zip(list_rule_ids(policy), usage.clusters, strict=True):
        gate = plan.rollout_gates.get(rule_id)
        waits = [{"wave": wave, "why": reason} for wave, reason in gate.wait_reasons.items()] if gate else []
        yield {
            "rule": rule_id.rule,
            **_build_limited_list("clusters", clusters),
            **({"waits": waits} if waits else {}),
        }


def _build_limited_list(name: str, items: Sequence[str]) -> dict[str, Any]:
    """Return the first items as field `name`, and the number of all items as field `<name>Count`.

    The number is omitted if the list is complete. For the list of clusters, the number is always returned.
    """
    count = {f"{name}Count": len(items)} if len(items) > _MAX_LISTED or name == "clusters" else {}
    return {**({name: list(items[:_MAX_LISTED])} if items else {}), **count}


def build_controller_statuses(plan: FleetPlan) -> Iterator[ConfigStatus]:
    """Yield the statuses that controllers report. Add the states of Plugins to the status of their PluginPreset."""
    statuses = plan.controller_result.statuses
    if not any(is_preset(status.key) for status in statuses):
        yield from statuses
        return
    states = {outcome.variant.owner.key: _get_plugin_state(outcome) for _, outcome in plan.list_outcomes()}
    plugins = {key: state for key, state in states.items() if (key.group, key.kind) == (GROUP, PLUGIN)}
    removals = _find_pending_removals(plan)
    for status in statuses:
        yield complete_status(status, plugins, removals.get(status.key)) if is_preset(status.key) else status


def _find_pending_removals(plan: FleetPlan) -> dict[ObjectKey, dict[PackageLocation, PluginState]]:
    """Return the packages with a proposed or declined removal, grouped by the preset that generated them."""
    removals: dict[ObjectKey, dict[PackageLocation, PluginState]] = {}
    for target_plan in plan.targets:
        for removal in target_plan.removals:
            if removal.owner.parent and removal.kind in _PENDING_REMOVALS:
                location = target_plan.target.name, removal.package
                removals.setdefault(removal.owner.parent, {})[location] = "PendingDeletion"
    return removals


def is_preset(key: ObjectKey) -> bool:
    """Return whether an object is a PluginPreset."""
    return key.kind == PRESET and key.group == GROUP


def _get_plugin_state(outcome: PackageOutcome) -> PluginState:
    match outcome:
        case Blocked():
            return "Failed"
        case Draft() | Unchanged(reason="drafted" | "declined"):
            return "Draft"
        case Unchanged():
            return "UpToDate"
