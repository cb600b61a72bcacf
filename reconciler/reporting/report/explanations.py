"""Explanations of a report: what made each package, as the status file beside it tells (design 10.28).

Everybody may edit a status file, so that nothing in it is relied on, and nothing in it may fail a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote
from typing import Any

from reconciler.krm.digest import digest
from reconciler.planning.open_drafts import read_package_status
from reconciler.reporting.conflicts import recorded_conflict_lines
from reconciler.reporting.package_status import inputs, owner_of, text, upstream
from reconciler.reporting.report.alike import Own
from reconciler.reporting.report.fleet import Explanation, Place, Step, Value
from reconciler.reporting.secrets import mask
from reconciler.reporting.sections import items
from reconciler.reporting.templates import child_lines
from reconciler.reporting.values import one_line, show, show_both

_VALUES = 60
_LISTED = 20
_SHORT = 12
# what a page of a large fleet has room for, counted in values; the rest is a command away
_ROOM = 60_000
# what status files have of trees and digests: of these nothing is told, and they are another's on each cluster
_VOLATILE = re.compile(
    r"^  trees:\n(?:    .*\n)+|(?<=^  inputs:\n)(?:    (?:config|digest): .*\n)+|^ {4,6}hash: .*\n", re.MULTILINE
)


class Explanations:
    """Gathers what made packages; what is the same on many places is kept once."""

    def __init__(self) -> None:
        self._found: dict[str, Explanation] = {}
        self._places: dict[str, list[Place]] = {}
        self._literals: dict[str, str] = {}
        self._files: dict[tuple[str, str], tuple[str, str]] = {}
        self._room = _ROOM

    def add_file(self, place: Place, content: bytes, own: Own, *, ours: bool) -> str:
        """Take a status file in, and return the key of what it tells; `ours`: it is as we wrote it."""
        if not ours:
            return self.add(place, read_package_status(content) or {}, own)
        # most files of a fleet are alike, and reading one costs more than all that is told of it
        literal = _VOLATILE.sub("", content.decode(errors="replace"))
        text = (place.package, own.apart(literal))
        first, key = self._files.get(text, ("", ""))
        if not key:
            key = self.add(place, read_package_status(content) or {}, own)
            self._files[text] = literal, key
            return key
        self._count(key, place, varies=first != literal)
        return key

    def add(self, place: Place, status: Mapping[str, Any], own: Own) -> str:
        """Take a status file in, and return the key of what it tells; "" where it tells nothing."""
        if not status:
            return ""
        explained = _explain(place, status)
        literal = _flat(explained)
        key = digest([place.package, own.apart(literal)])
        if key not in self._found:
            self._literals[key] = literal
            self._found[key] = self._fitted(replace(explained, key=key))
        self._count(key, place, varies=self._literals[key] != literal)
        return key

    def _count(self, key: str, place: Place, *, varies: bool) -> None:
        self._places.setdefault(key, []).append(place)
        known = self._found[key]
        if varies and not known.varies:
            self._found[key] = replace(known, varies=True)

    def _fitted(self, one: Explanation) -> Explanation:
        values = one.values[: max(min(_VALUES, self._room), 0)]
        self._room -= len(values)
        return replace(one, values=values, more=len(one.values) - len(values))

    def all(self) -> tuple[Explanation, ...]:
        """Return every explanation, by package; of those of one package the one that most places share first."""
        found = [replace(one, places=tuple(self._places[key])) for key, one in self._found.items()]
        return tuple(sorted(found, key=lambda one: (one.package, -len(one.places), one.places)))


def _flat(one: Explanation) -> str:
    values = [
        [value.resource, value.pointer, [list(vars(step).values()) for step in value.steps]] for value in one.values
    ]
    return "\n".join([repr(one.facts), repr(values), *one.conflicts, *one.children])


def _explain(place: Place, status: Mapping[str, Any]) -> Explanation:
    values = tuple(_values(status))
    return Explanation(
        "", place.package, (), tuple(_facts(status)), values, 0,
        recorded_conflict_lines(status.get("conflicts"), _LISTED), child_lines(status.get("templates"), _LISTED),
        f"reconciler explain {quote(str(place))}",
    )  # fmt: skip


def _facts(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if owner := owner_of(status):
        yield "owner", owner
    if source := _source(upstream(status, "to")):
        yield "source", source
    for one in items(inputs(status), "objects")[:_LISTED]:
        name = "/".join(filter(None, (text(one, "kind"), text(one, "namespace"), text(one, "name"))))
        yield "made of", one_line(f"{name} ({text(one, 'file')})" if text(one, "file") else name)
    for one in items(status, "injected")[:_LISTED]:
        yield "injected", one_line(f"{text(one, 'point')} from {text(one, 'object')} ({text(one, 'from')})")
    for one in items(status, "appliedOverrides")[:_LISTED]:
        yield "had a say", one_line(f"{text(one, 'layer')} {text(one, 'kind')}/{text(one, 'name')}")


def _source(lock: Mapping[str, Any]) -> str:
    commit = text(lock, "commit")
    parts = (text(lock, "repo"), text(lock, "ref"), f"at {commit[:_SHORT]}" if commit else "")
    return one_line(" ".join(filter(None, parts)))


def _values(status: Mapping[str, Any]) -> Iterator[Value]:
    for one in (*items(status, "layers"), *items(status, "overrides")):
        steps = tuple(map(_step, items(one, "steps")))
        if steps:
            place = " ".join(filter(None, (text(one, "option"), text(one, "pointer"))))
            yield Value(one_line(text(one, "resource") or text(one, "file")), one_line(place), steps)


def _step(step: Mapping[str, Any]) -> Step:
    by = " ".join(filter(None, (text(step, "layer"), text(step, "by"))))
    where = " ".join(filter(None, (text(step, "file"), text(step, "where"))))
    return Step(one_line(by), one_line(where), _words(mask(dict(step))))


def _words(step: Mapping[str, Any]) -> str:
    expression = f" by {show(step['expression'])}" if "expression" in step else ""
    if "before" in step and "after" in step:
        old, new = show_both(step["before"], step["after"])
        return f"{old} → {new}{expression}"
    if "after" in step:
        return f"{show(step['after'])}{expression}"
    return f"removed, was {show(step['before'])}" if "before" in step else f"{show(step.get('op', 'set'))}{expression}"
