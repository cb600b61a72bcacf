"""What is wrong with Plugins only together: one release twice, and those that wait for each other (greenhouse 10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.krm.findings import Finding
from reconciler.rules.presets.codes import RELEASE_NAME_CONFLICT, WAIT_FOR_CYCLE, WAIT_FOR_NEVER_MET
from reconciler.rules.presets.outcome import Made, Outcome, failed_for

_Plugins = Mapping[tuple[str, str], Made]


def check_together(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes; those that cannot be beside others on their cluster have failed."""
    made = [one for one in outcomes if isinstance(one, Made)]
    faults = {**_circles(made), **_shared_releases(made)}
    there = {(one.wish.place.repository, one.wish.key.name) for one in outcomes}
    checked: list[Outcome] = []
    for one in outcomes:
        if not isinstance(one, Made):
            checked.append(one)
        elif id(one) in faults:
            checked.append(failed_for(one.wish, (faults[id(one)],)))
        else:
            checked.append(_with_unmet(one, there))
    return checked


def _shared_releases(made: Iterable[Made]) -> Mapping[int, Finding]:
    """Return an error for each Plugin whose release another has: the one that is published keeps it, then the least."""
    releases: dict[tuple[str, str, str], list[Made]] = {}
    for one in made:
        if one.release.name:
            place = (one.wish.place.repository, one.release.namespace, one.release.name)
            releases.setdefault(place, []).append(one)
    found: dict[int, Finding] = {}
    for (cluster, namespace, name), same in releases.items():
        first, *others = sorted(same, key=lambda one: (not one.wish.is_there, one.wish.key))
        for one in others:
            message = (
                f"{one.wish.key} must have a release of its own on {cluster}: {first.wish.key} is {name} in"
                f" {namespace}, too; set releaseName or releaseNamespace"
            )
            found[id(one)] = RELEASE_NAME_CONFLICT.finding(message, one.wish.written.where)
    return found


def _circles(made: Iterable[Made]) -> Mapping[int, Finding]:
    plugins = {(one.wish.place.repository, one.wish.key.name): one for one in made}
    found: dict[int, Finding] = {}
    for (cluster, name), one in plugins.items():
        if circle := _circle(name, cluster, plugins):
            message = f"{one.wish.key} on {cluster} must not wait for itself: {' waits for '.join(circle)}"
            found[id(one)] = WAIT_FOR_CYCLE.finding(message, one.wish.written.where_at(("spec", "waitFor")))
    return found


def _circle(start: str, cluster: str, plugins: _Plugins) -> list[str]:
    """Return the way by which a Plugin waits for itself, [] where there is none."""
    came: dict[str, str] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        for awaited in _awaited(name, cluster, plugins):
            if awaited == start:
                return [*reversed(_way(name, came, start)), start]
            if awaited not in came:
                came[awaited] = name
                waiting.append(awaited)
    return []


def _way(name: str, came: Mapping[str, str], start: str) -> list[str]:
    way = [name]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way


def _awaited(name: str, cluster: str, plugins: _Plugins) -> Iterator[str]:
    one = plugins.get((cluster, name))
    return (awaited.plugin(cluster) for awaited in (one.wish.spec.wait_for if one else ()))


def _with_unmet(one: Made, there: set[tuple[str, str]]) -> Made:
    cluster = one.wish.place.repository
    unmet = [awaited for awaited in one.wish.spec.wait_for if (cluster, awaited.plugin(cluster)) not in there]
    if not unmet:
        return one
    where = one.wish.written.where_at(("spec", "waitFor"))
    told = tuple(
        WAIT_FOR_NEVER_MET.finding(
            f"{one.wish.key} waits for {awaited.plugin(cluster)}, which {cluster} does not get", where
        )
        for awaited in unmet
    )
    return replace(one, variant=replace(one.variant, findings=(*one.variant.findings, *told)))
