"""Provenance: which template, addon, parameter and override made each value of a component (design 10.28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import MASK, is_secret, is_secret_value
from reconciler.krm.yaml import Path
from reconciler.rules.composition.history import History, changes_of
from reconciler.rules.composition.patching.apply import Write
from reconciler.rules.composition.rendered import Rendered, Trail
from reconciler.rules.composition.sources import Sources
from reconciler.rules.composition.text import Origin
from reconciler.rules.edits import value_at
from reconciler.rules.fields import dotted
from reconciler.rules.provenance import as_both_shown, as_shown, op_of
from reconciler.snapshot.catalog import ConfigObject

Step = dict[str, Any]


@dataclass(frozen=True, eq=False)
class ComponentProvenance:
    """Where every value of a component in an environment comes from; worked out when somebody wants to read it.

    `made_of` are the objects that it was rendered of, each with the hash of what it says.
    """

    sources: Sources
    files: Mapping[str, Rendered]
    made_of: Mapping[ConfigObject, str]

    def layers(self) -> list[dict[str, Any]]:
        """Return `layers` of a status file: the template of each object, and what led to each value that is not its."""
        return [
            {"file": name, "resource": str(one.key), "pointer": pointer, "steps": steps}
            for name, one in sorted(self.files.items())
            for pointer, steps in sorted((format_pointer(path), steps) for path, steps in self._history(one).all())
        ]

    def applied(self) -> list[dict[str, str]]:
        """Return the addons that worked on it, in their order (openchoreo 14.3)."""
        return [{"layer": "addon", "kind": "Addon", "name": str(one)} for one in self.sources.composed.worked]

    def objects(self) -> list[dict[str, str]]:
        """Return what it was made of."""
        return [
            {"kind": one.key.kind, "namespace": one.key.namespace, "name": one.key.name, "file": one.file, "hash": said}
            for one, said in sorted(self.made_of.items(), key=lambda each: each[0].key)
        ]

    def _history(self, one: Rendered) -> History:
        """Return the steps by the place that their value has in the end."""
        found, hides = History(), is_secret(one.data)
        for trail in one.trails:
            if trail.write is None:
                found.steps.append({**_by(trail, trail.path), "op": "added", **self._repeated(trail, hides=hides)})
                self._note_made(trail, one, found)
            else:
                found.move(trail.write)
                self._note_written(trail, trail.write, one.data, found)
        return found

    def _repeated(self, trail: Trail, *, hides: bool) -> Step:
        """Return the loop that an object was made in, if it was."""
        origin = trail.loop.origin if trail.loop else None
        return {"forEach": MASK if hides else origin.text, **self._given(origin, trail)} if origin else {}

    def _note_made(self, trail: Trail, one: Rendered, found: History) -> None:
        """Note the values that expressions made when an object was rendered."""
        data = one.original or one.data
        for path, origin in trail.parts.items():
            after = value_at(data, path)
            if after is not ABSENT:
                found.at(path).steps.append(self._made(trail, path, after, origin, hides=is_secret_value(data, path)))

    def _made(self, trail: Trail, path: Path, after: Any, origin: Origin, *, hides: bool) -> Step:
        where = trail.path if trail.write else origin.path
        shown = as_shown(after, hides=hides)
        return {**_by(trail, where), "op": "added", "after": shown, **self._told(origin, trail, shown)}

    def _note_written(self, trail: Trail, write: Write, data: Any, found: History) -> None:
        for path, before, after in changes_of(write):
            place, origin = found.at(path), _origin(trail.parts, write, path)
            was, will = as_both_shown(before, after, path, (data,))
            said = {name: value for name, value in (("before", was), ("after", will)) if value is not ABSENT}
            told = self._told(origin, trail, will) if origin else {}
            place.forget_items()
            place.steps.append({**_by(trail, trail.path), "op": op_of(before, after), **said, **told})
            for inner, value, made in _inside(after, path, trail.parts, write) if not origin else ():
                found.at(inner).steps.append(self._made(trail, inner, value, made, hides=is_secret_value(data, inner)))

    def _told(self, origin: Origin, trail: Trail, shown: Any) -> Step:
        """Return the expression that made a value, unless that is hidden: its text may hold what is."""
        expression = MASK if shown == MASK else origin.text
        return {"expression": expression, **self._given(origin, trail)}

    def _given(self, origin: Origin, trail: Trail) -> Step:
        """Return the parameters that an expression reads, each with who gave it; for an item, those of its list."""
        reads, loop = set(origin.reads), trail.loop.origin if trail.loop else None
        if loop and trail.loop and any(read[0] == trail.loop.variable for read in reads):
            reads |= loop.reads
        given = self.sources.of(reads, trail.instance)
        return {"values": given} if given else {}


def _by(trail: Trail, path: Path) -> Step:
    layer = "addon" if trail.instance else "definition"
    instance = {"instance": str(trail.instance)} if trail.instance else {}
    return {"layer": layer, **instance, "by": str(trail.one.key), "file": trail.one.file, "where": dotted(path)}


def _in_value(write: Write, path: Path) -> Path | None:
    """Return where in an operation's value that is what a write put at a path; None where it is only a parent."""
    below, inside = path[len(write.location) :], write.inside
    return (*write.part, *below[len(inside) :]) if below[: len(inside)] == inside else None


def _origin(parts: Mapping[Path, Origin], write: Write, path: Path) -> Origin | None:
    """Return the expression that made the value at a path, or one that holds it."""
    wanted = _in_value(write, path)
    if wanted is None or not parts:
        return None
    return next((parts[wanted[:end]] for end in range(len(wanted), -1, -1) if wanted[:end] in parts), None)


def _inside(value: Any, path: Path, parts: Mapping[Path, Origin], write: Write) -> Iterator[tuple[Path, Any, Origin]]:
    """Yield what expressions made inside of a value that was written at a path."""
    if not parts:
        return
    below = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for step, one in below:
        at = (*path, step)
        place = _in_value(write, at)
        if place is not None and place in parts:
            yield at, one, parts[place]
        else:
            yield from _inside(one, at, parts, write)
