"""A component in an environment: its values, its addons, its objects, and all that is wrong or odd (openchoreo 12)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from reconciler.expressions import Budget, Limits
from reconciler.krm.findings import Finding, errors
from reconciler.rules.composition.codes import (
    NAMESPACE_NOT_ALLOWED,
    RENDERED_OBJECT_INVALID,
    SCHEMA_VALIDATION,
)
from reconciler.rules.composition.compile_type import conflicting, in_turn, missing, wishes_of
from reconciler.rules.composition.compose import Bindings, Canvas, RenderError
from reconciler.rules.composition.context import Facts, metadata_of
from reconciler.rules.composition.effective import Effective, Layer, effective_values, override_findings
from reconciler.rules.composition.model import Component, EnvBinding, Instance
from reconciler.rules.composition.order import declare_order
from reconciler.rules.composition.overrides import ENVIRONMENT, addon_overrides
from reconciler.rules.composition.patching.lists import check_lists
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.rendered import Rendered, in_order
from reconciler.rules.composition.text import CompiledRule
from reconciler.rules.fields import dotted, named, shown
from reconciler.snapshot.catalog import ConfigObject

LONGEST_NAME = 253
_NAME = re.compile(r"[^/%\s\x00-\x1f]+")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class Composed:
    """What a component comes to: its objects in order, the instances that worked on them, and their values.

    With an error among the findings nothing of it may be written (openchoreo 6.4).
    """

    objects: tuple[Rendered, ...] = ()
    findings: tuple[Finding, ...] = ()
    worked: tuple[Instance, ...] = ()
    values: Mapping[Instance | None, Effective] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Why nothing of it may be written."""
        return errors(self.findings)


def render_component(
    plan: Plan, component: Component, binding: EnvBinding | None, facts: Facts, limits: Limits
) -> Composed:
    """Return what a component comes to in an environment; without one, its values are worked out and no more."""
    run = _Run(plan, component, binding, facts, limits)
    run.find_values()
    if binding is None or errors(run.findings):
        return run.result(())
    title = f"{component.key} in {binding.environment}"
    try:
        objects = run.draw()
    except RenderError as error:
        by = f"{error.instance}: " if error.instance else ""
        finding = error.fault.finding(error.one)
        run.findings.append(replace(finding, message=f"{title}: {by}{finding.message}"))
        return run.result(())
    run.findings += (replace(one, message=f"{title}: {one.message}") for one in _checked(objects, component))
    return run.result(tuple(in_order(objects)))


