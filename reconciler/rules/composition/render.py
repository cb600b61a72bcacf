"""A component in an environment: its values, its addons, its objects, and all that is wrong or odd (openchoreo 12)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.expressions import Budget, Limits
from reconciler.krm.findings import Finding, errors
from reconciler.rules.codes import OVERRIDE_UNUSED
from reconciler.rules.composition.codes import (
    NAMESPACE_NOT_ALLOWED,
    OBJECT_DUPLICATE,
    RENDERED_OBJECT_INVALID,
    SCHEMA_VALIDATION,
)
from reconciler.rules.composition.compile_type import conflicting, in_turn, missing
from reconciler.rules.composition.compose import Bindings, Canvas, RenderError
from reconciler.rules.composition.context import Facts, metadata_of
from reconciler.rules.composition.effective import Effective, Layer, effective_values, override_findings
from reconciler.rules.composition.marks import OWN
from reconciler.rules.composition.model import Component, EnvBinding, Instance
from reconciler.rules.composition.order import declare_order
from reconciler.rules.composition.overrides import ENVIRONMENT, addon_overrides
from reconciler.rules.composition.patching.lists import check_lists
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.rendered import Rendered, both_makers, in_order
from reconciler.rules.composition.schema import declares
from reconciler.rules.composition.text import CompiledRule
from reconciler.rules.fields import dotted, listed, named, shown
from reconciler.snapshot.catalog import ConfigObject

LONGEST_NAME = 253
_NAME = re.compile(r"[^/%\s\x00-\x1f]+")
_API_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)

_KNOWN = frozenset({"metadata", "spec", "parameters", "envOverrides", "instanceId", "addon"})
"""The variables that a component has wherever it runs."""


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
    if errors(run.findings):
        return run.result(())
    if binding is None:
        run.check_alone()
        return run.result(())
    try:
        objects = run.draw()
    except RenderError as error:
        run.tell([error.fault.finding(error.one)], error.instance)
        return run.result(())
    run.tell(_checked(objects, component))
    # what is no object has no place among others
    return run.result(() if errors(run.findings) else tuple(in_order(objects)))


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
    wanted: list[Use] = field(default_factory=list)
    overrides: Mapping[Instance, Layer] = field(default_factory=dict)

    def tell(self, found: Iterable[Finding], by: Instance | None = None) -> None:
        """Note what is wrong, at an object of the catalogue, with this component and this instance of an addon."""
        who = str(self.component.key) + (f" in {self.binding.environment}" if self.binding else "")
        title = f"{who}: {by}" if by else who
        self.findings += (replace(one, message=f"{title}: {one.message}") for one in found)

    def result(self, objects: tuple[Rendered, ...]) -> Composed:
        return Composed(objects, tuple(self.findings), tuple(self.worked), self.values)

    def find_values(self) -> None:
        """Work out the values of the component, and of every addon that it has (openchoreo 4.4)."""
        one, path = self.component.one, ("spec",) if self.component.has_type else ("spec", "parameters")
        own = {key: value for key, value in self.component.values.items() if not self._is_apart(key)}
        layers = [Layer("component", one, path, own)]
        definition = self.plan.definition.schema
        if self.binding and self.binding.overrides.component:
            layer = Layer(ENVIRONMENT, self.binding.one, ("spec", "overrides"), self.binding.overrides.component)
            self.findings += override_findings(layer, definition)
            layers.append(layer)
        self._take(None, effective_values(layers, self.plan.schema or definition.full, definition))
        self.wanted += (*self.plan.platform, *self._opted_in(), *self.plan.listed)
        if self.binding:
            found = addon_overrides(self.binding, self.plan, {use.instance for use in self.wanted})
            self.findings += found.findings
            self.overrides = found.layers
        for use in self.wanted:
            self._take(use.instance, self._values_of(use, self.overrides.get(use.instance)))

    def _is_apart(self, key: str) -> bool:
        """Tell whether a field of a component is none of its values: that of an addon, or one of people's own."""
        is_own = key.startswith(OWN) and not declares(self.plan.definition.schema.full, (key,))
        return key in self.plan.allowed or (self.component.has_type and is_own)

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
            if override is None:
                return use.values
            layers = [use.config_layer]
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

    def check_alone(self) -> None:
        """Check the rules that do not ask where a component runs (openchoreo 4.4, 12.7)."""
        canvas = self._canvas()
        of_type = [rule for rule in self.plan.rules if rule.names <= _KNOWN]
        self._check_rules(of_type, self.plan.one, canvas.bindings, canvas)
        for use in self.wanted:
            rules = [rule for rule in use.addon.rules if rule.names <= _KNOWN]
            bindings = canvas.seen_by(use, self.values[use.instance])
            self._check_rules(rules, use.addon.one, bindings, canvas, use.instance)

    def _canvas(self) -> Canvas:
        bindings = {"metadata": metadata_of(self.component), **self.facts.bindings, **self.values[None].bindings}
        wishes = self.plan.wishes
        return Canvas(bindings, Budget(self.limits), lambda one, other: declare_order(one, other, wishes))

    def draw(self) -> list[Rendered]:
        """Render the objects; raises RenderError where something cannot go on."""
        canvas = self._canvas()
        self._check_rules(self.plan.rules, self.plan.one, canvas.bindings, canvas)
        canvas.base(self.plan)
        platform = [use for use in self.plan.platform if self._work(use, canvas)]
        awake = [use for use in self.wanted if use.side == "developer" and self._wakes(use, canvas) is not None]
        developers = in_turn(awake, self.plan.wishes)
        self._check_overrides(awake)
        self._compare(platform, developers)
        for use in developers if not errors(self.findings) else ():
            canvas.add(use, canvas.seen_by(use, self.values[use.instance]))
        self.worked += (use.instance for use in (*platform, *developers))
        self.findings += (replace(one, message=f"{self.component.key}: {one.message}") for one in canvas.findings)
        return canvas.objects

    def _work(self, use: Use, canvas: Canvas) -> bool:
        bindings = self._wakes(use, canvas)
        if bindings is not None:
            canvas.add(use, bindings)
        return bindings is not None

    def _wakes(self, use: Use, canvas: Canvas) -> Bindings | None:
        """Return what an addon sees, None for one that is not to work; its rules are for both (openchoreo 12.4)."""
        bindings = canvas.seen_by(use, self.values[use.instance])
        self._check_rules(use.addon.rules, use.addon.one, bindings, canvas, use.instance)
        return bindings if canvas.is_active(use, bindings) else None

    def _check_rules(
        self,
        rules: Sequence[CompiledRule],
        one: ConfigObject,
        bindings: Bindings,
        canvas: Canvas,
        by: Instance | None = None,
    ) -> None:
        failures = (rule.failure(bindings, canvas.budget) for rule in rules)
        self.tell((failure.finding(one) for failure in failures if failure), by)

    def _check_overrides(self, awake: Sequence[Use]) -> None:
        """Tell of what an environment says of addons that a component has opted into, and that do not work there."""
        working = {use.instance for use in awake}
        for use in self.wanted:
            layer = self.overrides.get(use.instance)
            if layer and use.side == "developer" and use.instance not in working:
                message = f"{dotted(layer.path)} is of no use: the condition of {use.instance} does not hold"
                self.tell([OVERRIDE_UNUSED.finding(message, layer.one.where_at(layer.path))])

    def _compare(self, platform: Sequence[Use], developers: Sequence[Use]) -> None:
        """Look whether what works is complete, and gets along (openchoreo 6.1, 12.5)."""
        early = {use.instance.addon for use in platform}
        self.tell(missing(platform, early))
        self.tell(missing(developers, early | {use.instance.addon for use in developers}))
        everybody = (*platform, *developers)
        self.tell(conflicting(everybody, everybody))


