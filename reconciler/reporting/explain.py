"""Explaining a package: the steps that led to each value that rules set, first to last, and where the rest is from.

What a value's steps are is data here; their words are in `explain_words`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.secrets import MASK
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.outcome import Rendered
from reconciler.planning.templates import TEMPLATE
from reconciler.reporting.field_lines import FieldLines
from reconciler.reporting.origins import Kind, Origins, Pointer, value_of
from reconciler.reporting.secrets import mask
from reconciler.reporting.templates import children_data
from reconciler.rules.presets.layers import LAYERS, Layer
from reconciler.rules.presets.model import GROUP, PLUGIN
from reconciler.rules.variant import Owner, Variant
from reconciler.snapshot.catalog import ConfigObject

_NAMED = 20
# what stands there may be hidden, and its place alone does not tell
_OPTIONS: Pointer = ("spec", "optionValues")


class NothingToExplainError(Exception):
    """Somebody names a resource or a place in it that is not there; the text says which there are."""


@dataclass(frozen=True)
class Explained:
    """What is known of one package at `place`, as `repository/package`, by one config: `objects` are that config's.

    `rendered` is None where it was not made, or must not be used. `trouble` says why it waits or is withheld,
    `findings` are the errors of that.
    """

    place: str
    config: str
    objects: Mapping[ObjectKey, ConfigObject]
    owner: Owner | None = None
    variant: Variant | None = None
    rendered: Rendered | None = None
    trouble: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Given:
    """What an expression read: a variable's field by `name`, on which `layer` it was given, by which object, and where.

    `by` is "" where nobody gave it.
    """

    name: str
    layer: str
    by: str = ""
    file: str = ""
    line: int = 0
    field: str = ""


@dataclass(frozen=True)
class Step:
    """One change of a value: the object `by` which it came, where that says so, and the value before and after it.

    `layer` is the id of a layer; `line` is 0 where `field` is not in today's text. What may not be seen is masked.
    `instance` is that of an addon, `loop` the expression that gave the items of which this is done for one.
    """

    by: str
    op: str
    before: Any = ABSENT
    after: Any = ABSENT
    layer: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    expression: Any = ABSENT
    instance: str = ""
    loop: str = ""
    given: tuple[Given, ...] = ()


@dataclass(frozen=True)
class Value:
    """A value of a resource with the steps that led to it, the last of which won; `option` is that of a Plugin."""

    file: str
    resource: str
    pointer: str
    steps: tuple[Step, ...]
    option: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it is the resource itself: what made it, and has all that is not told otherwise."""
        return not self.pointer


@dataclass(frozen=True)
class Rest:
    """A value that no rule has set, and where it is from; ABSENT where there is more than a line of it."""

    file: str
    resource: str
    pointer: str
    kind: Kind
    value: Any = ABSENT


