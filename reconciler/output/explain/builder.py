"""One resource explained: each of its values with its steps, whatever is not there any more included.

Explaining a package: the steps that led to each value, first to last, whoever made them.

What a value's steps are is data here; their words are in `explain_words`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from posixpath import basename, dirname
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.plugin_presets.model import GROUP, PLUGIN
from reconciler.controllers.plugin_presets.option_layers import LAYERS, OptionLayer
from reconciler.controllers.provenance import get_operation
from reconciler.controllers.results import Variant
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.output.explain.model import (
    SOURCES,
    ExplainedPackage,
    ExplainedValue,
    PackageExplanation,
    ValueNotFoundError,
    ValueStep,
)
from reconciler.output.explain.steps import StepBuilder
from reconciler.output.status.package_sections import build_children_data
from reconciler.packages.kptfile import KPTFILE
from reconciler.planning.attribution.provenance_trace import ResourceTrace, TracedChange, trace_resources
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.render.templates import TEMPLATE_DEPENDENCY
from reconciler.redaction import MASK

ProvenanceEntry = Mapping[str, Any]
"""A value with its steps, as a room tells of it and as status files have it (design 10.28)."""
# what stands there may be hidden, and its place alone does not tell
_OPTIONS: DataPath = ("spec", "optionValues")


def get_provenance_entries(variant: Variant) -> list[dict[str, Any]]:
    """Return what the room of a generated package tells of its values."""
    return variant.provenance.list_layers() if variant.provenance else []


def build_recorded_value(entry: ProvenanceEntry, builder: StepBuilder) -> ExplainedValue:
    """Return a value as a room tells of it."""
    steps = builder.build_recorded_steps(entry["steps"])
    return ExplainedValue(entry["file"], entry["resource"], entry["pointer"], steps, entry.get("option", ""))


@dataclass(frozen=True)
class UnrenderedResource:
    """What is to be told of a resource that was not made."""

    resource: str
    values: tuple[ExplainedValue, ...]


def build_unrendered_resources(builder: StepBuilder) -> tuple[UnrenderedResource, ...]:
    """Return a page for each resource that a room tells of, though none of them was made."""
    values = [build_recorded_value(entry, builder) for entry in get_provenance_entries(builder.variant)]
    names = dict.fromkeys(one.resource for one in values)
    return tuple(UnrenderedResource(name, tuple(one for one in values if one.resource == name)) for name in names)


class ResourceExplanation:
    """All that is to be told of one resource on its way; `resource` is its `Kind/namespace/name`."""

    def __init__(self, track: ResourceTrace, teller: StepBuilder) -> None:
        self._track = track
        self._teller = teller
        self._file = track.location[0]
        self.resource = format_resource_name(track)

    @cached_property
    def values(self) -> tuple[ExplainedValue, ...]:
        """Each value in the order of the resource, then what is gone, and what stands within a text."""
        return tuple(self._values())

    def _values(self) -> Iterator[ExplainedValue]:
        paths = list(_leaves(self._track.last_data, (), frozenset(self._by_room)))
        yield from (self._value(path, self._track.list_changes(path)) for path in paths)
        yield from self._removed()
        yield from (build_recorded_value(entry, self._teller) for path, entry in self._gone_entries(paths))
        yield from (build_recorded_value(entry, self._teller) for entry in self._within)

    def _value(self, path: DataPath, changes: Sequence[TracedChange]) -> ExplainedValue:
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
        lost_from = last.previous_state.data if last and last.previous_state and last.after is ABSENT else ABSENT
        return ExplainedValue(
            self._file, self.resource, format_pointer(path), _masked(steps), option, is_plain, lost_from
        )

    def _steps(
        self, path: DataPath, changes: Sequence[TracedChange], entry: ProvenanceEntry | None
    ) -> Iterator[ValueStep]:
        template = self._template_steps(path)
        templated = any(one.state.cause.layer == TEMPLATE_DEPENDENCY for one in changes)
        # what the parent has is beneath what is the child's own
        beneath = [one for one in template if one.by != self.resource] if not templated else []
        yield from beneath
        if beneath and changes:
            changes = [replace(changes[0], before=beneath[-1].after), *changes[1:]]
        for one in changes:
            if one.state.cause.layer == "source" and entry:
                yield from self._by_entry(one, entry)
            elif one.state.cause.layer == TEMPLATE_DEPENDENCY and template:
                yield from template
            elif not self._is_within(one, path):
                yield self._teller.build_step(one)

    def _template_steps(self, path: DataPath) -> list[ValueStep]:
        """Return what is told of the templates that a value comes from: of it, and of all that it is in."""
        found: list[ValueStep] = []
        for end in range(len(path) + 1):
            entry = self._by_template.get(path[:end])
            for one in self._teller.build_recorded_steps(entry["steps"]) if entry else ():
                before, after = (_part(value, path[end:]) for value in (one.before, one.after))
                if not (before is ABSENT and after is ABSENT):
                    step = replace(one, op=get_operation(before, after), before=before, after=after)
                    found.append(self._teller.build_inherited_step(step, path) if one.by != self.resource else step)
        return found

    def _by_entry(self, change: TracedChange, entry: ProvenanceEntry) -> Iterator[ValueStep]:
        """Yield the steps that a room tells of the value, or of what it is in."""
        at = parse_data_path(entry["pointer"], change.state.data)
        below = change.path[len(at) :]
        for one in self._teller.build_recorded_steps(entry["steps"]):
            if not below or entry.get("option"):
                yield one
                continue
            before, after = (_part(value, below) for value in (one.before, one.after))
            if not at:
                after = self._teller.build_step(change).after
            if not (before is ABSENT and after is ABSENT):
                yield replace(
                    self._teller.narrow_step(one, below), op=get_operation(before, after), before=before, after=after
                )

    def _entry(self, path: DataPath) -> ProvenanceEntry | None:
        """Return what a room tells of a value, or of the nearest that it is in."""
        return next(
            (self._by_room[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._by_room), None
        )

    @cached_property
    def _by_room(self) -> dict[DataPath, ProvenanceEntry]:
        data = self._track.states[0].data
        return {
            parse_data_path(one["pointer"], data): one
            for one in self._mine(get_provenance_entries(self._teller.variant))
        }

    @cached_property
    def _by_template(self) -> dict[DataPath, ProvenanceEntry]:
        templates = self._teller.rendered.templates
        entries = self._mine(templates.as_data() if templates else ())
        labelled = (
            {**one, "steps": [{"layer": TEMPLATE_DEPENDENCY, **step} for step in one["steps"]]} for one in entries
        )
        return {parse_data_path(one["pointer"], self._track.last_data): one for one in labelled}

    @cached_property
    def _within(self) -> list[ProvenanceEntry]:
        """What policies changed within texts."""
        entries = self._mine(self._teller.rendered.overrides)
        return [
            {**one, "steps": [{"layer": "policy", **step} for step in one["steps"]]}
            for one in entries
            if "!/" in one["pointer"]
        ]

    def _mine(self, entries: Iterable[ProvenanceEntry]) -> Iterator[ProvenanceEntry]:
        return (one for one in entries if (one["file"], one["resource"]) == (self._file, self.resource))

    def _is_within(self, change: TracedChange, path: DataPath) -> bool:
        """Tell whether a policy changed something within a text, which is told by itself."""
        pointer, cause = format_pointer(path), change.state.cause
        return cause.layer == "policy" and any(
            one["pointer"].startswith(f"{pointer}!/")
            and any((each["by"], each["where"]) == (cause.source_name, cause.policy_item) for each in one["steps"])
            for one in self._within
        )

    def _removed(self) -> Iterator[ExplainedValue]:
        if self._track.data is ABSENT:
            # it went as a whole, and each of its values says so
            return
        for changes in self._track.list_removals():
            path = changes[-1].path
            if not any(at[: len(path)] == path for at in self._by_template):
                yield self._value(path, changes)

    def _gone_entries(self, paths: Sequence[DataPath]) -> Iterator[tuple[DataPath, ProvenanceEntry]]:
        """Yield what is told of values that are not there in the end, and that no step of ours took away."""
        known = {path[:end] for path in paths for end in range(len(path) + 1)}
        for path, entry in (*self._by_room.items(), *self._by_template.items()):
            if path and path not in known:
                yield path, entry

    def _is_hidden(self, path: DataPath) -> bool:
        group = split_api_version(str(get_value(self._track.last_data, ("apiVersion",))))[0]
        return group == GROUP and path[: len(_OPTIONS)] == _OPTIONS


def format_resource_name(track: ResourceTrace) -> str:
    """Return what a resource is called in the end, or was last, as `Kind/namespace/name`."""
    data = track.last_data
    group = split_api_version(_text(data, "apiVersion"))[0]
    namespace, name = _text(data, "metadata", "namespace"), _text(data, "metadata", "name")
    return str(ObjectKey(group, _text(data, "kind"), namespace, name))


def _text(data: Any, *path: str) -> str:
    value = get_value(data, path)
    return value if isinstance(value, str) else ""


def _leaves(data: Any, path: DataPath, whole: frozenset[DataPath]) -> Iterator[DataPath]:
    """Yield the paths of all values with nothing inside of them, and of those that are told as a whole."""
    inside = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    if not inside or (path and path in whole):
        yield path
        return
    for key, value in inside:
        yield from _leaves(value, (*path, key), whole)


def parse_data_path(pointer: str, data: Any) -> DataPath:
    """Return a pointer as a path, in which items of lists have numbers."""
    found: list[str | int] = []
    for segment in parse_pointer(pointer.partition("!/")[0]):
        step = int(segment) if isinstance(data, list) and segment.isdecimal() else segment
        found.append(step)
        data = get_value(data, (step,))
    return tuple(found)


def _part(value: Any, path: DataPath) -> Any:
    return value if value == MASK else get_value(value, path)


def _of_option(step: ValueStep) -> ValueStep:
    """Return a step of an option with its value in the place of its entry."""
    return replace(step, before=_option_value(step.before), after=_option_value(step.after))


def _option_value(entry: Any) -> Any:
    if not isinstance(entry, dict) or "name" not in entry:
        return entry
    left = {name: value for name, value in entry.items() if name != "name"}
    return left["value"] if [*left] == ["value"] else left


def _hidden(step: ValueStep) -> ValueStep:
    return replace(step, before=_star(step.before), after=_star(step.after))


def _masked(steps: tuple[ValueStep, ...]) -> tuple[ValueStep, ...]:
    """Return the steps; where one of them hides its value, all do."""
    if any(value is MASK or value == MASK for one in steps for value in (one.before, one.after)):
        return tuple(map(_hidden, steps))
    return steps


def _star(value: Any) -> Any:
    return value if value is ABSENT else MASK


_NAMED = 20


def explain(explained: ExplainedPackage, resource: str = "", location: str = "") -> PackageExplanation:
    """Return what led to the values of a package, of one resource, `Kind/name` or `Kind/namespace/name`, or of a place.

    Of a whole package, what is as its source has it is left out. The place is a JSON pointer, or the name of an option
    of a Plugin. Raises NothingToExplainError.
    """
    book, layers = _Book(explained), _ordering(explained)
    if not resource or not book.pages:
        told = tuple(one for page in book.pages for one in page.values if not one.is_plain)
        return PackageExplanation(explained, told, layers, book.children)
    pages = book.named(resource)
    values = tuple(one for page in pages for one in page.values)
    if not location:
        names = {one.resource for one in pages}
        children = tuple(one for one in book.children if one["resource"] in names)
        return PackageExplanation(explained, values, layers, children, resource)
    found = _find_values_at(values, _wanted(values, location, explained))
    if not found:
        raise ValueNotFoundError(_nothing_at(explained, values, resource, location))
    return PackageExplanation(explained, found, layers, resource=resource)


def _wanted(values: Sequence[ExplainedValue], place: str, explained: ExplainedPackage) -> str:
    """Return the pointer of a place, which may be the name of an option."""
    pointer = next((one.pointer for one in values if one.option == place), place)
    try:
        parse_pointer(pointer.partition("!")[0] if pointer.startswith("/") or not _ordering(explained) else "")
    except PointerError as error:
        raise ValueNotFoundError(f"{explained.target}: {error}") from error
    return pointer


def _find_values_at(values: Iterable[ExplainedValue], pointer: str) -> tuple[ExplainedValue, ...]:
    """Return the values at a pointer and below it; where there are none, the one that it is in."""
    known = tuple(values)
    found = tuple(one for one in known if _is_at(one.pointer, pointer))
    return found or tuple(one for one in known if _is_at(pointer, one.pointer) and one.has_nested_values)[-1:]


def _is_at(one: str, other: str) -> bool:
    """Tell whether a pointer is another or leads below it."""
    return one == other or one.startswith((f"{other}/", f"{other}!/"))


def _nothing_at(explained: ExplainedPackage, values: Sequence[ExplainedValue], resource: str, place: str) -> str:
    options = [one.option for one in values if one.option]
    pointers = [one.pointer for one in values]
    known = pointers if place.startswith("/") or not options else options
    return f"{explained.target}: {resource} has nothing at {place}; it has {format_closest_names(place, known)}"


def _ordering(explained: ExplainedPackage) -> tuple[OptionLayer, ...]:
    owner = explained.owner
    return LAYERS if owner and (owner.key.group, owner.key.kind) == (GROUP, PLUGIN) else ()


def format_closest_names(name: str, names: Iterable[str]) -> str:
    """Return the names that there are, those that look like the wanted one first; "none" without any."""
    ranked = sorted(set(names), key=lambda one: (-SequenceMatcher(None, name, one).ratio(), one))
    more = f" and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
    return f"{', '.join(ranked[:_NAMED])}{more}" if ranked else "none"


class _Book:
    """What there is to tell of a package: a page for each of its resources, those that are gone included."""

    def __init__(self, explained: ExplainedPackage) -> None:
        self._explained = explained

    @cached_property
    def pages(self) -> tuple[ResourceExplanation | UnrenderedResource, ...]:
        """The pages, in the order of the package's files."""
        one = self._explained
        if one.variant is None:
            return ()
        if one.rendered is None:
            # it was not made: what its room says of the values that it was to have is all there is
            return build_unrendered_resources(StepBuilder(one, one.variant, PackageRender(FileTree()), {}))
        tracks = trace_resources(one.rendered)
        kptfiles = {dirname(track.location[0]): track for track in tracks if basename(track.location[0]) == KPTFILE}
        teller = StepBuilder(
            one, one.variant, one.rendered, kptfiles, {format_resource_name(track): track for track in tracks}
        )
        return tuple(ResourceExplanation(track, teller) for track in tracks)

    @cached_property
    def children(self) -> tuple[Mapping[str, Any], ...]:
        """The children whose templates were merged, or would be."""
        templates = self._explained.rendered.templates if self._explained.rendered else None
        return tuple(build_children_data(templates.effects if templates else ()))

    def named(self, asked: str) -> tuple[ResourceExplanation | UnrenderedResource, ...]:
        """Return the pages of the resources that are asked for, as `Kind/name` or `Kind/namespace/name`."""
        found = tuple(one for one in self.pages if asked in (one.resource, _without_namespace(one.resource)))
        if not found:
            listed = format_closest_names(asked, (one.resource for one in self.pages))
            raise ValueNotFoundError(f"{self._explained.target} has no resource {asked}; it has {listed}")
        return found


def _without_namespace(resource: str) -> str:
    kind, _, name = resource.split("/", 2)
    return f"{kind}/{name}"
