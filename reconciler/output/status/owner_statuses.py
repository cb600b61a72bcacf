"""The statuses of the owners of packages, and of the parents of these owners, across all targets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from typing import Any

from reconciler.controllers.keyed_cache import IdentityCache
from reconciler.controllers.package_variants.status import build_variants_ready_condition
from reconciler.controllers.results import ConfigStatus
from reconciler.krm.findings import select_errors
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.objects import Condition, ObjectKey, upsert_conditions
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.status.config_statuses import (
    ConfigStatusCache,
    ConfigStatuses,
    build_controller_statuses,
    build_policy_statuses,
    is_preset,
)
from reconciler.output.status.target_statuses import (
    ObjectStatus,
    TargetStatusCache,
    TargetStatuses,
    build_downstream_targets,
    build_owner_status,
    merge_config_status,
)
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.decide.package_decision import VALID_CONDITION


class OwnerStatusCache:
    """Caches each status until one of its inputs is a different object. The cache does not change the results."""

    def __init__(self) -> None:
        self.configs = ConfigStatusCache()
        self.targets = TargetStatusCache()
        self.merged: IdentityCache[ObjectStatus] = IdentityCache()
        self.configured: IdentityCache[ObjectStatus] = IdentityCache()
        self.parents: IdentityCache[ObjectStatus] = IdentityCache()
        self.children: IdentityCache[frozenset[ObjectKey]] = IdentityCache()

    def end_pass(self) -> None:
        """End a pass, and remove the cached statuses that the pass did not use."""
        for cache in (self.targets, self.merged, self.configured, self.parents, self.children):
            cache.end_pass()


@dataclass(frozen=True, eq=False)
class FleetStatuses:
    """The statuses of all objects.

    If an object has several statuses, only one of them is used. The owners in `targets` have the highest precedence.
    `other_statuses` are next. The statuses of the targets themselves have the lowest precedence.

    Attributes:
        configs: The statuses that controllers and policies report.
        targets: The statuses of targets, each with the owners that have packages only on this target.
        other_statuses: The statuses of objects that do not belong to exactly one target.
    """

    configs: ConfigStatuses
    targets: tuple[TargetStatuses, ...]
    other_statuses: tuple[ObjectStatus, ...]


def build_owner_statuses(plan: FleetPlan, cache: OwnerStatusCache | None = None) -> FleetStatuses:
    """Return the statuses of all targets, of all owners of packages, and of the parents of these owners."""
    cache = cache or OwnerStatusCache()
    configs = cache.configs.get_config_statuses((*build_controller_statuses(plan), *build_policy_statuses(plan)))
    multi_target_owners = cache.configs.get_multi_target_owners(plan.controller_result.variants)
    targets = tuple(
        cache.targets.get_statuses(target_plan, configs, multi_target_owners) for target_plan in plan.targets
    )
    owners: dict[ObjectKey, ObjectStatus] = {}
    for target in targets:
        owners.update(target.owners)
    others = _build_other_owners(plan, targets, owners, multi_target_owners, cache)
    other_owners = {key: _add_config_status(status, configs, cache) for key, status in others.items()}
    owners.update(other_owners)
    not_ready = {key for target in targets for key in target.not_ready_owners if not owners[key].is_ready}
    not_ready |= {key for key, status in other_owners.items() if not status.is_ready}
    parents = [
        _build_cached_parent(config, _find_file(plan, config.key), owners, not_ready, cache)
        for config in configs.statuses
        if config.key not in owners
    ]
    cache.end_pass()
    return FleetStatuses(configs, targets, (*parents, *other_owners.values()))


def _build_other_owners(
    plan: FleetPlan,
    targets: Iterable[TargetStatuses],
    single_target_owners: Mapping[ObjectKey, ObjectStatus],
    multi_target_owners: Set[ObjectKey],
    cache: OwnerStatusCache,
) -> dict[ObjectKey, ObjectStatus]:
    """Return the statuses of owners that have no target, and of owners that have packages on several targets."""
    partial_statuses = chain.from_iterable(target.multi_target_owners for target in targets)
    statuses = [*_build_stalled(plan), *_build_unavailable(plan), *partial_statuses]
    multi_target: dict[ObjectKey, list[ObjectStatus]] = {}
    for status in statuses:
        if status.key in multi_target_owners:
            multi_target.setdefault(status.key, []).append(status)
    others = {
        status.key: status
        for status in statuses
        if status.key not in single_target_owners and status.key not in multi_target_owners
    }
    return others | {
        key: cache.merged.get_or_create(tuple(parts), partial(merge_statuses, parts))
        for key, parts in multi_target.items()
    }


def _add_config_status(status: ObjectStatus, configs: ConfigStatuses, cache: OwnerStatusCache) -> ObjectStatus:
    config = configs.by_key.get(status.key)
    if config is None:
        return status
    return cache.configured.get_or_create((status, config), partial(merge_config_status, status, config))


def _find_file(plan: FleetPlan, key: ObjectKey) -> str:
    """Return the config file that defines an object. Return "" for an object that another object generated.

    In a config without tenants, return "" too, because the file is recorded only to separate tenants.
    """
    definition = plan.objects.get(key) if plan.tenants else None
    return definition.file if definition else ""


def _build_cached_parent(
    config: ConfigStatus,
    file: str,
    owners: Mapping[ObjectKey, ObjectStatus],
    not_ready: Set[ObjectKey],
    cache: OwnerStatusCache,
) -> ObjectStatus:
    """Return the status of a parent. Use the cached status if all children are ready."""
    children = cache.children.get_or_create((config,), lambda: frozenset(config.children))
    if not_ready.isdisjoint(children) and children <= owners.keys():
        return cache.parents.get_or_create((config, file), lambda: _build_parent(config, file, owners))
    return _build_parent(config, file, owners)


def merge_statuses(statuses: Sequence[ObjectStatus]) -> ObjectStatus:
    """Merge the statuses that one owner has on several clusters into one status."""
    types = dict.fromkeys(condition.type for status in statuses for condition in status.conditions)
    conditions = tuple(_merge_conditions(condition_type, statuses) for condition_type in types)
    names = dict.fromkeys(name for status in statuses for name in status.fields)
    fields = {name: _merge_values(status.fields.get(name) for status in statuses) for name in names}
    return replace(statuses[0], conditions=conditions, fields=fields)


def _merge_conditions(condition_type: str, statuses: Sequence[ObjectStatus]) -> Condition:
    """Merge the conditions of one type.

    If some conditions report a problem, return the first of them with the number of affected clusters. If no condition
    reports a problem, return the first condition.
    """
    conditions = [
        condition for status in statuses for condition in status.conditions if condition.type == condition_type
    ]
    good = "False" if condition_type == "Stalled" else "True"
    bad = [condition for condition in conditions if condition.status != good]
    if not bad:
        return conditions[0]
    return replace(bad[0], message=f"{len(bad)} of {len(statuses)} clusters: {bad[0].message}")


def _merge_values(values: Iterable[Any]) -> Any:
    """Concatenate lists and remove duplicates. If the values are not lists, return the first value."""
    present = [value for value in values if value is not None]
    if not all(isinstance(value, list) for value in present):
        return present[0]
    return [*{encode_canonical_json(entry): entry for entry in chain.from_iterable(present)}.values()]


def _build_stalled(plan: FleetPlan) -> Iterator[ObjectStatus]:
    """Yield the statuses of stalled owners. The field `downstreamTargets` lists their published packages and drafts."""
    targets = _find_recorded_targets(plan, {stalled.owner.key for stalled in plan.controller_result.stalled})
    for stalled in plan.controller_result.stalled:
        key = stalled.owner.key
        tenant = {"tenant": stalled.tenant} if stalled.tenant else {}
        fields = {**({"downstreamTargets": targets[key]} if key in targets else {}), **tenant}
        yield ObjectStatus(key, stalled.owner.api_version, stalled.conditions, fields)


def _find_recorded_targets(plan: FleetPlan, owners: Set[ObjectKey]) -> Mapping[ObjectKey, list[dict[str, Any]]]:
    """Return the field `downstreamTargets` of each owner. The entries come from the recorded states of all targets."""
    targets: dict[ObjectKey, list[dict[str, Any]]] = {}
    kinds = {(key.group, key.kind) for key in owners}
    for target_plan in plan.targets if owners else ():
        packages = target_plan.next_state.active_packages_by_kind
        for package, record in chain.from_iterable(packages.get(kind, ()) for kind in kinds):
            if record.owner.key in owners:
                entries = build_downstream_targets(target_plan.target.name, package, record)
                if entries:
                    targets.setdefault(record.owner.key, []).extend(entries)
    return targets


def _build_unavailable(plan: FleetPlan) -> Iterator[ObjectStatus]:
    """Yield the statuses of valid variants whose target cannot be read or written."""
    errors_by_target = {
        target_plan.target.key: select_errors(target_plan.findings)
        for target_plan in plan.targets
        if target_plan.findings
    }
    unavailable = {(key.namespace, key.name): errors for key, errors in errors_by_target.items() if errors}
    variants = [
        variant
        for variant in plan.controller_result.variants
        if (variant.target.namespace, variant.target.repository) in unavailable
    ]
    targets = _find_recorded_targets(plan, {variant.owner.key for variant in variants})
    for variant in variants:
        errors = unavailable[variant.target.namespace, variant.target.repository]
        message = "; ".join(error.message for error in errors)
        fields = {"downstreamTargets": targets[variant.owner.key]} if variant.owner.key in targets else {}
        yield build_owner_status(variant, (VALID_CONDITION, Condition("Ready", "False", "Error", message)), fields)


def _build_parent(config: ConfigStatus, file: str, owners: Mapping[ObjectKey, ObjectStatus]) -> ObjectStatus:
    """Return the status of a parent. For an object without children, return the status that its controller reports.

    The status contains the config file of the parent (`file`), because no package records this file. If two files
    define the parent in a later pass, the recorded file shows which definition was first.
    """
    own_fields = {**config.fields, **({"source": {"file": file}} if file else {})}
    status = ObjectStatus(config.key, config.api_version, config.conditions, own_fields, config.spec, config.metadata)
    if not config.children or is_preset(config.key):
        return status
    ready = {child for child in config.children if child in owners and owners[child].is_ready}
    not_ready = (child.name for child in config.children if child not in ready)
    conditions = upsert_conditions(config.conditions, build_variants_ready_condition(not_ready))
    counts = {"desired": len(config.children), "ready": len(ready), "failed": len(config.children) - len(ready)}
    ready_names = {child.name for child in ready}
    fields = {**own_fields, **counts, **_add_target_readiness(config.fields.get("targets"), ready_names)}
    return replace(status, conditions=conditions, fields=fields)


def _add_target_readiness(targets: object, ready: Collection[str]) -> dict[str, Any]:
    """Return the status field `targets` of a set, and add the field `ready` to each target.

    Return {} if the set has no targets.

    Args:
        ready: The names of the PackageVariants that are ready.
    """
    if not isinstance(targets, list):
        return {}
    return {"targets": [{**target, "ready": target.get("packageVariant") in ready} for target in targets]}
