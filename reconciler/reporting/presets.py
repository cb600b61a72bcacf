"""What the status branch says of presets, once it is known what became of their Plugins (greenhouse 13)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.krm.identity import ObjectKey
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.outcome import Blocked, Draft, Outcome, Unchanged
from reconciler.rules.guards import Unit
from reconciler.rules.presets.model import GROUP, PLUGIN, PRESET
from reconciler.rules.presets.status import PluginState, settled
from reconciler.rules.variant import ConfigStatus

# what waits for people; a draft just goes, and what is retained the room knows
_WAITS = ("proposed", "declined")


def room_statuses(plan: FleetPlan) -> Iterator[ConfigStatus]:
    """Yield what the rooms say of config objects; presets with what became of each of their Plugins."""
    if not [one for one in plan.room.statuses if is_preset(one.key)]:
        yield from plan.room.statuses
        return
    states = {outcome.variant.owner.key: _state(outcome) for _, outcome in plan.outcomes()}
    plugins = {key: state for key, state in states.items() if (key.group, key.kind) == (GROUP, PLUGIN)}
    leaving = _leaving(plan)
    for one in plan.room.statuses:
        yield settled(one, plugins, leaving.get(one.key)) if is_preset(one.key) else one


def _leaving(plan: FleetPlan) -> dict[ObjectKey, dict[Unit, PluginState]]:
    """Return what is on its way out by the preset that made it."""
    found: dict[ObjectKey, dict[Unit, PluginState]] = {}
    for destination in plan.destinations:
        for one in destination.leaving:
            if one.owner.set and one.how in _WAITS:
                unit = destination.destination.name, one.package
                found.setdefault(one.owner.set, {})[unit] = "PendingDeletion"
    return found


def is_preset(key: ObjectKey) -> bool:
    """Return whether an object makes Plugins."""
    return key.kind == PRESET and key.group == GROUP


def _state(outcome: Outcome) -> PluginState:
    match outcome:
        case Blocked():
            return "Failed"
        case Draft() | Unchanged(why="drafted" | "declined"):
            return "Draft"
        case Unchanged():
            return "UpToDate"
