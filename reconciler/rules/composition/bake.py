"""Baking platform addons into a definition: a new one, which needs no addons to come to the same (openchoreo 13.3).

- Fields that the type gives values for, and those that decide where an addon works, are fixed: they are literals in the
  new definition, and no environment overrides them any more, even if the addon has them among its envOverrides.
  All other fields stay, below the addon's key, in the section that they were in.
- Conditions (of the type, of the addon or its `enabled`, of patches), targets, paths and the forEach of patches are
  decided now. A type's own condition sees components, and so must be constant. An addon that is not to work leaves
  nothing behind.
- A definition has no rules: an addon's must hold for values that are fixed, and are checked now.
- The addons of developers stay with the type. They find one definition in the place of platform addons: what these have
  set is no addon's any more, so that it is replaced where it was merged with, and cannot be required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.expressions import OMIT, Budget, Limits
from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Document, Path, YamlError
from reconciler.rules.composition.bake_addon import Filling, templates_of
from reconciler.rules.composition.bake_expressions import Rewriter, programs, steps_after
from reconciler.rules.composition.bake_places import is_target, require_decided
from reconciler.rules.composition.bake_written import Writer
from reconciler.rules.composition.catalogue import ObjectTemplate, Patch, PatchedPlace
from reconciler.rules.composition.codes import ADDON_KEY_COLLISION, ADDON_KEY_INVALID, NOT_BAKEABLE
from reconciler.rules.composition.compile_type import missing
from reconciler.rules.composition.effective import Layer, effective_values
from reconciler.rules.composition.faults import Fault, FaultError, fault_of
from reconciler.rules.composition.model import API_VERSION, DEFINITION, GROUP, Instance
from reconciler.rules.composition.names import camel_case
from reconciler.rules.composition.order import declare_order
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.targets import Target, read_target
from reconciler.rules.composition.patching.writers import Writers
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.read_catalogue import read_definition
from reconciler.rules.composition.reading import ID, ID_WORDS
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted, shown
from reconciler.snapshot.catalog import ConfigObject

COMPOSED_FROM_LABEL = "composedFrom"
COMPOSED_FROM, ADDONS = "platform/composed-from", "platform/addons"
_SPEC, _PARAMETERS, _ENV_OVERRIDES = "spec", "parameters", "envOverrides"
_SECTIONS = (_PARAMETERS, _ENV_OVERRIDES)
_SCHEMA, _TYPES, _REQUIRED = "schema", "types", "requiredByDefault"


def bake(plan: Plan, name: str, limits: Limits) -> dict[str, Any] | tuple[Finding, ...]:
    """Return the definition `name` that comes to what a type does with its platform addons, or why there is none.

    The same values come to the same objects, to the byte, if those of addons stand below their keys, and none is given
    that is fixed. What is wrong is told at the type, which asks for it.
    """
    oven = _Oven(plan, name, limits, Budget(limits))
    try:
        return oven.baked()
    except _RefusedError as error:
        return error.findings


class _RefusedError(Exception):
    """A type cannot be baked."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings)
        self.findings = findings


_FIELD_EXPRESSION = re.compile(r"\$\{\s*(?:spec|parameters|envOverrides)\.(?P<path>\w+(?:\.\w+)*)\s*\}")
_SCALAR_TYPES = frozenset({"string", "integer", "number", "boolean"})


@dataclass(eq=False)
class _Dough:
    """A resource of the definition that is to be: `entry` is all of it but its template, which addons work on."""

    entry: dict[str, Any]
    template: Any
    writers: Writers
    made_by: str

    @property
    def id(self) -> str:
        """By which targets mean it."""
        return str(self.entry["id"])

    @property
    def resource(self) -> dict[str, Any]:
        """What is written into the definition."""
        return {**self.entry, "template": self.template}


