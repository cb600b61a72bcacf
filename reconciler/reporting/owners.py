"""Owners: what the status branch says of each object that wants packages, makes them, or receives them (porch 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.digest import canonical_json
from reconciler.krm.findings import errors
from reconciler.krm.identity import ObjectKey
from reconciler.planning.decide import VALID
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.configs import ConfigMemory, Configs
from reconciler.reporting.destination_statuses import (
    DestinationMemory,
    DestinationStatuses,
    ObjectStatus,
    configured,
    downstream_targets,
    owner_status,
)
from reconciler.reporting.policies import policy_statuses
from reconciler.reporting.presets import is_preset, room_statuses
from reconciler.rules.remembered import Unmoved
from reconciler.rules.variant import ConfigStatus
from reconciler.rules.variants.status import variants_ready


class OwnerMemory:
    """What was told of owners in the last pass: of what is the very same, the same status is told, as the same object.

    A pass with an empty one comes to the same.
    """

    def __init__(self) -> None:
        self.configs = ConfigMemory()
        self.destinations = DestinationMemory()
        self.united: Unmoved[ObjectStatus] = Unmoved()
        self.configured: Unmoved[ObjectStatus] = Unmoved()
        self.makers: Unmoved[ObjectStatus] = Unmoved()
        self.children: Unmoved[frozenset[ObjectKey]] = Unmoved()

    def turn(self) -> None:
        """End a pass: what it did not ask for is forgotten."""
        for one in (self.destinations, self.united, self.configured, self.makers, self.children):
            one.turn()


@dataclass(frozen=True, eq=False)
class FleetStatuses:
    """The status of every object, by who tells it: each destination, and `others`, which no one of them tells alone.

    Who stands in several places is told of by the last: destinations of themselves, others, destinations of owners.
    """

    configs: Configs
    destinations: tuple[DestinationStatuses, ...]
    others: tuple[ObjectStatus, ...]


def owner_statuses(plan: FleetPlan, memory: OwnerMemory | None = None) -> FleetStatuses:
    """Return the status of every object that wants a package, of those that made them, and of destinations."""
    memory = memory or OwnerMemory()
    configs = memory.configs.configs((*room_statuses(plan), *policy_statuses(plan)))
    spreading = memory.configs.spreading(plan.room.variants)
    destinations = tuple(memory.destinations.of(one, configs, spreading) for one in plan.destinations)
    owners: dict[ObjectKey, ObjectStatus] = {}
    for one in destinations:
        owners.update(one.owners)
    elsewhere = _owners_elsewhere(plan, destinations, owners, spreading, memory)
    united_owners = {key: _configured(one, configs, memory) for key, one in elsewhere.items()}
    owners.update(united_owners)
    unready = {key for one in destinations for key in one.unready if not owners[key].is_ready}
    unready |= {key for key, one in united_owners.items() if not one.is_ready}
    makers = [_remembered_maker(one, owners, unready, memory) for one in configs.statuses if one.key not in owners]
    memory.turn()
    return FleetStatuses(configs, destinations, (*makers, *united_owners.values()))


def _owners_elsewhere(
    plan: FleetPlan,
    destinations: Iterable[DestinationStatuses],
    told: Mapping[ObjectKey, ObjectStatus],
    spreading: Set[ObjectKey],
    memory: OwnerMemory,
) -> dict[ObjectKey, ObjectStatus]:
    """Return what is told of owners that no single destination tells of: why there is none, and those that spread."""
    found = [*_stalled(plan), *_unread(plan), *chain.from_iterable(one.spreading for one in destinations)]
    several: dict[ObjectKey, list[ObjectStatus]] = {}
    for one in found:
        if one.key in spreading:
            several.setdefault(one.key, []).append(one)
    alone = {one.key: one for one in found if one.key not in told and one.key not in spreading}
    return alone | {key: memory.united.of(tuple(all_of), partial(united, all_of)) for key, all_of in several.items()}


def _configured(status: ObjectStatus, configs: Configs, memory: OwnerMemory) -> ObjectStatus:
    config = configs.by_key.get(status.key)
    return memory.configured.of((status, config), partial(configured, status, config)) if config else status


def _remembered_maker(
    config: ConfigStatus, owners: Mapping[ObjectKey, ObjectStatus], unready: Set[ObjectKey], memory: OwnerMemory
) -> ObjectStatus:
    """Return what is told of a maker: the same as before while all of its children are ready."""
    children = memory.children.of((config,), lambda: frozenset(config.children))
    all_ready = unready.isdisjoint(children) and children <= owners.keys()
    return memory.makers.of((config,), lambda: _maker(config, owners)) if all_ready else _maker(config, owners)


def united(statuses: Sequence[ObjectStatus]) -> ObjectStatus:
    """Return the status of an owner that has a package on each of several clusters, from those of each."""
    types = dict.fromkeys(one.type for status in statuses for one in status.conditions)
    conditions = tuple(_worst(kind, statuses) for kind in types)
    names = dict.fromkeys(name for status in statuses for name in status.fields)
    fields = {name: _joined(status.fields.get(name) for status in statuses) for name in names}
    return replace(statuses[0], conditions=conditions, fields=fields)


def _worst(kind: str, statuses: Sequence[ObjectStatus]) -> Condition:
    """Return what is told of a condition: that of the first cluster where all is not well, and of how many it is so."""
    found = [one for status in statuses for one in status.conditions if one.type == kind]
    well = "False" if kind == "Stalled" else "True"
    bad = [one for one in found if one.status != well]
    if not bad:
        return found[0]
    return replace(bad[0], message=f"{len(bad)} of {len(statuses)} clusters: {bad[0].message}")


def _joined(values: Iterable[Any]) -> Any:
    """Return lists as one, each entry once; of anything else the first."""
    known = [value for value in values if value is not None]
    if not all(isinstance(value, list) for value in known):
        return known[0]
    return [*{canonical_json(entry): entry for entry in chain.from_iterable(known)}.values()]


def _stalled(plan: FleetPlan) -> Iterator[ObjectStatus]:
    """Yield the status of stalled owners; what they have published, or on a draft, stays their target."""
    targets = _recorded_targets(plan, {one.owner.key for one in plan.room.stalled})
    for one in plan.room.stalled:
        fields = {"downstreamTargets": targets[one.owner.key]} if one.owner.key in targets else {}
        yield ObjectStatus(one.owner.key, one.owner.api_version, one.conditions, fields)


def _recorded_targets(plan: FleetPlan, owners: Set[ObjectKey]) -> Mapping[ObjectKey, list[dict[str, Any]]]:
    """Return the targets of these owners by what the states of all destinations contain."""
    found: dict[ObjectKey, list[dict[str, Any]]] = {}
    kinds = {(key.group, key.kind) for key in owners}
    for one in plan.destinations if owners else ():
        for package, record in chain.from_iterable(one.after.owned_kinds.get(kind, ()) for kind in kinds):
            if record.owner.key in owners and (targets := downstream_targets(one.destination.name, package, record)):
                found.setdefault(record.owner.key, []).extend(targets)
    return found


def _unread(plan: FleetPlan) -> Iterator[ObjectStatus]:
    """Yield variants whose destination cannot be read or written: an error after validation."""
    faults = {one.destination.key: errors(one.findings) for one in plan.destinations if one.findings}
    places = {(key.namespace, key.name): findings for key, findings in faults.items() if findings}
    unread = [one for one in plan.room.variants if (one.place.namespace, one.place.repository) in places]
    targets = _recorded_targets(plan, {one.owner.key for one in unread})
    for variant in unread:
        if findings := places.get((variant.place.namespace, variant.place.repository)):
            message = "; ".join(finding.message for finding in findings)
            fields = {"downstreamTargets": targets[variant.owner.key]} if variant.owner.key in targets else {}
            yield owner_status(variant, (VALID, Condition("Ready", "False", "Error", message)), fields)


def _maker(config: ConfigStatus, owners: Mapping[ObjectKey, ObjectStatus]) -> ObjectStatus:
    """Return the status of an object that makes others (a set), or of one that no outcome tells of."""
    known = ObjectStatus(config.key, config.api_version, config.conditions, config.fields, config.spec, config.metadata)
    if not config.children or is_preset(config.key):
        return known
    ready = {child for child in config.children if child in owners and owners[child].is_ready}
    conditions = upsert(config.conditions, variants_ready(one.name for one in config.children if one not in ready))
    counts = {"desired": len(config.children), "ready": len(ready), "failed": len(config.children) - len(ready)}
    names = {child.name for child in ready}
    fields = {**config.fields, **counts, **_targets_ready(config.fields.get("targets"), names)}
    return replace(known, conditions=conditions, fields=fields)


def _targets_ready(targets: object, ready: Collection[str]) -> dict[str, Any]:
    """Return a set's `targets` with `ready` in each (porch 11.7); nothing when the set lists none."""
    if not isinstance(targets, list):
        return {}
    return {"targets": [{**target, "ready": target.get("packageVariant") in ready} for target in targets]}