@dataclass(frozen=True)
class Explanation:
    """What is told of a package, of a resource of it, or of a place in that one.

    `layers` is the one ordering of a Plugin's options, and `said` are those of them that had a say in these values.
    `children` are those whose templates were merged, as status files tell of them.
    """

    explained: Explained
    values: tuple[Value, ...] = ()
    rest: tuple[Rest, ...] = ()
    layers: tuple[Layer, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()

    @property
    def said(self) -> frozenset[str]:
        """The layers that had a say."""
        return frozenset(step.layer for one in self.values for step in one.steps if step.layer)


def explain(explained: Explained, resource: str = "", place: str = "") -> Explanation:
    """Return what rules set in a package, or in one resource, `Kind/name` or `Kind/namespace/name`, or at one place.

    The place is a JSON pointer, or the name of an option of a Plugin. Raises NothingToExplainError.
    """
    book, layers = _Book(explained), _ordering(explained)
    if not resource or not (book.values or book.resources):
        return Explanation(explained, book.values, (), layers, book.children)
    names = book.names(resource)
    if not place:
        values = tuple(one for one in book.values if one.resource in names)
        children = tuple(one for one in book.children if one["resource"] in names)
        return Explanation(explained, values, tuple(book.rest(names, ())), layers, children)
    pointer = book.pointer_of(names, place)
    if layers and not pointer.startswith("/"):
        raise NothingToExplainError(book.nothing_at(names, resource, place))
    path = _parsed(pointer, explained)
    values, rest = tuple(book.values_at(names, pointer)), tuple(book.rest(names, path))
    if not values and not rest:
        raise NothingToExplainError(book.nothing_at(names, resource, place))
    return Explanation(explained, values, rest, layers)


def _parsed(pointer: str, explained: Explained) -> Pointer:
    try:
        return parse_pointer(pointer)
    except PointerError as error:
        raise NothingToExplainError(f"{explained.place}: {error}") from error


def _ordering(explained: Explained) -> tuple[Layer, ...]:
    owner = explained.owner
    return LAYERS if owner and (owner.key.group, owner.key.kind) == (GROUP, PLUGIN) else ()


def alike_first(wanted: str, names: Iterable[str]) -> str:
    """Return the names that there are, those that look like the wanted one first; "none" without any."""
    ranked = sorted(set(names), key=lambda one: (-SequenceMatcher(None, wanted, one).ratio(), one))
    more = f" and {len(ranked) - _NAMED} more" if len(ranked) > _NAMED else ""
    return f"{', '.join(ranked[:_NAMED])}{more}" if ranked else "none"


class _Book:
    """What there is to tell of a package: the values that rules set, and its resources as they are to be."""

    def __init__(self, explained: Explained) -> None:
        self._explained = explained
        self._rendered = explained.rendered

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Every value that rules set: the options of a Plugin in their order, then what policies and templates did."""
        variant = self._explained.variant
        layers = variant.provenance.layers() if variant and variant.provenance else []
        overrides = self._rendered.overrides if self._rendered else ()
        lines = FieldLines(self._explained.objects.values())
        return tuple(_value(one, lines) for one in (*layers, *overrides, *self._templates()))

    def _templates(self) -> Iterator[Mapping[str, Any]]:
        templates = self._rendered.templates if self._rendered else None
        for one in templates.as_data() if templates else ():
            yield {**one, "steps": [{"layer": TEMPLATE, **step} for step in one["steps"]]}

    @cached_property
    def children(self) -> tuple[Mapping[str, Any], ...]:
        """The children whose templates were merged, or would be."""
        templates = self._rendered.templates if self._rendered else None
        return tuple(children_data(templates.effects if templates else ()))

    @cached_property
    def resources(self) -> tuple[PackageResource, ...]:
        """The resources of the package."""
        return Package(self._rendered.files).resources if self._rendered else ()

    def names(self, asked: str) -> frozenset[str]:
        """Return the resources that are asked for, as `Kind/namespace/name`."""
        known = {*(one.resource for one in self.values), *(str(one.key) for one in self.resources)}
        found = frozenset(one for one in known if asked in (one, _without_namespace(one)))
        if not found:
            listed = alike_first(asked, known)
            raise NothingToExplainError(f"{self._explained.place} has no resource {asked}; it has {listed}")
        return found

    def pointer_of(self, names: Collection[str], place: str) -> str:
        """Return the pointer of a place, which may be the name of an option."""
        return next((one.pointer for one in self.values if one.resource in names and one.option == place), place)

    def values_at(self, names: Collection[str], pointer: str) -> Iterator[Value]:
        """Yield the values at a pointer, below it, or around it: a rule may have set more than was asked for."""
        is_there = self._rendered is None or self._has(names, pointer)
        for one in (one for one in self.values if one.resource in names):
            if _is_at(one.pointer, pointer) or (is_there and _is_at(pointer, one.pointer)):
                yield one

    def rest(self, names: Collection[str], path: Pointer) -> Iterator[Rest]:
        """Yield what no rule set at a place: all that is not as it came, and then the rest in one."""
        for resource in (one for one in self.resources if str(one.key) in names):
            if self._rendered and value_of(resource.data, path) is not ABSENT:
                ruled = [_path(one.pointer) for one in self.values if _is_in(one, resource) and not one.is_whole]
                origins = Origins(self._rendered).of(resource, path, ruled)
                yield from (_rest(resource, one.path, one.kind) for one in origins if one.kind != "source")
                if any(one.kind == "source" for one in origins):
                    yield _rest(resource, path, "source")

    def nothing_at(self, names: Collection[str], resource: str, place: str) -> str:
        """Return that a place is not there, and which are."""
        options = [one.option for one in self.values if one.resource in names and one.option]
        pointers = [one.pointer for one in self.values if one.resource in names and not one.is_whole]
        leaves = (_leaves(one.data, ()) for one in self.resources if str(one.key) in names)
        pointers += [format_pointer(path) for paths in leaves for path in paths]
        known = pointers if place.startswith("/") or not options else options
        return f"{self._explained.place}: {resource} has nothing at {place}; it has {alike_first(place, known)}"

    def _has(self, names: Collection[str], pointer: str) -> bool:
        found = (one for one in self.resources if str(one.key) in names)
        return any(value_of(one.data, _path(pointer)) is not ABSENT for one in found)


def _value(entry: Mapping[str, Any], lines: FieldLines) -> Value:
    steps = tuple(_step(one, lines) for one in entry["steps"])
    return Value(entry["file"], entry["resource"], entry["pointer"], steps, entry.get("option", ""))


def _step(one: Mapping[str, Any], lines: FieldLines) -> Step:
    field = one.get("where", "")
    file, line = lines.find(one["by"], field, one.get("file", ""))
    return Step(
        one["by"], one["op"], one.get("before", ABSENT), one.get("after", ABSENT), one.get("layer", ""), file, line,
        field, one.get("expression", ABSENT), one.get("instance", ""), one.get("forEach", ""),
        tuple(_given(each, lines) for each in one.get("values", ())),
    )  # fmt: skip


def _given(one: Mapping[str, str], lines: FieldLines) -> Given:
    by, field = one.get("by", ""), one.get("where", "")
    file, line = lines.find(by, field, one.get("file", "")) if by else ("", 0)
    return Given(one["name"], one["layer"], by, file, line, field)


def _without_namespace(resource: str) -> str:
    kind, _, name = resource.split("/", 2)
    return f"{kind}/{name}"


def _path(pointer: str) -> Pointer:
    """Return the path of a pointer; of one into the text of a string, that of the string."""
    return parse_pointer(pointer.partition("!/")[0])


def _is_at(one: str, other: str) -> bool:
    """Tell whether a pointer is another or leads below it."""
    return one == other or one.startswith((f"{other}/", f"{other}!/"))


def _is_in(value: Value, resource: PackageResource) -> bool:
    return (value.resource, value.file) == (str(resource.key), resource.file)


def _rest(resource: PackageResource, path: Pointer, kind: Kind) -> Rest:
    value = value_of(mask(resource.data), path)
    if resource.group == GROUP and path[: len(_OPTIONS)] == _OPTIONS:
        value = MASK
    is_more = isinstance(value, dict | list) and value
    return Rest(resource.file, str(resource.key), format_pointer(path), kind, ABSENT if is_more else value)


def _leaves(data: Any, path: Pointer) -> Iterator[Pointer]:
    inside = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, value in inside:
        yield from _leaves(value, (*path, str(key)))
    if not inside:
        yield path
