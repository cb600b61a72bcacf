"""Cycles: packages that would be made from themselves, over other variants or at once (porch 15.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.krm.findings import Where
from reconciler.krm.identity import ObjectKey
from reconciler.rules.repository import kptfile_url
from reconciler.rules.variant import Place, RoomResult, Stalled, Variant
from reconciler.rules.variants import status
from reconciler.rules.variants.codes import UPSTREAM_CYCLE
from reconciler.rules.variants.revision_names import below
from reconciler.rules.variants.surroundings import Surroundings
from reconciler.snapshot.catalog import Catalog

_NAMED = 20

Spot = tuple[str, str, str]


@dataclass(frozen=True)
class Link:
    """One variant: the spot that its package is made from, and the one that it goes to.

    A spot is a path on a branch of a remote, whatever the Repositories are called that lead there.
    """

    key: ObjectKey
    start: Spot
    end: Spot
    words: str = ""


def without_cycles(result: RoomResult, catalog: Catalog, around: Surroundings) -> RoomResult:
    """Return the result with every variant on a cycle of upstreams stalled; what hangs below a cycle is not.

    Several variants may want one place: which of them gets it is not known here, and each of them counts.
    """
    wanted: dict[ObjectKey, Variant | Stalled] = {one.owner.key: one for one in result.variants}
    wanted |= {one.owner.key: one for one in result.stalled}
    spots = _Spots(around)
    links = [link for one in wanted.values() if (link := _link(one, spots))]
    messages: dict[ObjectKey, str] = {}
    for cycle in find_cycles(links):
        for link in cycle:
            messages.setdefault(link.key, _message(cycle))
    if not messages:
        return result
    stalled = [_stalled(wanted[key], message, catalog) for key, message in messages.items()]
    return replace(
        result,
        variants=tuple(one for one in result.variants if one.owner.key not in messages),
        stalled=(*(one for one in result.stalled if one.owner.key not in messages), *stalled),
    )


def find_cycles(links: Iterable[Link]) -> Iterator[Sequence[Link]]:
    """Yield cycles that together hold every link that is on one, each from its least key on, in the order of making.

    Of the cycles through a link the shortest is found; a link that is on several may be in several.
    """
    known = _knotted(sorted(links, key=lambda link: link.key))
    onward: dict[Spot, list[Link]] = {}
    for link in known:
        onward.setdefault(link.start, []).append(link)
    told: set[ObjectKey] = set()
    for link in known:
        if link.key not in told and (cycle := _shortest(link, onward)):
            told.update(one.key for one in cycle)
            yield _from_least(cycle)


def _knotted(links: Sequence[Link]) -> Sequence[Link]:
    """Return what is left when loose ends are cut off again and again: cycles, and what leads from one to another."""
    while True:
        starts, ends = {link.start for link in links}, {link.end for link in links}
        kept = [link for link in links if link.start in ends and link.end in starts]
        if len(kept) == len(links):
            return kept
        links = kept


def _shortest(first: Link, onward: Mapping[Spot, Sequence[Link]]) -> Sequence[Link]:
    """Return the shortest way from a link back to where it starts; () when there is none."""
    before: dict[Spot, Link] = {first.end: first}
    waiting = deque([first.end])
    while waiting and first.start not in before:
        for link in onward.get(waiting.popleft(), ()):
            if link.end not in before:
                before[link.end] = link
                waiting.append(link.end)
    if first.start not in before:
        return ()
    way = [before[first.start]]
    while way[-1] is not first:
        way.append(before[way[-1].start])
    return way[::-1]


def _from_least(cycle: Sequence[Link]) -> Sequence[Link]:
    at = min(range(len(cycle)), key=lambda index: cycle[index].key)
    return (*cycle[at:], *cycle[:at])


def _message(cycle: Sequence[Link]) -> str:
    more = f", and {len(cycle) - _NAMED} more" if len(cycle) > _NAMED else ""
    return f"a package cannot be made from itself: {', '.join(one.words for one in cycle[:_NAMED])}{more}"


class _Spots:
    """The spots of places, each Repository's address looked up once."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._urls: dict[tuple[str, str], str] = {}

    def of(self, place: Place) -> Spot | None:
        """Return where a place is; None without its Repository."""
        name = (place.namespace, place.repository)
        repository = self._around.repositories.get(name)
        if repository is None:
            return None
        if name not in self._urls:
            self._urls[name] = kptfile_url(self._around.upstreams.url(repository))
        return self._urls[name], repository.branch, below(repository.directory, place.package)


def _link(one: Variant | Stalled, spots: _Spots) -> Link | None:
    origin, place, key = _origin(one), one.place, one.owner.key
    start, end = (spots.of(spot) if spot else None for spot in (origin, place))
    if start is None or end is None:
        return None
    return Link(key, start, end, f"{key.namespace}/{key.name} makes {place} from {origin}")


def _origin(one: Variant | Stalled) -> Place | None:
    if isinstance(one, Stalled):
        return one.upstream
    upstream = one.upstream
    return Place(upstream.namespace, upstream.repository, upstream.package) if upstream else None


def _stalled(one: Variant | Stalled, message: str, catalog: Catalog) -> Stalled:
    conditions = status.variant_stalled(UPSTREAM_CYCLE.name, message)
    finding = UPSTREAM_CYCLE.finding(message, _where(one, catalog))
    return Stalled(one.owner, conditions, (finding,), one.place, _origin(one))


def _where(one: Variant | Stalled, catalog: Catalog) -> Where:
    # a set writes the upstream of what it makes elsewhere, or not at all
    written = catalog.get(one.owner.set or one.owner.key)
    assert written is not None, "whoever wants a package stands in the config"
    return written.where if one.owner.set else written.where_at(("spec", "upstream"))
