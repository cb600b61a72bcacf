"""An addon that is to be baked in: what is known of it, what decides where it works, what is in the way (13.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.expressions import Budget
from reconciler.krm.yaml import Path
from reconciler.rules.composition.bake_expressions import Rewriter, Root, programs, steps_after
from reconciler.rules.composition.bake_fields import Part, fixed_part, part_in, remaining
from reconciler.rules.composition.catalogue import ObjectTemplate, Patch
from reconciler.rules.composition.codes import NOT_BAKEABLE
from reconciler.rules.composition.effective import Effective
from reconciler.rules.composition.faults import Fault, fault_of
from reconciler.rules.composition.names import addon_key
from reconciler.rules.composition.plan import Use
from reconciler.rules.composition.schema import Schema
from reconciler.rules.composition.text import Template
from reconciler.rules.fields import shown

ONLY_IN_A_RENDER: Final = ("target", "resources", "addon")
"""The variables of addons that definitions have nothing like (openchoreo 13.3.3)."""


@dataclass(frozen=True, eq=False)
class Filling:
    """An addon that is to be baked in, with the values that it has before any environment says something."""

    use: Use
    values: Effective
    budget: Budget

    @cached_property
    def key(self) -> str | None:
        """The field that has what is left of its values (openchoreo 13.3.2); None where its name makes none."""
        return addon_key(self.own_name)

    @property
    def own_name(self) -> str:
        """Its name, with its id where that is written."""
        instance = self.use.instance
        return f"{instance.addon}-{instance.id}" if self.use.is_named else instance.addon

    @property
    def known(self) -> dict[str, Any]:
        """What is known of it, values aside."""
        return {"instanceId": self.use.instance.id}

    @cached_property
    def bindings(self) -> dict[str, Any]:
        """What decides on placement."""
        return {**self.values.bindings, **self.known}

    @cached_property
    def part(self) -> Part:
        """What is fixed: what the type gives, and what placement uses."""
        used = {path for template, loop in self._placement() for path in self._used(template, loop)}
        return fixed_part(self.use.schema, self.use.config, used)

    @cached_property
    def rewriter(self) -> Rewriter:
        """What writes its templates anew."""
        schema = self.use.addon.schema
        schemas = {"spec": schema.full, "parameters": schema.parameters, "envOverrides": schema.env_overrides}
        roots = {
            name: Root(name, self.key or "", one, part_in(one, self.part), self.values.bindings[name], self.use.config)
            for name, one in schemas.items()
        }
        return Rewriter(roots, self.known, self.budget)

    @cached_property
    def works(self) -> bool:
        """Whether it is to work at all. Raises FaultError."""
        return self.use.addon.condition.holds(self.bindings, self.budget)

    @property
    def patches(self) -> Iterator[Patch]:
        """Its patches, those aside that are never done. Raises FaultError."""
        yield from (one for one in self.use.addon.patches if one.condition.holds(self.bindings, self.budget))

    def faults(self) -> Iterator[Fault]:
        """Yield each expression that uses what is known only in a render, where it must not (openchoreo 13.3)."""
        addon = self.use.addon
        found = tuple(self._unknown(addon.condition.template, ""))
        yield from found
        if found or not self.works:
            return
        for entry in addon.creates:
            yield from (fault for one in templates_of(entry) for fault in _only_in_a_render(one))
        for patch in addon.patches:
            yield from (fault for place in patch.places if place.value for fault in _only_in_a_render(place.value))
            found = tuple(self._unknown(patch.condition.template, ""))
            yield from found
            if not found and patch.condition.holds(self.bindings, self.budget):
                yield from (fault for one in _placement(patch) for fault in self._unknown(*one))

    def rule_faults(self) -> Iterator[Fault]:
        """Yield the rules that do not hold, or that no definition can have."""
        for rule in self.use.addon.rules:
            path = (*rule.path, "expression")
            if rule.program and not self.rewriter.expression(rule.program, path)[1]:
                message = f"must use what is fixed, because a definition has no rules: {shown(rule.program.text)}"
                yield fault_of(NOT_BAKEABLE, path, message)
            elif failure := rule.failure(self.bindings, self.budget):
                yield failure

    def left(self, section: Schema) -> Schema | None:
        """Return the fields of a section that can still be set."""
        return remaining(section, self.part)

    def _placement(self) -> Iterator[tuple[Template, str]]:
        """Yield the templates that decide on placement, each with the variable of the loop that it is in."""
        yield self.use.addon.condition.template, ""
        if self.works:
            yield from ((patch.condition.template, "") for patch in self.use.addon.patches)
            yield from (one for patch in self.patches for one in _placement(patch))

    def _used(self, template: Template, loop: str) -> Iterator[Path]:
        for _, program in programs(template.root):
            for at, name in program.places:
                if name in self.values.bindings and name != loop:
                    steps = steps_after(program.text, at + len(name), self.use.schema)
                    yield tuple(step.name for step in steps)

    def _unknown(self, template: Template, loop: str) -> Iterator[Fault]:
        for path, program in programs(template.root):
            for name in sorted(program.names - self.bindings.keys() - {loop}):
                message = f"must be known before anything is rendered, and {name} is not: {shown(program.text)}"
                yield fault_of(NOT_BAKEABLE, path, message)


def templates_of(entry: ObjectTemplate) -> Iterator[Template]:
    """Yield the templates of an entry."""
    yield from (one for one in (entry.include.template, entry.loop.template, entry.template) if one)


def _placement(patch: Patch) -> Iterator[tuple[Template, str]]:
    """Yield the templates that decide where a patch works, each with the variable of the loop that it is in."""
    variable = ""
    if patch.loop.template:
        yield patch.loop.template, ""
        variable = patch.loop.variable
    yield patch.target, variable
    yield from ((place.path, variable) for place in patch.places if place.path)


def _only_in_a_render(template: Template) -> Iterator[Fault]:
    """Yield each expression that no definition can have (openchoreo 13.3.3)."""
    for path, program in programs(template.root):
        for name in ONLY_IN_A_RENDER:
            if name in program.names:
                message = f"must not use {name}, which is known only in a render: {shown(program.text)}"
                yield fault_of(NOT_BAKEABLE, path, message)
