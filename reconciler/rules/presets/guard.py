"""The guards of presets: what they let go at once, and what stays whatever they say (greenhouse 12, design 10.15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.krm.identity import ObjectKey
from reconciler.rules.guards import ACK_DELETIONS, Decision, Unit, decide
from reconciler.rules.presets.model import GROUP, Preset
from reconciler.rules.presets.published import SUSPEND
from reconciler.rules.presets.surroundings import Surroundings
from reconciler.rules.presets.wishes import Ground
from reconciler.rules.variant import Guard, Place

PREVENT_DELETION = f"{GROUP}/prevent-deletion"


@dataclass(frozen=True)
class Guarded:
    """What a preset lets go by its guard, and what it holds: `held` are the units, for the reason of the guard.

    `is_guarded`: it is too much at once, or the preset does not let anything go.
    """

    guard: Guard
    held: tuple[Unit, ...] = ()
    is_guarded: bool = False


def guard_preset(preset: Preset, wanted: Collection[Unit], ground: Ground) -> Guarded:
    """Return which Plugins of a preset may go, of those that it does not want any more."""
    existing = ground.had.get(preset.key, ())
    doomed = sorted(unit for unit in existing if unit not in wanted)
    suspended = [unit for unit in doomed if is_suspended(unit, ground)]
    doomed = [unit for unit in doomed if unit not in suspended]
    if not doomed:
        why = _suspended_why(suspended) if suspended else ""
        return Guarded(Guard(frozenset(), why), tuple(suspended))
    decision = _decision(preset, doomed, len(existing), ground.around)
    why, count = decision.why, decision.existing
    places = frozenset(_place(unit, ground) for unit in doomed)
    if why:
        acknowledged = frozenset({preset.one.annotations.get(ACK_DELETIONS, "")} - {""})
        # what is never let go waits for nobody's word
        waiting = frozenset[Place]() if is_prevented(preset) else places
        guard = Guard(frozenset(), why, count, waiting, acknowledged)
        return Guarded(guard, (*doomed, *suspended), is_guarded=True)
    confirmed = places if decision.is_confirmed else frozenset[Place]()
    return Guarded(Guard(places, _suspended_why(suspended), confirmed=confirmed), tuple(suspended))


def guard_suspended(gone: Collection[Unit], ground: Ground) -> Mapping[ObjectKey, Guard]:
    """Return guards for owners that are gone, where some of their Plugins say that they are suspended."""
    makers: dict[ObjectKey, list[Unit]] = {}
    for unit in sorted(gone):
        owner = ground.owned[unit]
        makers.setdefault(owner.set or owner.key, []).append(unit)
    guards: dict[ObjectKey, Guard] = {}
    for maker, units in makers.items():
        suspended = [unit for unit in units if is_suspended(unit, ground)]
        if suspended:
            places = frozenset(_place(unit, ground) for unit in units if unit not in suspended)
            guards[maker] = Guard(places, _suspended_why(suspended))
    return guards


def is_suspended(unit: Unit, ground: Ground) -> bool:
    """Tell whether the Plugin that stands somewhere says that it is suspended."""
    cluster, package = unit
    published = ground.published(cluster).get(package)
    return published is not None and published.is_suspended


def is_prevented(preset: Preset) -> bool:
    """Tell whether a preset lets nothing go, whatever anybody acknowledges."""
    return PREVENT_DELETION in preset.one.annotations


def _decision(preset: Preset, doomed: list[Unit], existing: int, around: Surroundings) -> Decision:
    """Return whether Plugins may go, and how many of them count."""
    annotations = preset.one.annotations
    if is_prevented(preset):
        listed = ", ".join("/".join(unit) for unit in doomed[:5])
        return Decision(
            f"{preset.key} has the annotation {PREVENT_DELETION}, and keeps {len(doomed)} Plugins ({listed})", existing
        )
    acknowledged, held = {annotations.get(ACK_DELETIONS, "")}, around.held.get(preset.key, {})
    named = ("Plugins", str(preset.key))
    return decide(doomed, existing, held, acknowledged, around.max_delete_percent, named)


def _suspended_why(units: Collection[Unit]) -> str:
    named = ", ".join("/".join(unit) for unit in units)
    return f"suspended by the annotation {SUSPEND}: {named}" if units else ""


def _place(unit: Unit, ground: Ground) -> Place:
    cluster, package = unit
    home = ground.inventory.homes.get(cluster)
    return Place(home.namespace if home else "", cluster, package)