def _checked(objects: Sequence[Rendered], component: Component) -> Iterator[Finding]:
    """Yield what objects must not be, when all addons are through (openchoreo 9, 12.6)."""
    sound = []
    for one in objects:
        maker = one.trails[0]
        if fault := _identity_fault(one.data):
            where = maker.one.where_at(maker.path)
            message = f"{dotted(maker.path)} must make an object: {fault}{_changed_by(one)}"
            yield RENDERED_OBJECT_INVALID.finding(message, where)
            continue
        sound.append(one)
        namespace = one.data["metadata"].get("namespace")
        if namespace not in (None, component.key.namespace):
            message = (
                f"{dotted(maker.path)} makes {one.key}, and must make objects for the namespace of the component,"
                f" {component.key.namespace}, not {shown(namespace)}{_changed_by(one)}"
            )
            yield NAMESPACE_NOT_ALLOWED.finding(message, maker.one.where_at((*maker.path, "metadata", "namespace")))
        for note in check_lists(one.data, one.writers):
            yield note.code.finding(f"{one.key}: {note.message}", maker.one.where_at(maker.path))
    yield from _twins(sound)


def _changed_by(one: Rendered) -> str:
    """Return the end of a sentence on an object that others than its maker had a hand in."""
    patched = list(dict.fromkeys(str(trail.instance) for trail in one.trails if trail.write))
    return f"; it was changed by {listed(patched)}" if patched else ""


def _twins(objects: Sequence[Rendered]) -> Iterator[Finding]:
    """Yield objects that became one, or would be one file, by what addons made of them (openchoreo 12.6, 14.3)."""
    seen: dict[tuple[str, str, str], Rendered] = {}
    for one in objects:
        maker, other = one.trails[0], seen.setdefault((one.key.group, one.key.kind.lower(), one.key.name), one)
        if other is not one:
            message = f"{one.key} must be there once, and {both_makers(other, one)} make it"
            yield OBJECT_DUPLICATE.finding(f"{dotted(maker.path)}: {message}", maker.one.where_at(maker.path))


def _identity_fault(data: Any) -> str:
    """Return why data is no object, or ""."""
    if not isinstance(data, dict):
        return f"it is {named(data)}"
    for given in ("apiVersion", "kind"):
        if not isinstance(data.get(given), str) or not data[given]:
            return f"{given} must be a string that is not empty, not {shown(data.get(given))}"
    if not _API_VERSION.fullmatch(data["apiVersion"]):
        return (
            f"apiVersion must be one that Kubernetes can have, a group and a version, not {shown(data['apiVersion'])}"
        )
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME:
        return f"metadata.name must be a string of 1 to {LONGEST_NAME} characters, not {shown(name)}"
    if name in (".", "..") or not _NAME.fullmatch(name):
        return f"metadata.name must be one that Kubernetes can have, without / and %, not {shown(name)}"
    if not _KIND.fullmatch(data["kind"]):
        return f"kind must be letters and digits, not {shown(data['kind'])}"
    return ""
