"""The order of addons: what they declare of one another, and their names where they declare nothing (openchoreo 10)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import ADDON_ORDER_CYCLE, LOAD_ORDER_UNSATISFIABLE
from reconciler.rules.composition.faults import Fault, fault_of
from reconciler.rules.composition.model import Instance


@dataclass(frozen=True)
class Wishes:
    """What an addon declares of its place among others, by their names; one that is not there means nothing."""

    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class _Edge:
    """One addon that comes before another, and the declaration that says so."""

    first: str
    second: str
    declared: str


def ordered(instances: Iterable[Instance], wishes: Mapping[str, Wishes], at: Path) -> tuple[Instance, ...] | Fault:
    """Return instances as they work: by what their addons declare, else by name and id (openchoreo 10).

    Of addons that want to come before one another in a circle none has a place; `at` is where that is told.
    """
    everybody = tuple(instances)
    line = _Line(everybody, wishes)
    found = tuple(line.all())
    return found if len(found) == len(everybody) else _circle_fault(line.circle(), at)


def declare_order(one: Instance, other: Instance, wishes: Mapping[str, Wishes]) -> bool:
    """Tell whether one of two addons declares that it comes before or after the other (openchoreo 9)."""
    pair = {one.addon, other.addon}
    return len(pair) == 2 and any(_edges(pair, wishes))


def unsatisfiable(
    platform: Iterable[str], developer: Iterable[str], wishes: Mapping[str, Wishes], at: Path
) -> tuple[Fault, ...]:
    """Return what is declared and cannot be: all platform addons come before those of developers (openchoreo 10)."""
    early, late = frozenset(platform), frozenset(developer)
    declared = [
        *(
            f"{one} loadOrder.after {other}"
            for one in sorted(early)
            for other in _of(wishes, one).after
            if other in late
        ),
        *(
            f"{one} loadOrder.before {other}"
            for one in sorted(late)
            for other in _of(wishes, one).before
            if other in early
        ),
    ]
    rule = "must keep all platform addons before those of developers, and so cannot keep this"
    return tuple(fault_of(LOAD_ORDER_UNSATISFIABLE, at, f"{rule}: {one}") for one in dict.fromkeys(declared))


class _Line:
    """Instances that wait for all those of the addons before theirs; who waits for itself waits for ever."""

    def __init__(self, instances: tuple[Instance, ...], wishes: Mapping[str, Wishes]) -> None:
        self.instances: dict[str, list[Instance]] = {}
        for one in instances:
            self.instances.setdefault(one.addon, []).append(one)
        self.edges = sorted(_edges(self.instances, wishes))
        self.waits = dict.fromkeys(self.instances, 0)
        self._behind: dict[str, list[str]] = {}
        for first, second in dict.fromkeys((edge.first, edge.second) for edge in self.edges):
            self._behind.setdefault(first, []).append(second)
            self.waits[second] += len(self.instances[first])

    def all(self) -> Iterator[Instance]:
        """Yield every instance whose turn comes, the smallest of those that may go first."""
        ready = [one for addon, found in self.instances.items() if not self.waits[addon] for one in found]
        heapq.heapify(ready)
        while ready:
            one = heapq.heappop(ready)
            yield one
            for addon in self._behind.get(one.addon, ()):
                self.waits[addon] -= 1
                for other in () if self.waits[addon] else self.instances[addon]:
                    heapq.heappush(ready, other)

    def circle(self) -> list[_Edge]:
        """Return the declarations that make one circle of those that still wait, from its smallest name on."""
        into = {edge.second: edge for edge in reversed(self.edges) if self.waits[edge.first]}
        # everybody who waits does so for somebody who waits: whoever goes back comes by again
        addon, way = min(name for name, left in self.waits.items() if left), dict[str, _Edge]()
        while addon not in way:
            way[addon] = into[addon]
            addon = into[addon].first
        names = list(way)
        found = [way[name] for name in reversed(names[names.index(addon) :])]
        start = min(range(len(found)), key=lambda number: found[number].first)
        return [*found[start:], *found[:start]]


def _circle_fault(circle: list[_Edge], at: Path) -> Fault:
    names = " → ".join([*(edge.first for edge in circle), circle[0].first])
    declared = ", ".join(edge.declared for edge in circle)
    return fault_of(
        ADDON_ORDER_CYCLE, at, f"must have an addon that comes first, and not a circle: {names} ({declared})"
    )


def _edges(present: Iterable[str], wishes: Mapping[str, Wishes]) -> Iterator[_Edge]:
    names = frozenset(present)
    for one in sorted(names):
        wish = _of(wishes, one)
        yield from (_Edge(other, one, f"{one} requires {other}") for other in wish.requires if other in names)
        yield from (_Edge(other, one, f"{one} loadOrder.after {other}") for other in wish.after if other in names)
        yield from (_Edge(one, other, f"{one} loadOrder.before {other}") for other in wish.before if other in names)


def _of(wishes: Mapping[str, Wishes], addon: str) -> Wishes:
    return wishes.get(addon, Wishes())
