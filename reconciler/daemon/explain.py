"""Explaining one package over real Git: everything is read as for a plan, and this package alone is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reconciler.daemon.reconcile import begin, gather
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import errors
from reconciler.planning.claims import chosen
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.made_anew import MadeAnew, make_anew
from reconciler.planning.outcome import Blocked
from reconciler.planning.survey import Surveyed
from reconciler.reporting.explain import Explained, alike_first
from reconciler.rules.variant import Place as Planned
from reconciler.rules.variant import RoomResult


def explain(place: Place, source: ConfigSource, remotes: Remotes, tools: Tools) -> Explained:
    """Return what is known of one package. Raises UnknownPlaceError when nobody wants it, GitError without a config."""
    found = gather(source, remotes, tools)
    destination = _destination(place, tools.destinations(found.catalog))
    begun = begin(found, remotes, tools)
    surveyed = begun.desk.look(destination, begun.destinations)
    known = Explained(str(place), found.snapshot.id, found.catalog.objects)
    if isinstance(surveyed, DestinationPlan):
        return replace(known, findings=surveyed.findings)
    variant = chosen(surveyed.claims, surveyed.ground.state)[0].get(place.package)
    return _made(known, make_anew(variant, surveyed)) if variant else _stalled(known, place, surveyed, begun.room)


def _made(known: Explained, made: MadeAnew) -> Explained:
    variant, blocked = made.outcome.variant, made.outcome if isinstance(made.outcome, Blocked) else None
    usable = made.rendered if made.rendered and not errors(made.rendered.findings) else None
    return replace(
        known, owner=variant.owner, variant=variant, rendered=usable,
        trouble=_words(blocked.conditions) if blocked else "", findings=blocked.findings if blocked else (),
    )  # fmt: skip


def _stalled(known: Explained, place: Place, surveyed: Surveyed, room: RoomResult) -> Explained:
    here = surveyed.destination.key.namespace
    at = Planned(here, place.cluster, place.package)
    stalled = next((one for one in room.stalled if one.place == at), None)
    if stalled is None:
        raise UnknownPlaceError(_unknown(place, surveyed))
    return replace(known, owner=stalled.owner, trouble=_words(stalled.conditions), findings=stalled.findings)


def _words(conditions: Sequence[Condition]) -> str:
    """Return why a package is not made, by the condition that says so."""
    ready = next((one for one in conditions if one.type == "Ready"), conditions[-1])
    return f"{ready.reason}: {ready.message}"


def _destination(place: Place, known: Iterable[Destination]) -> Destination:
    by_name = {one.name: one for one in known}
    if place.cluster not in by_name:
        listed = alike_first(place.cluster, by_name)
        raise UnknownPlaceError(f"{place}: there is no Repository or cluster {place.cluster}; there are {listed}")
    return by_name[place.cluster]


def _unknown(place: Place, surveyed: Surveyed) -> str:
    wanted = {one.place.package for one in surveyed.claims.variants} | surveyed.claims.stalled
    record = surveyed.ground.state.packages.get(place.package)
    why = "has it, and nothing wants it any more" if record and record.owned else "is not to have such a package"
    return f"{place}: {place.cluster} {why}; wanted there are {alike_first(place.package, wanted)}"
