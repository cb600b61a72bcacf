"""Explanations of a report: what made each package, as the status file beside it tells (design 10.28).

Everybody may edit a status file, so that nothing in it is relied on, and nothing in it may fail a report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote
from typing import Any

from reconciler.krm.json_text import compute_digest
from reconciler.output.data import mask_secrets, read_mappings
from reconciler.output.report.model import OwnNames, ReportedExplanation, ReportedStep, ReportedValue, ReportTarget
from reconciler.output.status.package_sections import (
    format_children,
    format_recorded_conflicts,
    format_recorded_owner,
    read_inputs,
    read_text,
    read_upstream,
)
from reconciler.output.text import format_both_values, format_value, to_one_line
from reconciler.planning.lifecycle.open_drafts import parse_package_status

_VALUES = 60
_LISTED = 20
_SHORT = 12
# what a page of a large fleet has room for, counted in values; the rest is a command away
_ROOM = 60_000
# what status files have of trees and digests: of these nothing is told, and they are another's on each cluster
_VOLATILE = re.compile(
    r"^  trees:\n(?:    .*\n)+|(?<=^  inputs:\n)(?:    (?:config|digest): .*\n)+|^ {4,6}hash: .*\n", re.MULTILINE
)


class ExplanationGroups:
    """Gathers what made packages; what is the same on many places is kept once."""

    def __init__(self) -> None:
        self._found: dict[str, ReportedExplanation] = {}
        self._places: dict[str, list[ReportTarget]] = {}
        self._literals: dict[str, str] = {}
        self._files: dict[tuple[str, str], tuple[str, str]] = {}
        self._room = _ROOM

    def add_file(self, place: ReportTarget, content: bytes, own_names: OwnNames, *, is_unmodified: bool) -> str:
        """Take a status file in, and return the key of what it tells; `ours`: it is as we wrote it."""
        if not is_unmodified:
            return self.add(place, parse_package_status(content) or {}, own_names)
        # most files of a fleet are alike, and reading one costs more than all that is told of it
        literal = _VOLATILE.sub("", content.decode(errors="replace"))
        text = (place.package, own_names.mask_names(literal))
        first, key = self._files.get(text, ("", ""))
        if not key:
            key = self.add(place, parse_package_status(content) or {}, own_names)
            self._files[text] = literal, key
            return key
        self._count(key, place, varies=first != literal)
        return key

    def add(self, place: ReportTarget, status: Mapping[str, Any], own_names: OwnNames) -> str:
        """Take a status file in, and return the key of what it tells; "" where it tells nothing."""
        if not status:
            return ""
        explained = _explain(place, status)
        literal = _flat(explained)
        key = compute_digest([place.package, own_names.mask_names(literal)])
        if key not in self._found:
            self._literals[key] = literal
            self._found[key] = self._fitted(replace(explained, key=key))
        self._count(key, place, varies=self._literals[key] != literal)
        return key

    def _count(self, key: str, place: ReportTarget, *, varies: bool) -> None:
        self._places.setdefault(key, []).append(place)
        known = self._found[key]
        if varies and not known.varies:
            self._found[key] = replace(known, varies=True)

    def _fitted(self, one: ReportedExplanation) -> ReportedExplanation:
        values = one.values[: max(min(_VALUES, self._room), 0)]
        self._room -= len(values)
        return replace(one, values=values, more=len(one.values) - len(values))

    def list_explanations(self) -> tuple[ReportedExplanation, ...]:
        """Return every explanation, by package; of those of one package the one that most places share first."""
        found = [replace(one, places=tuple(self._places[key])) for key, one in self._found.items()]
        return tuple(sorted(found, key=lambda one: (one.package, -len(one.places), one.places)))


def _flat(one: ReportedExplanation) -> str:
    values = [
        [value.resource, value.pointer, [list(vars(step).values()) for step in value.steps]] for value in one.values
    ]
    return "\n".join([repr(one.facts), repr(values), *one.conflicts, *one.children])


def _explain(place: ReportTarget, status: Mapping[str, Any]) -> ReportedExplanation:
    values = tuple(_values(status))
    return ReportedExplanation(
        "", place.package, (), tuple(_facts(status)), values, 0,
        format_recorded_conflicts(status.get("conflicts"), _LISTED), format_children(status.get("templates"), _LISTED),
        f"reconciler explain {quote(str(place))}",
    )  # fmt: skip


def _facts(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if owner := format_recorded_owner(status):
        yield "owner", owner
    if source := _source(read_upstream(status, "to")):
        yield "source", source
    for one in read_mappings(read_inputs(status), "objects")[:_LISTED]:
        name = "/".join(filter(None, (read_text(one, "kind"), read_text(one, "namespace"), read_text(one, "name"))))
        yield "made of", to_one_line(f"{name} ({read_text(one, 'file')})" if read_text(one, "file") else name)
    for one in read_mappings(status, "injected")[:_LISTED]:
        yield (
            "injected",
            to_one_line(f"{read_text(one, 'point')} from {read_text(one, 'object')} ({read_text(one, 'from')})"),
        )
    for one in read_mappings(status, "appliedOverrides")[:_LISTED]:
        yield "had a say", to_one_line(f"{read_text(one, 'layer')} {read_text(one, 'kind')}/{read_text(one, 'name')}")


def _source(lock: Mapping[str, Any]) -> str:
    commit = read_text(lock, "commit")
    parts = (read_text(lock, "repo"), read_text(lock, "ref"), f"at {commit[:_SHORT]}" if commit else "")
    return to_one_line(" ".join(filter(None, parts)))


def _values(status: Mapping[str, Any]) -> Iterator[ReportedValue]:
    for one in (*read_mappings(status, "layers"), *read_mappings(status, "overrides")):
        steps = tuple(map(_step, read_mappings(one, "steps")))
        if steps:
            place = " ".join(filter(None, (read_text(one, "option"), read_text(one, "pointer"))))
            yield ReportedValue(
                to_one_line(read_text(one, "resource") or read_text(one, "file")), to_one_line(place), steps
            )


def _step(step: Mapping[str, Any]) -> ReportedStep:
    by = " ".join(filter(None, (read_text(step, "layer"), read_text(step, "by"))))
    where = " ".join(filter(None, (read_text(step, "file"), read_text(step, "where"))))
    return ReportedStep(to_one_line(by), to_one_line(where), _words(mask_secrets(dict(step))))


def _words(step: Mapping[str, Any]) -> str:
    expression = f" by {format_value(step['expression'])}" if "expression" in step else ""
    if "before" in step and "after" in step:
        old, new = format_both_values(step["before"], step["after"])
        return f"{old} → {new}{expression}"
    if "after" in step:
        return f"{format_value(step['after'])}{expression}"
    return (
        f"removed, was {format_value(step['before'])}"
        if "before" in step
        else f"{format_value(step.get('op', 'set'))}{expression}"
    )