@dataclass
class _Run:
    """One component in one environment, on its way."""

    plan: Plan
    component: Component
    binding: EnvBinding | None
    facts: Facts
    limits: Limits
    findings: list[Finding] = field(default_factory=list)
    values: dict[Instance | None, Effective] = field(default_factory=dict)
    worked: list[Instance] = field(default_factory=list)

    def result(self, objects: tuple[Rendered, ...]) -> Composed:
        return Composed(objects, tuple(self.findings), tuple(self.worked), self.values)

    def find_values(self) -> None:
        """Work out the values of the component, and of every addon that it has (openchoreo 4.4)."""
        one, path = self.component.one, ("spec",) if self.component.has_type else ("spec", "parameters")
        own = {key: value for key, value in self.component.values.items() if key not in self.plan.allowed}
        layers = [Layer("component", one, path, own)]
        definition = self.plan.definition.schema
        if self.binding and self.binding.overrides.component:
            layer = Layer(ENVIRONMENT, self.binding.one, ("spec", "overrides"), self.binding.overrides.component)
            self.findings += override_findings(layer, definition)
            layers.append(layer)
        self._take(None, effective_values(layers, self.plan.schema or definition.full, definition))
        wanted = [*self.plan.platform, *self._opted_in(), *self.plan.listed]
        overrides: Mapping[Instance, Layer] = {}
        if self.binding:
            found = addon_overrides(self.binding, self.plan, [use.instance for use in wanted])
            self.findings += found.findings
            overrides = found.layers
        for use in wanted:
            self._take(use.instance, self._values_of(use, overrides.get(use.instance)))

    def _opted_in(self) -> Iterator[Use]:
        """Yield the developer addons whose key the component has (openchoreo 6.1)."""
        for key, use in self.plan.allowed.items():
            value = self.component.values.get(key)
            if isinstance(value, Mapping):
                yield use
            elif value is not None:
                message = f"spec.{key} must be a mapping, {{}} for an addon as it is, not {named(value)}"
                self.findings.append(SCHEMA_VALIDATION.finding(message, self.component.one.where_at(("spec", key))))

    def _values_of(self, use: Use, override: Layer | None) -> Effective:
        if use.side == "platform" or use in self.plan.listed:
            layers = [Layer(use.side, use.by, use.config_path, use.config)]
        else:
            layers = [Layer("component", self.component.one, ("spec", use.key), self.component.values[use.key])]
        if override:
            self.findings += override_findings(override, use.addon.schema)
            layers.append(override)
        return effective_values(layers, use.schema, use.addon.schema)

    def _take(self, instance: Instance | None, values: Effective) -> None:
        # what an environment may not say is told of it already, and need not be told of the whole again
        told = {(finding.code, finding.where) for finding in self.findings}
        self.findings += (one for one in values.findings if (one.code, one.where) not in told)
        self.values[instance] = values

    def draw(self) -> list[Rendered]:
        """Render the objects; raises RenderError where something cannot go on."""
        bindings = {"metadata": metadata_of(self.component), **self.facts.bindings, **self.values[None].bindings}
        wishes = wishes_of([use.addon for use in self.plan.uses])
        canvas = Canvas(bindings, Budget(self.limits), lambda one, other: declare_order(one, other, wishes))
        self._check_rules(self.plan.rules, self.plan.one, bindings, canvas)
        canvas.base(self.plan)
        platform = [use for use in self.plan.platform if self._work(use, canvas)]
        ready = [(use, self._wakes(use, canvas)) for use in (*self._opted_in(), *self.plan.listed)]
        developers = in_turn([use for use, bindings in ready if bindings is not None])
        self._compare(platform, developers)
        for use in developers if not errors(self.findings) else ():
            canvas.add(use, canvas.seen_by(use, self.values[use.instance]))
        self.worked += (use.instance for use in (*platform, *developers))
        self.findings += canvas.findings
        return canvas.objects

    def _work(self, use: Use, canvas: Canvas) -> bool:
        bindings = self._wakes(use, canvas)
        if bindings is not None:
            canvas.add(use, bindings)
        return bindings is not None

    def _wakes(self, use: Use, canvas: Canvas) -> Bindings | None:
        """Return what an addon sees, None for one that is not to work; its rules are for both (openchoreo 12.4)."""
        bindings = canvas.seen_by(use, self.values[use.instance])
        self._check_rules(use.addon.rules, use.addon.one, bindings, canvas)
        return bindings if canvas.is_active(use, bindings) else None

    def _check_rules(
        self, rules: Sequence[CompiledRule], one: ConfigObject, bindings: Bindings, canvas: Canvas
    ) -> None:
        failures = (rule.failure(bindings, canvas.budget) for rule in rules)
        self.findings += (failure.finding(one) for failure in failures if failure)

    def _compare(self, platform: Sequence[Use], developers: Sequence[Use]) -> None:
        """Look whether what works is complete, and gets along (openchoreo 6.1, 12.5)."""
        early = {use.instance.addon for use in platform}
        self.findings += missing(platform, early)
        self.findings += missing(developers, early | {use.instance.addon for use in developers})
        self.findings += conflicting(combinations((*platform, *developers), 2))


def _checked(objects: Sequence[Rendered], component: Component) -> Iterator[Finding]:
    """Yield what objects must not be, when all addons are through (openchoreo 9, 12.6)."""
    for one in objects:
        maker = one.trails[0]
        if fault := _identity_fault(one.data):
            where = maker.one.where_at(maker.path)
            yield RENDERED_OBJECT_INVALID.finding(f"{dotted(maker.path)} must make an object: {fault}", where)
            continue
        namespace = one.data["metadata"].get("namespace")
        if namespace not in (None, component.key.namespace):
            message = (
                f"{dotted(maker.path)} makes {one.key}, and must make objects for the namespace of the component,"
                f" {component.key.namespace}, not {shown(namespace)}"
            )
            yield NAMESPACE_NOT_ALLOWED.finding(message, maker.one.where_at((*maker.path, "metadata", "namespace")))
        for note in check_lists(one.data, one.writers):
            yield note.code.finding(f"{one.key}: {note.message}", maker.one.where_at(maker.path))


def _identity_fault(data: Any) -> str:
    """Return why data is no object, or ""."""
    if not isinstance(data, dict):
        return f"it is {named(data)}"
    for given in ("apiVersion", "kind"):
        if not isinstance(data.get(given), str) or not data[given]:
            return f"{given} must be a string that is not empty, not {shown(data.get(given))}"
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME:
        return f"metadata.name must be a string of 1 to {LONGEST_NAME} characters, not {shown(name)}"
    if name in (".", "..") or not _NAME.fullmatch(name):
        return f"metadata.name must be one that Kubernetes can have, without / and %, not {shown(name)}"
    if not _KIND.fullmatch(data["kind"]):
        return f"kind must be letters and digits, not {shown(data['kind'])}"
    return ""
