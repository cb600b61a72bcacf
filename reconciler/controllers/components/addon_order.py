"""Execution order of addons. If constraints allow several orders, the order depends on addon name and instance id."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.model import AddonInstance
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class AddonOrderConstraints:
    """Names of the addons that one addon requires, runs after, or runs before.

    A name has no effect if no addon with this name is in use.
    """

    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class _Edge:
    """Names of two addons: `first` must run before `second`. `declared` is the constraint, e.g. `"b" requires "a"`."""

    first: str
    second: str
    declared: str


def order_instances(
    instances: Iterable[AddonInstance], constraints: Mapping[str, AddonOrderConstraints], path: DataPath
) -> tuple[AddonInstance, ...] | FieldFinding:
    """Return addon instances in execution order. Return a finding at `path` if the constraints contain a cycle."""
    all_instances = tuple(instances)
    queue = _InstanceQueue(all_instances, constraints)
    ordered = tuple(queue.iter_ready())
    return ordered if len(ordered) == len(all_instances) else _build_cycle_finding(queue.find_cycle(), path)


def is_order_declared(
    first: AddonInstance, second: AddonInstance, constraints: Mapping[str, AddonOrderConstraints]
) -> bool:
    """Return whether one of the two addons has a constraint that names the other addon."""
    pair = {first.addon, second.addon}
    return len(pair) == 2 and any(_list_edges(pair, constraints))


def find_unsatisfiable_order(
    platform: Iterable[str], developer: Iterable[str], constraints: Mapping[str, AddonOrderConstraints], path: DataPath
) -> tuple[FieldFinding, ...]:
    """Return an error for each constraint that requires a developer addon to run before a platform addon.

    Such a constraint cannot be met, because platform addons always run first.
    """
    platform_addons, developer_addons = frozenset(platform), frozenset(developer)
    declared = [
        *(
            f'uses the platform addon "{addon}", whose loadOrder.after contains the developer addon "{other}"'
            for addon in sorted(platform_addons)
            for other in _get_constraints(constraints, addon).after
            if other in developer_addons
        ),
        *(
            f'uses the developer addon "{addon}", whose loadOrder.before contains the platform addon "{other}"'
            for addon in sorted(developer_addons)
            for other in _get_constraints(constraints, addon).before
            if other in platform_addons
        ),
    ]
    rule = "but platform addons always run before developer addons"
    return tuple(
        build_field_finding(ComponentCodes.LOAD_ORDER_UNSATISFIABLE, path, f"{text}, {rule}")
        for text in dict.fromkeys(declared)
    )


class _InstanceQueue:
    """Topological sort of addon instances. Instances of addons in a cycle are not part of the result."""

    def __init__(self, instances: tuple[AddonInstance, ...], constraints: Mapping[str, AddonOrderConstraints]) -> None:
        self.instances: dict[str, list[AddonInstance]] = {}
        for instance in instances:
            self.instances.setdefault(instance.addon, []).append(instance)
        self.edges = sorted(_list_edges(self.instances, constraints))
        self.blocker_counts = dict.fromkeys(self.instances, 0)
        self._successors: dict[str, list[str]] = {}
        for first, second in dict.fromkeys((edge.first, edge.second) for edge in self.edges):
            self._successors.setdefault(first, []).append(second)
            self.blocker_counts[second] += len(self.instances[first])

    def iter_ready(self) -> Iterator[AddonInstance]:
        """Yield the instances in execution order. If several instances can run next, sort them by addon name and id."""
        ready = [
            instance
            for addon, instances in self.instances.items()
            if not self.blocker_counts[addon]
            for instance in instances
        ]
        heapq.heapify(ready)
        while ready:
            instance = heapq.heappop(ready)
            yield instance
            for addon in self._successors.get(instance.addon, ()):
                self.blocker_counts[addon] -= 1
                for successor in () if self.blocker_counts[addon] else self.instances[addon]:
                    heapq.heappush(ready, successor)

    def find_cycle(self) -> list[_Edge]:
        """Return the edges of one cycle. The first edge begins with the addon that is first in alphabetical order."""
        incoming = {edge.second: edge for edge in reversed(self.edges) if self.blocker_counts[edge.first]}
        # Follow the edges backwards. An addon that cannot run waits for another addon that cannot run. Therefore, the
        # search always ends in a cycle.
        addon, visited = min(name for name, count in self.blocker_counts.items() if count), dict[str, _Edge]()
        while addon not in visited:
            visited[addon] = incoming[addon]
            addon = incoming[addon].first
        names = list(visited)
        cycle = [visited[name] for name in reversed(names[names.index(addon) :])]
        start = min(range(len(cycle)), key=lambda number: cycle[number].first)
        return [*cycle[start:], *cycle[:start]]


def _build_cycle_finding(cycle: list[_Edge], path: DataPath) -> FieldFinding:
    names = " → ".join([*(edge.first for edge in cycle), cycle[0].first])
    declared = ", ".join(edge.declared for edge in cycle)
    message = f"must not contain a cycle in the order of addons: {names}; causes of the cycle: {declared}"
    return build_field_finding(ComponentCodes.ADDON_ORDER_CYCLE, path, message)


def _list_edges(present: Iterable[str], constraints: Mapping[str, AddonOrderConstraints]) -> Iterator[_Edge]:
    names = frozenset(present)
    for addon in sorted(names):
        own_constraints = _get_constraints(constraints, addon)
        yield from (
            _Edge(other, addon, f'"{addon}" requires "{other}"') for other in own_constraints.requires if other in names
        )
        yield from (
            _Edge(other, addon, f'"{addon}" has loadOrder.after "{other}"')
            for other in own_constraints.after
            if other in names
        )
        yield from (
            _Edge(addon, other, f'"{addon}" has loadOrder.before "{other}"')
            for other in own_constraints.before
            if other in names
        )


def _get_constraints(constraints: Mapping[str, AddonOrderConstraints], addon: str) -> AddonOrderConstraints:
    return constraints.get(addon, AddonOrderConstraints())
