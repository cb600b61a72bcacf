"""Rendering one component in one environment: base resources, then one addon after the other (openchoreo 6, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reconciler.expressions import OMIT, Budget
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.composition.catalogue import ObjectTemplate, Patch, PatchedPlace
from reconciler.rules.composition.codes import OBJECT_DUPLICATE, PATCH_TARGET_NOT_FOUND
from reconciler.rules.composition.effective import Effective
from reconciler.rules.composition.faults import Fault, FaultError, fault_of
from reconciler.rules.composition.model import Instance
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.targets import Target, effort, matches, read_target
from reconciler.rules.composition.patching.writers import IsOrdered, Writers
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.rendered import Rendered, Trail, both_makers
from reconciler.rules.composition.text import Origin
from reconciler.rules.fields import dotted
from reconciler.rules.notes import Note
from reconciler.snapshot.catalog import ConfigObject

Bindings = Mapping[str, Any]


class RenderError(Exception):
    """A component cannot be rendered: an object of the catalogue has a fault that shows with its values."""

    def __init__(self, one: ConfigObject, fault: Fault, instance: Instance | None) -> None:
        super().__init__(fault.message)
        self.one = one
        self.fault = fault
        self.instance = instance


@dataclass
class Canvas:
    """The objects of a component while they are rendered, and what is odd about them."""

    bindings: Bindings
    budget: Budget
    is_ordered: IsOrdered
    objects: list[Rendered] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    allowance: Allowance = field(default_factory=Allowance)
    _made: dict[ObjectKey, Rendered] = field(default_factory=dict)

    def base(self, plan: Plan) -> None:
        """Render the resources of the definition."""
        one = plan.definition.one
        with blaming(one, None):
            for entry in plan.definition.resources:
                self._make(entry, entry.id, self.bindings, one, None)

    def seen_by(self, use: Use, values: Effective) -> Bindings:
        """Return what an addon sees when it starts to work (openchoreo 5.4)."""
        instance = use.instance
        bindings = {
            **self.bindings, **values.bindings,
            "instanceId": instance.id, "addon": {"name": instance.addon, "instanceId": instance.id},
        }  # fmt: skip
        if "resources" in use.addon.names:
            with blaming(use.addon.one, instance):
                bindings["resources"] = [self.allowance.snapshot(one.data, ("spec",)) for one in self.objects]
        return bindings

    def is_active(self, use: Use, bindings: Bindings) -> bool:
        """Tell whether an addon is to work: by what the type says, and by what it says itself (openchoreo 6.1)."""
        with blaming(use.by, use.instance):
            if use.condition and not use.condition.holds(self.bindings, self.budget):
                return False
        with blaming(use.addon.one, use.instance):
            return use.addon.condition.holds(bindings, self.budget)

    def add(self, use: Use, bindings: Bindings) -> None:
        """Let an addon work: first it creates, then it patches (openchoreo 6.2, 6.3)."""
        addon, instance = use.addon, use.instance
        with blaming(addon.one, instance):
            for index, entry in enumerate(addon.creates):
                name = entry.id or f"{instance.addon}-{instance.id}-{index}"
                self._make(entry, name, bindings, addon.one, instance)
            for patch in addon.patches:
                self._patch(patch, bindings, addon.one, instance)

    def _make(
        self, entry: ObjectTemplate, name: str, bindings: Bindings, one: ConfigObject, by: Instance | None
    ) -> None:
        """Render an entry, once for each round of its loop."""
        if not entry.include.holds(bindings, self.budget):
            return
        for inside in entry.loop.rounds(bindings, self.budget):
            data, origins = entry.template.render_traced(inside, self.budget)
            if data is OMIT:
                continue
            trail = Trail(one, by, entry.template.path, parts=origins, loop=entry.loop)
            made = Rendered(name, data, Writers(self.is_ordered, by), by, [trail])
            other = self._made.get(made.key)
            # a patch may have made another object of it
            if other and other.key == made.key:
                message = f"must not make {made.key} again: {both_makers(other, made)} do"
                raise FaultError(fault_of(OBJECT_DUPLICATE, entry.path, message))
            self._made[made.key] = made
            self.objects.append(made)

    def _patch(self, patch: Patch, bindings: Bindings, one: ConfigObject, by: Instance) -> None:
        if not patch.condition.holds(bindings, self.budget):
            return
        found = False
        rounds = 0
        for inside in patch.loop.rounds(bindings, self.budget):
            rounds += 1
            target = _target(patch, inside, self.budget)
            for each in self._chosen(target, patch.target.path):
                found = True
                for place in patch.places:
                    self._write(place, patch, each, inside, one, by)
        if rounds and not found:
            message = f"{by} finds nothing to patch: no object is what {dotted(patch.target.path)} asks for"
            self.findings.append(PATCH_TARGET_NOT_FOUND.finding(message, one.where_at((*patch.path, "target"))))

    def _chosen(self, target: Target, at: Path) -> list[Rendered]:
        self.allowance.look(sum(effort(target, one.data) for one in self.objects), at)
        return [one for one in self.objects if matches(target, one.data, one.id)]

    def _write(
        self, place: PatchedPlace, patch: Patch, each: Rendered, inside: Bindings, one: ConfigObject, by: Instance
    ) -> None:
        at = place.operation.at
        seen = {"target": self.allowance.snapshot(each.data, at)} if "target" in place.names else {}
        bindings = {**inside, **seen}
        path = place.path.render(bindings, self.budget) if place.path else None
        value, origins = _value(place, bindings, self.budget)
        operation = place.operation.rendered(value, path)
        each.begin_change()
        done = each.writers.patch(each.data, operation, by, self.allowance, skip_missing=patch.skips)
        each.trails += (Trail(one, by, place.operation.at, write, origins, patch.loop) for write in done.writes)
        self.findings += (_told(note, each, one, place.operation.at) for note in done.notes)


@contextmanager
def blaming(one: ConfigObject, instance: Instance | None) -> Iterator[None]:
    """Make a fault that is met one of an object, whose templates are rendered."""
    try:
        yield
    except FaultError as error:
        raise RenderError(one, error.fault, instance) from None


def _value(place: PatchedPlace, bindings: Bindings, budget: Budget) -> tuple[Any, Mapping[Path, Origin]]:
    return place.value.render_traced(bindings, budget) if place.value else (place.operation.value, {})


def _target(patch: Patch, bindings: Bindings, budget: Budget) -> Target:
    read = read_target(patch.target.render(bindings, budget), patch.target.path)
    if isinstance(read, Target):
        return read
    raise FaultError(read[0])


def _told(note: Note, each: Rendered, one: ConfigObject, at: Path) -> Finding:
    """Return what is to be said of a place of an object, at the operation that did it."""
    return note.code.finding(f"{each.key}: {note.message}", one.where_at(at))
