"""Who gave what an expression reads: parameters, the build, the environment, the component itself (design 10.28)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.rules.composition.bindings import Bound
from reconciler.rules.composition.effective import Effective
from reconciler.rules.composition.model import Build, Instance, Values
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.schema import Schema, declares
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.snapshot.catalog import ConfigObject

Source = dict[str, Any]
_VALUES = ("spec", "parameters", "envOverrides")
_OF_BINDING = {"name": "environment", "endpoints": "endpoints"}


@dataclass(frozen=True, eq=False)
class Sources:
    """What the values of a component in an environment were taken from."""

    bound: Bound
    plan: Plan
    build: Build | None
    composed: Composed

    def of(self, reads: Iterable[tuple[str, ...]], instance: Instance | None) -> list[Source]:
        """Return who gave the fields of variables that an expression of an addon, or of the definition, reads."""
        return [source for read in sorted(reads) for source in self._of(read[0], read[1:], instance)]

    def _of(self, variable: str, path: Path, instance: Instance | None) -> Iterator[Source]:
        name = ".".join(map(str, (variable, *path)))
        if variable in _VALUES:
            yield from self._parameter(variable, path, instance)
        elif variable in ("build", "workload"):
            yield from self._built(name, (variable, *path))
        elif variable == "env":
            yield self._environment(name, path)
        elif variable == "metadata":
            yield _said(name, "component", self.bound.component.one, ("metadata", *path))
        elif variable in ("instanceId", "addon"):
            yield from self._instance(name, instance)

    def _parameter(self, variable: str, path: Path, instance: Instance | None) -> Iterator[Source]:
        use = next((use for use in self.plan.uses if use.instance == instance), None)
        values = self.composed.values[instance]
        yield from _Parameter(variable, values, self.plan, use).sources(path, _node(values.schema.full, path))

    def _built(self, name: str, path: Path) -> Iterator[Source]:
        if self.build:
            where = path[1:] if path[0] == "build" else path
            yield _said(name, "build", self.build.one, ("spec", *where))

    def _environment(self, name: str, path: Path) -> Source:
        if path and path[0] in _OF_BINDING:
            return _said(name, "environment", self.bound.binding.one, ("spec", _OF_BINDING[str(path[0])]))
        return _said(name, "environment", self.bound.environment.one, ("spec", "context", *path))

    def _instance(self, name: str, instance: Instance | None) -> Iterator[Source]:
        for use in self.plan.uses:
            if use.instance == instance:
                written = "instanceId" if use.is_named and name != "addon.name" else "name"
                yield _said(name, use.side, use.by, (*use.path, written))


@dataclass(frozen=True, eq=False)
class _Parameter:
    """Parameters as one scope sees them: that of the component, or that of an instance of an addon."""

    variable: str
    values: Effective
    plan: Plan
    use: Use | None

    def sources(self, path: Path, schema: Schema) -> list[Source]:
        """Return who gave a parameter, field by field where it was more than one.

        It is the highest layer that says anything of it; where none does it is a default.
        """
        value, fields = value_at(self.values.data, path), schema.get("properties", {})
        if not isinstance(value, Mapping) or not fields:
            return [self._source(path, value)]
        inside = [one for key in value for one in self.sources((*path, key), fields.get(key, {}))]
        is_of_one = len({(one["layer"], one.get("by")) for one in inside}) < 2
        return [self._source(path, value)] if path and is_of_one else inside

    def _source(self, path: Path, value: Any) -> Source:
        name = ".".join(map(str, (self.variable, *path)))
        if value is ABSENT:
            return {"name": name, "layer": "unset"}
        layer = self.values.origin(path)
        # a null that the value is not says: as if nobody did
        if layer and (value is None or value_at(layer.data, path) is not None):
            return _said(name, layer.name, layer.one, (*layer.path, *path))
        return self._default(name, path)

    def _default(self, name: str, path: Path) -> Source:
        use = self.use
        if use and value_at(_defaults(use), path) not in (ABSENT, None):
            return _said(name, "defaults", use.by, (*use.path, "defaults", *path))
        one, schema = (use.addon.one, use.addon.schema) if use else (self.plan.definition.one, self.values.schema)
        section = "parameters" if declares(schema.parameters, path) else "envOverrides"
        return _said(name, "default", one, ("spec", "schema", section, *self._written(one, section, path)))

    def _written(self, one: ConfigObject, section: str, path: Path) -> Path:
        """Return where a schema says what a field is by default: at the field, or at an object around it."""
        node: Any = one.data["spec"]["schema"].get(section)
        for depth, step in enumerate(path):
            if depth and not self._is_given(path[:depth]) and _holds(node.get("$default"), path[depth:]):
                return (*path[:depth], "$default")
            node = node.get(step)
            if not isinstance(node, Mapping):
                return path[: depth + 1]
        return path

    def _is_given(self, path: Path) -> bool:
        return self.values.origin(path) is not None


def _node(schema: Schema, path: Path) -> Schema:
    """Return the schema of a field; that of one that is not declared says nothing."""
    for step in path:
        schema = schema.get("properties", {}).get(step, {})
    return schema


def _defaults(use: Use) -> Values:
    """Return what a type says of the defaults of an addon that developers may opt into."""
    found = value_at(use.by.data, (*use.path, "defaults"))
    return found if isinstance(found, Mapping) else {}


def _holds(default: Any, path: Path) -> bool:
    """Tell whether the default of an object, a map or the JSON of one, has a value at a path."""
    return value_at(json.loads(default) if isinstance(default, str) else default, path) is not ABSENT


def _said(name: str, layer: str, one: ConfigObject, path: Path) -> Source:
    return {"name": name, "layer": layer, "by": str(one.key), "file": one.file, "where": dotted(path)}
