"""Provenance: which template, addon, parameter and override made each value of a component (design 10.28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import is_secret
from reconciler.krm.yaml import Path
from reconciler.rules.composition.bindings import Bound
from reconciler.rules.composition.effective import Effective
from reconciler.rules.composition.model import Build, Instance
from reconciler.rules.composition.patching.apply import Write
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.rendered import Rendered, Trail
from reconciler.rules.composition.text import Origin
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.rules.provenance import as_shown, changes, op_of
from reconciler.snapshot.catalog import ConfigObject

_VALUES = ("spec", "parameters", "envOverrides")
Step = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ComponentProvenance:
    """Where every value of a component in an environment comes from; worked out when somebody wants to read it.

    `made_of` are the objects that it was rendered of, each with the hash of what it says.
    """

    bound: Bound
    build: Build | None
    composed: Composed
    files: Mapping[str, Rendered]
    made_of: Mapping[ConfigObject, str]

    def layers(self) -> list[dict[str, Any]]:
        """Return `layers` of a status file: each value that is not as a template has it, with what led to it."""
        return [
            {"file": name, "resource": str(one.key), "pointer": format_pointer(path), "steps": steps}
            for name, one in sorted(self.files.items())
            for path, steps in sorted(self._history(one).items(), key=lambda entry: format_pointer(entry[0]))
        ]

    def applied(self) -> list[dict[str, str]]:
        """Return the addons that worked on it, in their order (openchoreo 14.3)."""
        return [{"layer": "addon", "kind": "Addon", "name": str(one)} for one in self.composed.worked]

    def objects(self) -> list[dict[str, str]]:
        """Return what it was made of."""
        return [
            {"kind": one.key.kind, "namespace": one.key.namespace, "name": one.key.name, "file": one.file, "hash": said}
            for one, said in sorted(self.made_of.items(), key=lambda each: each[0].key)
        ]

    def _history(self, one: Rendered) -> dict[Path, list[Step]]:
        """Return the steps by the place that their value has in the end."""
        found: list[tuple[Path, Step]] = []
        hides = is_secret(one.data)
        for trail in one.trails:
            if trail.write is None:
                found += self._made(trail, one, hides=hides)
            else:
                found = [(place, step) for path, step in found if (place := _moved(path, trail.write)) is not None]
                found += self._written(trail, trail.write, hides=hides)
        history: dict[Path, list[Step]] = {}
        for path, step in found:
            history.setdefault(path, []).append(step)
        return history

    def _made(self, trail: Trail, one: Rendered, *, hides: bool) -> Iterator[tuple[Path, Step]]:
        """Yield the values that expressions made when an object was rendered."""
        original = one.original or one.data
        for path, origin in trail.parts.items():
            after = value_at(original, path)
            if after is not ABSENT:
                step = {**_by(trail, origin.path), "op": "added", "after": as_shown(after, path, hides=hides)}
                yield path, {**step, "expression": origin.text, **self._given(origin, trail)}

    def _written(self, trail: Trail, write: Write, *, hides: bool) -> Iterator[tuple[Path, Step]]:
        for path, before, after in changes(write.before, write.after, write.location):
            shown = {name: as_shown(value, path, hides=hides) for name, value in (("before", before), ("after", after))}
            said = {name: value for name, value in shown.items() if value is not ABSENT}
            origin = _nearest(trail.parts, path[trail.depth :])
            told = {"expression": origin.text, **self._given(origin, trail)} if origin else {}
            yield path, {**_by(trail, trail.path), "op": op_of(before, after), **said, **told}

    def _given(self, origin: Origin, trail: Trail) -> dict[str, Any]:
        """Return the parameters that an expression reads, each with who gave it."""
        given = [one for read in sorted(origin.reads) if (one := self._source(read, trail.instance))]
        return {"values": given} if given else {}

    def _source(self, read: tuple[str, ...], instance: Instance | None) -> Step | None:
        variable, path = read[0], read[1:]
        if variable in _VALUES:
            return _value_source(".".join(read), path, self.composed.values[instance])
        if variable == "build" and self.build:
            return _said_by(".".join(read), "build", self.build.one, ("spec", *path))
        if variable == "workload" and self.build:
            return _said_by(".".join(read), "build", self.build.one, ("spec", "workload", *path))
        if variable == "env":
            binding, environment = self.bound.binding.one, self.bound.environment.one
            if path[:1] in (("name",), ("endpoints",)):
                field = "environment" if path[0] == "name" else "endpoints"
                return _said_by(".".join(read), "environment", binding, ("spec", field))
            return _said_by(".".join(read), "environment", environment, ("spec", "context", *path))
        if variable == "metadata":
            return _said_by(".".join(read), "component", self.bound.component.one, ("metadata", *path))
        return None


def _value_source(name: str, path: Path, values: Effective) -> Step:
    """Return who gave a parameter: the highest layer that says anything of it, else the default of the schema."""
    for end in range(len(path), 0, -1):
        if layer := values.origin(path[:end]):
            return _said_by(name, layer.name, layer.one, (*layer.path, *path))
    return {"name": name, "layer": "default"}


def _said_by(name: str, layer: str, one: ConfigObject, path: Path) -> Step:
    return {"name": name, "layer": layer, "by": str(one.key), "file": one.file, "where": dotted(path)}


def _by(trail: Trail, path: Path) -> Step:
    layer = "addon" if trail.instance else "definition"
    instance = {"instance": str(trail.instance)} if trail.instance else {}
    return {"layer": layer, **instance, "by": str(trail.one.key), "file": trail.one.file, "where": dotted(path)}


def _nearest(parts: Mapping[Path, Origin], path: Path) -> Origin | None:
    """Return the expression that made a value, or one that holds it."""
    return next((parts[path[:end]] for end in range(len(path), -1, -1) if path[:end] in parts), None)


def _moved(path: Path, write: Write) -> Path | None:
    """Return where a value is after a write, None where the write took it away with a list's item."""
    *above, step = write.location
    depth = len(above)
    if write.op == "replace" or not isinstance(step, int) or write.is_appended or list(path[:depth]) != above:
        return path
    index = path[depth] if len(path) > depth else None
    if not isinstance(index, int) or index < step:
        return path
    if write.op == "remove":
        return None if index == step else (*above, index - 1, *path[depth + 1 :])
    return (*above, index + 1, *path[depth + 1 :])