@dataclass(eq=False)
class _Oven:
    """One type that is baked."""

    plan: Plan
    name: str
    limits: Limits
    budget: Budget
    doughs: list[_Dough] = field(default_factory=list)
    allowance: Allowance = field(default_factory=Allowance)
    fields: dict[str, Any] = field(default_factory=dict)
    """JSON Schemas of the fields of the flattened definition, those of an addon below its key."""

    def baked(self) -> dict[str, Any]:
        fillings = self._fillings()
        self.fields |= self.plan.definition.schema.full["properties"]
        self.fields |= {one.key: one.use.addon.schema.full for one in fillings if one.key}
        schema = self._schema([one for one in fillings if one.part.has_open])
        self._base(schema)
        for filling in fillings:
            with self._blaming(filling.use):
                self._create(filling)
                self._patch(filling)
        return self._checked(self._definition(fillings, schema))

    def _fillings(self) -> list[Filling]:
        """Return the addons that work, when nothing is in the way of any."""
        found: list[Filling] = []
        findings: list[Finding] = []
        for use in self.plan.platform:
            try:
                found += self._filling(use)
            except _RefusedError as error:
                findings += error.findings
        working = [one.use for one in found]
        findings += missing(working, {use.instance.addon for use in working})
        if findings:
            raise _RefusedError(*findings)
        return found

    def _filling(self, use: Use) -> list[Filling]:
        """Return an addon that works, nothing for one that does not. Raises _RefusedError."""
        layer = Layer("platform", use.by, use.config_path, use.config)
        filling = Filling(use, effective_values((layer,), use.schema, use.addon.schema), self.budget)
        with self._blaming(use):
            is_wanted = self._is_wanted(use)
            faults = (tuple(filling.faults()) if is_wanted else ()) or tuple(filling.rule_faults())
            if faults:
                raise _RefusedError(*(self._finding(fault, use) for fault in faults))
            return [filling] if is_wanted and filling.works else []

    def _is_wanted(self, use: Use) -> bool:
        if use.condition is None:
            return True
        for path, program in programs(use.condition.template.root):
            if program.names:
                message = f"must be the same for all components to be baked in: {shown(program.text)}"
                raise _RefusedError(NOT_BAKEABLE.finding(f"{dotted(path)} {message}", use.by.where_at(path)))
        return use.condition.holds({}, self.budget)

    def _schema(self, fillings: list[Filling]) -> dict[str, Any]:
        """Return the definition's schema with what is left of the addons' below their keys (openchoreo 13.3.2)."""
        written = deepcopy(self.plan.definition.one.data["spec"].get(_SCHEMA) or {})
        findings = [finding for filling in fillings for finding in self._key_findings(filling, fillings)]
        if findings:
            raise _RefusedError(*findings)
        writer = Writer(dict(written.get(_TYPES) or {}), required_by_default=written.get(_REQUIRED) is True)
        for filling in fillings:
            schema, key = filling.use.addon.schema, filling.key or ""
            for section, one in zip(_SECTIONS, (schema.parameters, schema.env_overrides), strict=True):
                if left := filling.left(one):
                    written[section] = {**(written.get(section) or {}), key: writer.fields(left, key)}
        if writer.types:
            written[_TYPES] = {**(written.get(_TYPES) or {}), **writer.types}
        return written

    def _key_findings(self, filling: Filling, fillings: list[Filling]) -> Iterator[Finding]:
        use, key = filling.use, filling.key
        where = use.by.where_at((*use.path, "name"))
        others = [one.use.instance for one in fillings if one.key == key and one is not filling]
        if key is None:
            message = f"{filling.own_name} makes no key that a field can have: {camel_case(filling.own_name)}"
            yield ADDON_KEY_INVALID.finding(message, where)
        elif key in self.plan.definition.schema.full["properties"] or others:
            owner = f"that of {others[0]}" if others else "a field of the definition"
            message = f"{use.instance} makes the key {key}, which is {owner}; keys must be unique"
            yield ADDON_KEY_COLLISION.finding(message, where)

    def _base(self, schema: Mapping[str, Any]) -> None:
        """Take the resources of the definition, none of which may see that there are more fields now."""
        definition = self.plan.definition
        for entry in definition.resources:
            self._require_named_fields(entry, schema)
            data = dict(value_at(definition.one.data, entry.path))
            template = deepcopy(data.pop("template"))
            self.doughs.append(_Dough(data, template, self._writers(None), str(definition.one.key)))

    def _require_named_fields(self, entry: ObjectTemplate, schema: Mapping[str, Any]) -> None:
        own = self.plan.definition.schema
        schemas = {_PARAMETERS: own.parameters, _ENV_OVERRIDES: own.env_overrides}
        grown = {name: one for name, one in schemas.items() if len(schema.get(name) or {}) > len(one["properties"])}
        seen = {**grown, **({_SPEC: own.full} if grown else {})}
        for path, program in (found for one in templates_of(entry) for found in programs(one.root)):
            for at, name in program.places:
                if name in seen and not steps_after(program.text, at + len(name), seen[name]):
                    message = f"must name the fields that it uses, now that there are more: {shown(program.text)}"
                    raise _RefusedError(self._told(fault_of(NOT_BAKEABLE, path, message), self.plan.definition.one, ()))

    def _create(self, filling: Filling) -> None:
        """Add what an addon creates (openchoreo 13.3.6)."""
        instance, rewriter = filling.use.instance, filling.rewriter
        for index, entry in enumerate(filling.use.addon.creates):
            name = entry.id or f"{instance.addon}-{instance.id}-{index}"
            if not ID.fullmatch(name):
                raise FaultError(fault_of(NOT_BAKEABLE, (*entry.path, "id"), f"must be {ID_WORDS}, not {shown(name)}"))
            for other in self.doughs:
                if other.id == name:
                    message = f"must be another id than that of {other.made_by}, not {shown(name)}"
                    raise FaultError(fault_of(NOT_BAKEABLE, (*entry.path, "id"), message))
            written = _entry(name, entry, rewriter)
            if written is not None:
                template = rewriter.data(entry.template.root)
                self.doughs.append(_Dough(written, template, self._writers(instance), str(instance)))

    def _patch(self, filling: Filling) -> None:
        for patch in filling.patches:
            for inside in patch.loop.rounds(filling.bindings, self.budget):
                target = read_target(patch.target.render(inside, self.budget), patch.target.path)
                if not isinstance(target, Target):
                    raise FaultError(target[0])
                known = {name: inside[name] for name in inside.keys() - filling.values.bindings.keys()}
                rewriter = replace(filling.rewriter, known=known)
                chosen = [one for one in self.doughs if is_target(target, one.template, one.id, patch.target.path)]
                for one in chosen:
                    for place in patch.places:
                        self._write(place, patch, one, inside, rewriter, filling.use.instance)

    def _write(
        self, place: PatchedPlace, patch: Patch, dough: _Dough, inside: Mapping[str, Any], rewriter: Rewriter,
        by: Instance,
    ) -> None:  # fmt: skip
        path = place.path.render(inside, self.budget) if place.path else None
        value = rewriter.data(place.value.root) if place.value else place.operation.value
        operation = place.operation.rendered(value, path)
        if value is not OMIT:
            require_decided(
                dough.template, operation, dough.writers, by, self.allowance, self._is_scalar, skip_missing=patch.skips
            )
        dough.writers.patch(dough.template, operation, by, self.allowance, skip_missing=patch.skips)

    def _is_scalar(self, text: str) -> bool:
        """Return whether an expression is only a field that the schema declares as a string, number or boolean."""
        match = _FIELD_EXPRESSION.fullmatch(text.strip())
        node: Any = {"properties": self.fields}
        for name in match["path"].split(".") if match else ():
            node = (node.get("properties") or {}).get(name) or {}
        return bool(match) and node.get("type") in _SCALAR_TYPES and not node.get("x-kubernetes-int-or-string")

    def _definition(self, fillings: list[Filling], schema: dict[str, Any]) -> dict[str, Any]:
        source = self.plan.definition.one
        addons = ",".join(str(filling.use.instance) for filling in fillings)
        metadata = {
            "name": self.name,
            "labels": {COMPOSED_FROM_LABEL: source.key.name},
            "annotations": {COMPOSED_FROM: source.key.name, ADDONS: addons},
        }
        resources = [dough.resource for dough in self.doughs]
        spec = {**({_SCHEMA: schema} if schema else {}), "resources": resources}
        return {"apiVersion": API_VERSION, "kind": DEFINITION, "metadata": metadata, "spec": spec}

    def _checked(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the definition, if it is one that can be read: expressions and schemas have limits."""
        try:
            document = Document.fresh(data)
        except YamlError as error:
            raise _RefusedError(self._unusable(str(error))) from None
        key = ObjectKey(GROUP, DEFINITION, "", self.name)
        _, told = read_definition(ConfigObject(key, API_VERSION, "", document), self.limits)
        if wrong := errors(told):
            raise _RefusedError(*(self._unusable(one.message) for one in wrong))
        return data

    def _unusable(self, why: str) -> Finding:
        return NOT_BAKEABLE.finding(f"the definition {self.name} could not be used: {why}", self.plan.one.where)

    def _writers(self, creator: Instance | None) -> Writers:
        wishes = self.plan.wishes
        return Writers(lambda one, other: declare_order(one, other, wishes), creator)

    @contextmanager
    def _blaming(self, use: Use) -> Iterator[None]:
        """Make a fault that is met one of the type, at its addon."""
        try:
            yield
        except FaultError as error:
            raise _RefusedError(self._finding(error.fault, use)) from None

    def _finding(self, fault: Fault, use: Use) -> Finding:
        return self._told(fault, use.addon.one, use.path)

    def _told(self, fault: Fault, of: ConfigObject, path: Path) -> Finding:
        """Return what is wrong with another object, of which nothing is wrong but that it is to be baked."""
        return NOT_BAKEABLE.finding(
            f"{self.name} cannot be baked: {of.key}: {fault.message}", self.plan.one.where_at(path)
        )


def _entry(name: str, entry: ObjectTemplate, rewriter: Rewriter) -> dict[str, Any] | None:
    """Return what is created as the entry of a definition, its template aside; None where it never is."""
    written: dict[str, Any] = {"id": name}
    include = rewriter.data(entry.include.template.root)
    if include is False:
        return None
    if include is not True:
        written["includeWhen"] = include
    if entry.loop.template:
        written |= {"forEach": rewriter.data(entry.loop.template.root), "var": entry.loop.variable}
    return written
