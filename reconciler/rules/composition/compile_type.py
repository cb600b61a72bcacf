"""Compiling a component type, step by step, to a plan; a step with errors is the last one (openchoreo 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.expressions import Limits
from reconciler.krm.findings import Finding, errors, softened
from reconciler.krm.yaml import Path
from reconciler.rules.composition.catalogue import Addon, Definition
from reconciler.rules.composition.codes import (
    ADDON_CONFLICT,
    ADDON_INCOMPATIBLE,
    ADDON_KEY_INVALID,
    ADDON_NOT_ALLOWED,
    ADDON_NOT_FOUND,
    ADDON_REQUIREMENT_MISSING,
    DEFINITION_NOT_FOUND,
    DEFINITION_VERSION_MISMATCH,
    INSTANCE_ID_DUPLICATE,
    INSTANCE_ID_IMPLICIT,
    INSTANCE_ID_MISSING,
)
from reconciler.rules.composition.effective import Layer, static_findings
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.library import Library
from reconciler.rules.composition.model import AllowedAddon, ComponentType, Instance, PlatformAddon, Side
from reconciler.rules.composition.names import addon_key, camel_case
from reconciler.rules.composition.order import Wishes, ordered, unsatisfiable
from reconciler.rules.composition.patching.targets import may_match
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.schema import DeveloperAddon, defaulted, developer_schema
from reconciler.rules.composition.text import BASE, CompiledRule, Scope, compile_condition, compile_rule, declare
from reconciler.snapshot.catalog import ConfigObject

_PLATFORM_SIDE: Side = "platform"
_DEVELOPER_SIDE: Side = "developer"
_PLATFORM: Path = ("spec", "platformAddons")
_ALLOWED: Path = ("spec", "developerAddons", "allowed")


@dataclass(frozen=True)
class Compiled:
    """What became of a type: its plan, None where it is not ready, and what is wrong or odd.

    `files` are those that it leaves on the status branch, by name; `unbaked` says why there is no definition among
    them that its author asked for.
    """

    plan: Plan | None
    findings: tuple[Finding, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    unbaked: tuple[Finding, ...] = ()


def compile_type(read: ComponentType, kind: str, library: Library, limits: Limits) -> Compiled:
    """Return the plan of a type whose components are of this kind."""
    return _Compile(read, kind, library, limits).run()


@dataclass
class _Compile:
    """One compilation; every step adds to `findings`, and goes on from what the steps before it made."""

    read: ComponentType
    kind: str
    library: Library
    limits: Limits
    findings: list[Finding] = field(default_factory=list)

    def run(self) -> Compiled:
        definition = self._definition()
        self._addons_exist()
        if definition is None or errors(self.findings):
            return Compiled(None, tuple(self.findings))
        for check in (self._permissions, self._instances):
            check()
            if errors(self.findings):
                return Compiled(None, tuple(self.findings))
        return self._planned(definition)

    def _planned(self, definition: Definition) -> Compiled:
        scope = declare(
            BASE, definition.schema.full, definition.schema.parameters, definition.schema.env_overrides, self.limits
        )
        platform = [self._platform_use(one, scope) for one in self.read.platform]
        allowed = [self._allowed_use(one) for one in self.read.allowed]
        plan = Plan(self.one, definition, tuple(platform), {one.key: one for one in allowed}, (), (), self.kind)
        plan = replace(plan, rules=self._rules(scope))
        steps: tuple[Callable[[Plan], Iterator[Finding]], ...] = (
            self._values, self._compatibility, self._presence, self._cycles,
        )  # fmt: skip
        for step in steps:
            self.findings += step(plan)
            if errors(self.findings):
                return Compiled(None, tuple(self.findings))
        return self._emitted(plan, allowed)

    @property
    def one(self) -> ConfigObject:
        return self.read.one

    def _definition(self) -> Definition | None:
        name, shelf = self.read.definition, self.library.definitions
        found = shelf.found.get(name)
        path = ("spec", "componentDefinitionRef")
        if found is None:
            self._say(DEFINITION_NOT_FOUND.finding(shelf.why_not(name), self.one.where_at((*path, "name"))))
        elif self.read.version and self.read.version != found.version:
            message = (
                f"spec.componentDefinitionRef.version must be that of the definition,"
                f" {found.version or 'which has none'}, not {self.read.version}"
            )
            self._say(DEFINITION_VERSION_MISMATCH.finding(message, self.one.where_at((*path, "version"))))
        return found

    def _addons_exist(self) -> None:
        for name, path in self._named():
            if name not in self.library.addons.found:
                why = self.library.addons.why_not(name)
                self._say(ADDON_NOT_FOUND.finding(why, self.one.where_at((*path, "name"))))

    def _named(self) -> Iterator[tuple[str, Path]]:
        yield from ((one.instance.addon, one.path) for one in self.read.platform)
        yield from ((one.name, one.path) for one in self.read.allowed)

    def _permissions(self) -> None:
        platform = ((one.instance.addon, one.path, _PLATFORM_SIDE) for one in self.read.platform)
        allowed = ((one.name, one.path, _DEVELOPER_SIDE) for one in self.read.allowed)
        for name, path, side in (*platform, *allowed):
            if finding := not_allowed(self._addon(name), side, self.one, path):
                self._say(finding)

    def _instances(self) -> None:
        self.findings += instance_findings(
            self.one, [(one.instance, one.is_named, one.path) for one in self.read.platform]
        )
        for one in self.read.allowed:
            if addon_key(one.name) is None:
                message = f"{one.name} makes no key that a field can have: {camel_case(one.name)}"
                self._say(ADDON_KEY_INVALID.finding(message, self.one.where_at((*one.path, "name"))))

    def _platform_use(self, one: PlatformAddon, scope: Scope) -> Use:
        addon, name = self._addon(one.instance.addon), one.instance.addon
        condition = (
            compile_condition(one.condition, (*one.path, "condition"), scope) if one.condition is not None else None
        )
        self.findings += (fault.finding(self.one) for fault in (condition.faults if condition else ()))
        return Use(
            one.instance, addon, camel_case(name), addon.schema.full, self.one, one.path, one.config, condition,
            one.is_named,
        )  # fmt: skip

    def _allowed_use(self, one: AllowedAddon) -> Use:
        addon = self._addon(one.name)
        schema = defaulted(addon.schema.full, one.defaults)
        return Use(Instance(one.name, side="developer"), addon, camel_case(one.name), schema, self.one, one.path)

    def _rules(self, scope: Scope) -> tuple[CompiledRule, ...]:
        compiled = [compile_rule(one.name, one.expression, one.message, one.path, scope) for one in self.read.rules]
        self.findings += (fault.finding(self.one) for rule in compiled for fault in rule.faults)
        return tuple(compiled)

    def _values(self, plan: Plan) -> Iterator[Finding]:
        """Yield what is wrong with what the type says of values (openchoreo 11.4)."""
        for use in plan.platform:
            yield from tuple(static_findings(use.config_layer, use.schema)) or use.values.findings
        for one in self.read.allowed:
            layer = Layer("defaults", self.one, (*one.path, "defaults"), one.defaults)
            yield from static_findings(layer, self._addon(one.name).schema.full)

    def _compatibility(self, plan: Plan) -> Iterator[Finding]:
        """Yield the addons that fit nothing that there is to be changed (openchoreo 11.5)."""
        yield from incompatible((*plan.platform, *plan.allowed.values()), plan.definition, plan.platform, self.one)

    def _presence(self, plan: Plan) -> Iterator[Finding]:
        """Yield what addons need of one another, and do not stand (openchoreo 11.6)."""
        platform = {use.instance.addon for use in plan.platform}
        allowed = {use.instance.addon for use in plan.allowed.values()}
        yield from missing(plan.platform, platform)
        yield from missing(tuple(plan.allowed.values()), platform | allowed)
        developers = tuple(plan.allowed.values())
        yield from conflicting(plan.platform, (*plan.platform, *developers))
        # both may be allowed, and only one of them be used
        yield from map(softened, conflicting(developers, developers))

    def _cycles(self, plan: Plan) -> Iterator[Finding]:
        developers = [use.instance for use in plan.allowed.values()]
        platform = [use.instance for use in plan.platform]
        for instances, path in ((platform, _PLATFORM), (developers, _ALLOWED)):
            found = ordered(instances, plan.wishes, path)
            if isinstance(found, Fault):
                yield found.finding(self.one)
        early, late = (
            {one.addon for one in platform},
            {one.addon for one in developers} - {one.addon for one in platform},
        )
        yield from (fault.finding(self.one) for fault in unsatisfiable(early, late, plan.wishes, ("spec",)))

    def _emitted(self, plan: Plan, allowed: Sequence[Use]) -> Compiled:
        written = {one.name: one for one in self.read.allowed}
        developers = [_developer(use, written[use.instance.addon]) for use in allowed]
        schema, faults = developer_schema(plan.definition.schema, developers)
        self.findings += (fault.finding(self.one) for fault in faults)
        if errors(self.findings):
            return Compiled(None, tuple(self.findings))
        return Compiled(
            replace(plan, platform=in_turn(plan.platform, plan.wishes), schema=schema), tuple(self.findings)
        )

    def _addon(self, name: str) -> Addon:
        return self.library.addons.found[name]

    def _say(self, finding: Finding) -> None:
        self.findings.append(finding)


def _developer(use: Use, written: AllowedAddon) -> DeveloperAddon:
    description = written.description or use.addon.description
    return DeveloperAddon(use.key, description, use.addon.schema, written.defaults, (*written.path, "name"))


def in_turn(uses: Sequence[Use], wishes: Mapping[str, Wishes]) -> tuple[Use, ...]:
    """Return uses in the order in which they work; there is one, which was looked at before (openchoreo 10)."""
    found = ordered([use.instance for use in uses], wishes, ())
    assert not isinstance(found, Fault), "an order without a circle was found before"
    by_instance = {use.instance: use for use in uses}
    return tuple(by_instance[instance] for instance in found)


def not_allowed(addon: Addon, side: Side, one: ConfigObject, path: Path) -> Finding | None:
    """Return why a side may not use an addon, if it may not (openchoreo 11.2)."""
    if side in addon.sides:
        return None
    whom = {"platform": "platform engineers", "developer": "developers"}[side]
    message = f"{addon.one.key} is not for {whom}: its label allowedFor says so"
    return ADDON_NOT_ALLOWED.finding(message, one.where_at((*path, "name")))


def instance_findings(one: ConfigObject, listed: Sequence[tuple[Instance, bool, Path]]) -> Iterator[Finding]:
    """Yield what is wrong with the ids of instances: who is there more than once needs one (openchoreo 11.3)."""
    counts = Counter(instance.addon for instance, _, _ in listed)
    seen: set[Instance] = set()
    for instance, is_named, path in listed:
        if counts[instance.addon] > 1 and not is_named:
            message = f"{instance.addon} is there {counts[instance.addon]} times, and each needs an instanceId"
            yield INSTANCE_ID_MISSING.finding(message, one.where_at(path))
        elif instance in seen:
            yield INSTANCE_ID_DUPLICATE.finding(f"{instance} is there twice", one.where_at((*path, "instanceId")))
        elif not is_named:
            message = (
                f'{instance.addon} has no instanceId and is called "{instance.id}"; name it before there is another'
            )
            yield INSTANCE_ID_IMPLICIT.finding(message, one.where_at(path))
        seen.add(instance)


def incompatible(
    uses: Sequence[Use], definition: Definition, creators: Sequence[Use], one: ConfigObject
) -> Iterator[Finding]:
    """Yield addons that have targets, of which none fits the definition, or what creators create (openchoreo 11.5)."""
    made = [(each.data, each.id) for each in definition.resources]
    made += ((each.data, each.id) for use in creators for each in use.addon.creates)
    for use in uses:
        targets = use.addon.targets
        if targets and not any(may_match(target, data, name) for target in targets for data, name in made):
            others = ", or of what platform addons create" if creators else ""
            message = (
                f"{use.addon.one.key} must fit something of {definition.one.key}{others}: none of its spec.targets does"
            )
            yield ADDON_INCOMPATIBLE.finding(message, one.where_at(use.path))


def missing(uses: Sequence[Use], present: set[str]) -> Iterator[Finding]:
    """Yield what addons require that is not among those present (openchoreo 11.6, 12.5)."""
    first: dict[str, Use] = {}
    for use in uses:
        first.setdefault(use.instance.addon, use)
    for use in first.values():
        for relation in use.addon.requires:
            if relation.addon not in present:
                reason = f" ({relation.reason})" if relation.reason else ""
                message = f"{use.instance.addon} requires {relation.addon}, which is not there{reason}"
                yield ADDON_REQUIREMENT_MISSING.finding(message, use.by.where_at(use.path))


def conflicting(uses: Sequence[Use], others: Sequence[Use]) -> Iterator[Finding]:
    """Yield each pair of addons, one of each list, of which one says that it excludes the other (openchoreo 11.6)."""
    told: set[frozenset[str]] = set()
    for some, rest in ((uses, others), (others, uses)):
        present = {use.instance.addon for use in rest}
        for one in some:
            for relation in one.addon.conflicts:
                names = frozenset((one.instance.addon, relation.addon))
                if relation.addon in present and len(names) == 2 and names not in told:
                    told.add(names)
                    reason = f" ({relation.reason})" if relation.reason else ""
                    message = f"{one.instance.addon} excludes {relation.addon}, and both are there{reason}"
                    yield ADDON_CONFLICT.finding(message, one.by.where_at(one.path))
