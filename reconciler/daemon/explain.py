"""Explaining one package over real Git: everything is read as for a plan, and this package alone is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.daemon.claims import settle_claims
from reconciler.daemon.desk import unread_of
from reconciler.daemon.reconcile import Begun, Gathered, begin, gather
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import errors
from reconciler.planning.claims import chosen
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.made_anew import MadeAnew, make_anew
from reconciler.planning.outcome import Blocked, Rendered
from reconciler.planning.source import Ingredients
from reconciler.planning.survey import Surveyed
from reconciler.planning.without import ConfigField, InRender, Layer, config_without, renderer_without
from reconciler.reporting.explain import alike_first
from reconciler.reporting.explanation import Explained
from reconciler.rules.variant import Place as Planned
from reconciler.rules.variant import RoomResult, Variant


@dataclass(frozen=True)
class Explainer:
    """Explains one package, by the config and the remotes as they were found."""

    place: Place
    found: Gathered
    remotes: Remotes
    tools: Tools

    def explained(self) -> Explained:
        """Return what is known of the package. Raises UnknownPlaceError when nobody wants it."""
        return self._explained(self.found, None)

    def without(self, layer: Layer) -> Explained:
        """Return what would be known of it, if one layer were not there. Raises UnknownPlaceError as `explained`."""
        if not isinstance(layer, ConfigField):
            return self._explained(self.found, layer)
        snapshot = self.found.snapshot
        files = config_without(snapshot.files, self.found.catalog.objects[layer.key], layer.path)
        changed = replace(snapshot, files=files)
        catalog = settle_claims(self.tools.read_catalog(changed), changed, self.remotes, self.tools)
        return self._explained(replace(self.found, snapshot=changed, catalog=catalog), None)

    def _explained(self, found: Gathered, without: InRender | None) -> Explained:
        destination = destination_of(self.place, self.tools.destinations(found.catalog))
        # how far a rule has come is told by all clusters
        in_waves = self.tools.renderer(found.catalog).last_mile.rollouts
        begun = begin(found, self.remotes, self.tools, only=None if in_waves else destination)
        surveyed = begun.desk.look(destination, begun.destinations)
        folder = destination.path(self.place.package)
        known = Explained(str(self.place), found.snapshot.id, found.catalog.objects, folder=folder)
        if isinstance(surveyed, DestinationPlan):
            return replace(known, findings=surveyed.findings)
        winners, losers = chosen(surveyed.claims, surveyed.ground.state)
        variant = winners.get(self.place.package)
        if variant is None:
            lost = next((one for one in losers if one.variant.place.package == self.place.package), None)
            return _lost(known, lost) if lost else _stalled(known, self.place, surveyed, begun.room)
        made = _made(known, make_anew(variant, _watched(surveyed, variant, begun, without)))
        return replace(made, findings=(*unread_of(destination, self.remotes), *made.findings))


def explainer(place: Place, source: ConfigSource, remotes: Remotes, tools: Tools) -> Explainer:
    """Read the config and fetch what it names; raises GitError without a config."""
    return Explainer(place, gather(source, remotes, tools), remotes, tools)


def _watched(surveyed: Surveyed, variant: Variant, begun: Begun, without: InRender | None) -> Surveyed:
    """Return the destination with a renderer that keeps the stages of one package, or does without a layer of it."""
    renderer = begun.desk.renderer
    special = replace(renderer, keeps_stages=True)
    special = renderer_without(special, without) if without else special

    def render(one: Variant, made: Ingredients) -> Rendered:
        return (special if one.place == variant.place else renderer)(one, made)

    return replace(surveyed, shop=replace(surveyed.shop, render=render))


def _made(known: Explained, made: MadeAnew) -> Explained:
    variant, blocked = made.outcome.variant, made.outcome if isinstance(made.outcome, Blocked) else None
    usable = made.rendered if made.rendered and not errors(made.rendered.findings) else None
    return replace(
        known, owner=variant.owner, variant=variant, rendered=usable,
        trouble=_words(blocked.conditions) if blocked else "", findings=blocked.findings if blocked else (),
    )  # fmt: skip


def _lost(known: Explained, blocked: Blocked) -> Explained:
    owner, trouble = blocked.variant.owner, _words(blocked.conditions)
    return replace(known, owner=owner, trouble=trouble, findings=blocked.findings)


def _stalled(known: Explained, place: Place, surveyed: Surveyed, room: RoomResult) -> Explained:
    here = surveyed.destination.key.namespace
    at = Planned(here, place.cluster, place.package)
    stalled = next((one for one in room.stalled if one.place == at), None)
    if stalled is None:
        faults = errors(room.findings)
        if not (_is_ours(place, surveyed) and faults):
            raise UnknownPlaceError(_unknown(place, surveyed))
        # whoever wants it may be what could not be read, as a set whose upstream does not answer
        return replace(known, trouble="nothing wants it by what could be read", findings=faults)
    return replace(known, owner=stalled.owner, trouble=_words(stalled.conditions), findings=stalled.findings)


def _words(conditions: Sequence[Condition]) -> str:
    """Return why a package is not made, by the condition that says so."""
    ready = next((one for one in conditions if one.type == "Ready"), conditions[-1])
    return f"{ready.reason}: {ready.message}"


def destination_of(place: Place, known: Iterable[Destination]) -> Destination:
    """Return the destination of a place. Raises UnknownPlaceError."""
    by_name = {one.name: one for one in known}
    if place.cluster not in by_name:
        listed = alike_first(place.cluster, by_name)
        raise UnknownPlaceError(f"{place}: there is no Repository or cluster {place.cluster}; there are {listed}")
    return by_name[place.cluster]


def _is_ours(place: Place, surveyed: Surveyed) -> bool:
    record = surveyed.ground.state.packages.get(place.package)
    return bool(record and record.owned)


def _unknown(place: Place, surveyed: Surveyed) -> str:
    wanted = {one.place.package for one in surveyed.claims.variants} | surveyed.claims.stalled
    is_ours = _is_ours(place, surveyed)
    why = "has it, and nothing wants it any more" if is_ours else "is not to have such a package"
    return f"{place}: {place.cluster} {why}; wanted there are {alike_first(place.package, wanted)}"
