"""One resource explained: each of its values with its steps, whatever is not there any more included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.krm.pointer import format_pointer, parse_pointer
from reconciler.krm.secrets import MASK
from reconciler.krm.yaml import Path
from reconciler.planning.templates import TEMPLATE
from reconciler.planning.trail import Change, Track
from reconciler.reporting.explain_steps import Teller
from reconciler.reporting.explanation import SOURCES, Step, Value
from reconciler.rules.edits import value_at
from reconciler.rules.presets.model import GROUP
from reconciler.rules.provenance import op_of
from reconciler.rules.variant import Variant

Entry = Mapping[str, Any]
"""A value with its steps, as a room tells of it and as status files have it (design 10.28)."""
# what stands there may be hidden, and its place alone does not tell
_OPTIONS: Path = ("spec", "optionValues")


def room_entries(variant: Variant) -> list[dict[str, Any]]:
    """Return what the room of a generated package tells of its values."""
    return variant.provenance.layers() if variant.provenance else []


def recorded_value(entry: Entry, teller: Teller) -> Value:
    """Return a value as a room tells of it."""
    steps = teller.recorded(entry["steps"])
    return Value(entry["file"], entry["resource"], entry["pointer"], steps, entry.get("option", ""))


@dataclass(frozen=True)
class UnmadePage:
    """What is to be told of a resource that was not made."""

    resource: str
    values: tuple[Value, ...]


def unmade_pages(teller: Teller) -> tuple[UnmadePage, ...]:
    """Return a page for each resource that a room tells of, though none of them was made."""
    values = [recorded_value(entry, teller) for entry in room_entries(teller.variant)]
    names = dict.fromkeys(one.resource for one in values)
    return tuple(UnmadePage(name, tuple(one for one in values if one.resource == name)) for name in names)


class Page:
    """All that is to be told of one resource on its way; `resource` is its `Kind/namespace/name`."""

    def __init__(self, track: Track, teller: Teller) -> None:
        self._track = track
        self._teller = teller
        self._file = track.place[0]
        self.resource = name_of(track)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Each value in the order of the resource, then what is gone, and what stands within a text."""
        return tuple(self._values())

    def _values(self) -> Iterator[Value]:
        paths = list(_leaves(self._track.last, (), frozenset(self._by_room)))
        yield from (self._value(path, self._track.changes(path)) for path in paths)
        yield from self._removed()
        yield from (recorded_value(entry, self._teller) for path, entry in self._gone_entries(paths))
        yield from (recorded_value(entry, self._teller) for entry in self._within)

    def _value(self, path: Path, changes: Sequence[Change]) -> Value:
        entry = self._entry(changes[0].path) if changes and changes[0].state.cause.layer == "source" else None
        option = entry.get("option", "") if entry else ""
        steps = tuple(self._steps(path, changes, entry))
        if option:
            steps = tuple(_of_option(one) for one in steps)
        elif self._is_hidden(path):
            steps = tuple(_hidden(one) for one in steps)
        is_whole = entry is not None and not entry["pointer"]
        is_plain = len(steps) == 1 and (is_whole or steps[0].layer in SOURCES)
        last = changes[-1] if changes else None
        lost_from = last.earlier.data if last and last.earlier and last.after is ABSENT else ABSENT
        return Value(self._file, self.resource, format_pointer(path), _masked(steps), option, is_plain, lost_from)

    def _steps(self, path: Path, changes: Sequence[Change], entry: Entry | None) -> Iterator[Step]:
        template = self._template_steps(path)
        templated = any(one.state.cause.layer == TEMPLATE for one in changes)
        # what the parent has is beneath what is the child's own
        beneath = [one for one in template if one.by != self.resource] if not templated else []
        yield from beneath
        if beneath and changes:
            changes = [replace(changes[0], before=beneath[-1].after), *changes[1:]]
        for one in changes:
            if one.state.cause.layer == "source" and entry:
                yield from self._by_entry(one, entry)
            elif one.state.cause.layer == TEMPLATE and template:
                yield from template
            elif not self._is_within(one, path):
                yield self._teller.step(one)

    def _template_steps(self, path: Path) -> list[Step]:
        """Return what is told of the templates that a value comes from: of it, and of all that it is in."""
        found: list[Step] = []
        for end in range(len(path) + 1):
            entry = self._by_template.get(path[:end])
            for one in self._teller.recorded(entry["steps"]) if entry else ():
                before, after = (_part(value, path[end:]) for value in (one.before, one.after))
                if not (before is ABSENT and after is ABSENT):
                    step = replace(one, op=op_of(before, after), before=before, after=after)
                    found.append(self._teller.inherited(step, path) if one.by != self.resource else step)
        return found

    def _by_entry(self, change: Change, entry: Entry) -> Iterator[Step]:
        """Yield the steps that a room tells of the value, or of what it is in."""
        at = path_of(entry["pointer"], change.state.data)
        below = change.path[len(at) :]
        for one in self._teller.recorded(entry["steps"]):
            if not below or entry.get("option"):
                yield one
                continue
            before, after = (_part(value, below) for value in (one.before, one.after))
            if not at:
                after = self._teller.step(change).after
            if not (before is ABSENT and after is ABSENT):
                yield replace(self._teller.within(one, below), op=op_of(before, after), before=before, after=after)

    def _entry(self, path: Path) -> Entry | None:
        """Return what a room tells of a value, or of the nearest that it is in."""
        return next(
            (self._by_room[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._by_room), None
        )

    @cached_property
    def _by_room(self) -> dict[Path, Entry]:
        data = self._track.states[0].data
        return {path_of(one["pointer"], data): one for one in self._mine(room_entries(self._teller.variant))}

    @cached_property
    def _by_template(self) -> dict[Path, Entry]:
        templates = self._teller.rendered.templates
        entries = self._mine(templates.as_data() if templates else ())
        labelled = ({**one, "steps": [{"layer": TEMPLATE, **step} for step in one["steps"]]} for one in entries)
        return {path_of(one["pointer"], self._track.last): one for one in labelled}

    @cached_property
    def _within(self) -> list[Entry]:
        """What policies changed within texts."""
        entries = self._mine(self._teller.rendered.overrides)
        return [
            {**one, "steps": [{"layer": "policy", **step} for step in one["steps"]]}
            for one in entries
            if "!/" in one["pointer"]
        ]

    def _mine(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        return (one for one in entries if (one["file"], one["resource"]) == (self._file, self.resource))

    def _is_within(self, change: Change, path: Path) -> bool:
        """Tell whether a policy changed something within a text, which is told by itself."""
        pointer, cause = format_pointer(path), change.state.cause
        return cause.layer == "policy" and any(
            one["pointer"].startswith(f"{pointer}!/")
            and any((each["by"], each["where"]) == (cause.by, cause.where) for each in one["steps"])
            for one in self._within
        )

    def _removed(self) -> Iterator[Value]:
        if self._track.data is ABSENT:
            # it went as a whole, and each of its values says so
            return
        for changes in self._track.removals():
            path = changes[-1].path
            if not any(at[: len(path)] == path for at in self._by_template):
                yield self._value(path, changes)

    def _gone_entries(self, paths: Sequence[Path]) -> Iterator[tuple[Path, Entry]]:
        """Yield what is told of values that are not there in the end, and that no step of ours took away."""
        known = {path[:end] for path in paths for end in range(len(path) + 1)}
        for path, entry in (*self._by_room.items(), *self._by_template.items()):
            if path and path not in known:
                yield path, entry

    def _is_hidden(self, path: Path) -> bool:
        group = split_api_version(str(value_at(self._track.last, ("apiVersion",))))[0]
        return group == GROUP and path[: len(_OPTIONS)] == _OPTIONS


def name_of(track: Track) -> str:
    """Return what a resource is called in the end, or was last, as `Kind/namespace/name`."""
    data = track.last
    group = split_api_version(_text(data, "apiVersion"))[0]
    namespace, name = _text(data, "metadata", "namespace"), _text(data, "metadata", "name")
    return str(ObjectKey(group, _text(data, "kind"), namespace, name))


def _text(data: Any, *path: str) -> str:
    value = value_at(data, path)
    return value if isinstance(value, str) else ""


def _leaves(data: Any, path: Path, whole: frozenset[Path]) -> Iterator[Path]:
    """Yield the paths of all values with nothing inside of them, and of those that are told as a whole."""
    inside = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    if not inside or (path and path in whole):
        yield path
        return
    for key, value in inside:
        yield from _leaves(value, (*path, key), whole)


def path_of(pointer: str, data: Any) -> Path:
    """Return a pointer as a path, in which items of lists have numbers."""
    found: list[str | int] = []
    for segment in parse_pointer(pointer.partition("!/")[0]):
        step = int(segment) if isinstance(data, list) and segment.isdecimal() else segment
        found.append(step)
        data = value_at(data, (step,))
    return tuple(found)


def _part(value: Any, path: Path) -> Any:
    return value if value == MASK else value_at(value, path)


def _of_option(step: Step) -> Step:
    """Return a step of an option with its value in the place of its entry."""
    return replace(step, before=_option_value(step.before), after=_option_value(step.after))


def _option_value(entry: Any) -> Any:
    if not isinstance(entry, dict) or "name" not in entry:
        return entry
    left = {name: value for name, value in entry.items() if name != "name"}
    return left["value"] if [*left] == ["value"] else left


def _hidden(step: Step) -> Step:
    return replace(step, before=_star(step.before), after=_star(step.after))


def _masked(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps; where one of them hides its value, all do."""
    if any(value is MASK or value == MASK for one in steps for value in (one.before, one.after)):
        return tuple(map(_hidden, steps))
    return steps


def _star(value: Any) -> Any:
    return value if value is ABSENT else MASK
