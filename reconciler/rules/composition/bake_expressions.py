"""Expressions of an addon that is baked in: what is known stands in them as it is, all else below its key (13.3.3).

A template that is known altogether becomes its value, so that paths and filters of later addons can see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reconciler.expressions import OMIT, Budget, Program
from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.rules.composition.bake_fields import Part
from reconciler.rules.composition.codes import NOT_BAKEABLE
from reconciler.rules.composition.faults import FaultError, fault_of
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.composition.schema import Schema
from reconciler.rules.composition.spelling import spell
from reconciler.rules.composition.text import as_template, literal
from reconciler.rules.composition.text.nodes import Entry, ListNode, MapNode, Mixed, Node, Static, Whole
from reconciler.rules.composition.text.results import evaluate, pay
from reconciler.rules.composition.text.scan import Expression, scan
from reconciler.rules.edits import value_at
from reconciler.rules.fields import shown

_SPEC = "spec"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# a name that a parenthesis follows is that of a method
_STEP = re.compile(
    r"""\s*(?:(?P<dot>\.\??)\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_])(?!\s*\()"""
    r"""|\[\s*(?:"(?P<double>[^"\\\n]*)"|'(?P<single>[^'\\\n]*)')\s*\])""",
    re.ASCII,
)
_HAS = re.compile(r"(?<![A-Za-z0-9_.])has[ \t]*\([ \t]*\Z", re.ASCII)
_CLOSE = re.compile(r"\s*\)")
_ABSOLUTE = re.compile(r"\.[ \t]*\Z")


@dataclass(frozen=True)
class Step:
    """One field that an expression names: the place of its text, and whether the field may be absent (`.?a`)."""

    name: str
    start: int
    end: int
    is_optional: bool


def steps_after(text: str, at: int, schema: Schema) -> tuple[Step, ...]:
    """Return the declared fields that text names one after the other from a place on, which is behind a variable."""
    found: list[Step] = []
    while step := _STEP.match(text, at):
        name = step["name"] or step["double"] or step["single"] or ""
        inner: Schema | None = schema.get("properties", {}).get(name)
        if inner is None:
            break
        schema = inner
        found.append(Step(name, at, step.end(), step["dot"] == ".?"))
        at = step.end()
    return tuple(found)


def programs(node: Node) -> Iterator[tuple[Path, Program]]:
    """Yield the expressions of a template, each with its place in the document."""
    match node:
        case Whole(path, _, program):
            yield path, program
        case Mixed(path, _, pieces):
            yield from ((path, piece) for piece in pieces if isinstance(piece, Program))
        case MapNode(entries):
            for entry in entries:
                yield from programs(entry.key) if not isinstance(entry.key, str) else ()
                yield from programs(entry.value)
        case ListNode(items):
            for item in items:
                yield from programs(item)


@dataclass(frozen=True, eq=False)
class Root:
    """A variable that holds values of an addon: what becomes of its fields, whose values are those that are fixed.

    `config` is what the type gives, in its order.
    """

    name: str
    key: str
    schema: Schema
    part: Part
    values: Mapping[str, Any]
    config: Mapping[str, Any]


@dataclass(frozen=True)
class _Spot:
    """A place of a variable, which ends at `end`, in text; `dot` is the one that it began with, and `before` without.

    `written` is the expression as it is in the document, at `path`.
    """

    text: str
    before: str
    dot: str
    end: int
    path: Path
    written: str


@dataclass(frozen=True)
class _Spliced:
    """What stands in the place of a variable, and of the text behind it up to `end`."""

    text: str
    end: int
    is_known: bool


@dataclass(frozen=True, eq=False)
class Rewriter:
    """Rewrites the templates of one addon; `known` are variables with their values, such as the item of a loop."""

    roots: Mapping[str, Root]
    known: Mapping[str, Any]
    budget: Budget

    @property
    def bindings(self) -> dict[str, Any]:
        """The variables as far as they are known."""
        return {**{name: root.values for name, root in self.roots.items()}, **self.known}

    def data(self, node: Node) -> Any:
        """Return the data of a template that renders to the same in a definition; OMIT for what is never there.

        Raises FaultError.
        """
        match node:
            case Static(value):
                return deepcopy(value)
            case Whole(path, _, program):
                text, is_known = self.expression(program, path)
                value = self._value(program, path) if is_known else ABSENT
                return _wrapped(text) if value is ABSENT else value if value is OMIT else as_template(value)
            case Mixed():
                return self._mixed(node)
            case MapNode(entries):
                return self._map(entries)
            case ListNode(items):
                return [one for one in map(self.data, items) if one is not OMIT]
        raise TypeError(f"no part of a template: {node!r}")

    def expression(self, program: Program, path: Path) -> tuple[str, bool]:
        """Return an expression as it is to be, and whether it uses only what is known. Raises FaultError."""
        text, all_known = program.text, True
        for at, name in reversed(program.places):
            if name not in self.roots and name not in self.known:
                all_known = False
                continue
            before = _ABSOLUTE.sub("", text[:at])
            spot = _Spot(text, before, "" if before == text[:at] else ".", at + len(name), path, program.text)
            done = self._spliced(name, spot)
            all_known = all_known and done.is_known
            text = f"{before}{done.text}{text[done.end :]}"
            pay(self.budget, 1, len(text), path)
        return text, all_known

    def _spliced(self, name: str, spot: _Spot) -> _Spliced:
        if name not in self.roots:
            return _Spliced(literal(self.known[name]), spot.end, is_known=True)
        root, part = self.roots[name], self.roots[name].part
        place: Path = ()
        end = spot.end
        for step in steps_after(spot.text, spot.end, root.schema):
            if step.name not in part.closed:
                return _Spliced(f"{spot.dot}{root.name}.{root.key}", spot.end, is_known=False)
            place, below = (*place, step.name), part.closed[step.name]
            is_asked = _asks(spot.before) and _CLOSE.match(spot.text, step.end) is not None
            if below is None or is_asked:
                return _closed(root, place, step, spot, is_asked=is_asked)
            if step.is_optional:
                held = _map_text({step.name: _whole(root, place, below, spot)})
                return _Spliced(f"{held}{spot.text[step.start : step.end]}", step.end, is_known=False)
            part, end = below, step.end
        return _Spliced(_whole(root, place, part, spot), end, is_known=not part.has_open)

    def _value(self, program: Program, path: Path) -> Any:
        """Return what an expression gives that uses only what is known; ABSENT where that fails, as it will later."""
        try:
            return evaluate(program, self.bindings, self.budget, path)
        except FaultError:
            return ABSENT

    def _mixed(self, node: Mixed) -> str:
        """Return text with what is known of it written out."""
        pieces = [self._piece(piece, node.path) for piece in node.pieces]
        plain = _joined(pieces)
        text = "".join(one if isinstance(one, str) else _wrapped(one.text) for one in plain)
        match [one for one in plain if not isinstance(one, str) or not one.isspace()]:
            case [Expression()]:
                # alone it would keep its type
                pass
            case found if not any(isinstance(one, Expression) for one in found):
                return str(as_template(text))
            case _ if _reads_as(text, plain):
                return text
        return "".join(
            written if isinstance(written, str) else _wrapped(self.expression(written, node.path)[0])
            for written in node.pieces
        )

    def _piece(self, piece: str | Program, path: Path) -> str | Expression:
        if isinstance(piece, str):
            return piece
        text, is_known = self.expression(piece, path)
        value = self._value(piece, path) if is_known else ABSENT
        is_text = value is not ABSENT and value is not OMIT and value is not None
        return spell(value) if is_text else Expression(text)

    def _map(self, entries: tuple[Entry, ...]) -> Any:
        made: dict[str, Any] = {}
        for entry in entries:
            key = entry.key if isinstance(entry.key, str) else self.data(entry.key)
            if not isinstance(key, str):
                assert isinstance(entry.key, Whole), "other keys are text"
                # that this is no key is told by the render, as without baking in
                key = _wrapped(self.expression(entry.key.program, entry.path)[0])
            value = self.data(entry.value)
            if value is OMIT:
                continue
            if key in made:
                raise _refused(entry.path, "must have another key than the entries before it", key)
            made[key] = value
        return made


def _closed(root: Root, place: Path, step: Step, spot: _Spot, *, is_asked: bool) -> _Spliced:
    """Return what stands for a field that is fixed, or that `has` asks for, which is known as well."""
    value = value_at(root.values, place)
    if value is not ABSENT and not is_asked and not step.is_optional:
        return _Spliced(literal(value), step.end, is_known=True)
    held = {} if value is ABSENT else {step.name: value}
    return _Spliced(f"{literal(held)}{spot.text[step.start : step.end]}", step.end, is_known=True)


def _whole(root: Root, place: Path, part: Part, spot: _Spot) -> str:
    """Return what stands for an object, some fields of which may be fixed: those come first, as they are given."""
    if not part.has_open:
        return literal(value_at(root.values, place))
    here = f"{spot.dot}{root.name}.{root.key}{''.join(map(_step_text, place))}"
    if not part.closed:
        return here
    given = value_at(root.config, place)
    names = [name for name in given if name in part.closed] if isinstance(given, Mapping) else []
    lost = any(name not in names and value_at(root.values, (*place, name)) is not ABSENT for name in part.closed)
    if root.name != _SPEC or lost:
        # defaults come among those of other fields, and what a section has in the order of names
        raise _refused(spot.path, "must name the fields that it uses, because some of them are fixed", spot.written)
    inner = {name: _whole(root, (*place, name), below, spot) for name in names if (below := part.closed[name])}
    texts = {name: inner.get(name) or literal(value_at(root.values, (*place, name))) for name in names}
    return f"merge({', '.join([_map_text(texts), here, *([_map_text(inner)] if inner else [])])})"


def _asks(before: str) -> bool:
    """Tell whether the text before a variable is `has(`, in no comment."""
    line = before[before.rfind("\n") + 1 :]
    return _HAS.search(line) is not None and "//" not in line


def _joined(pieces: list[str | Expression]) -> list[str | Expression]:
    """Return the pieces with text that stands side by side as one, and no text that is empty."""
    found: list[str | Expression] = []
    for is_text, group in groupby(pieces, lambda one: isinstance(one, str)):
        run = list(group)
        found += ["".join(one for one in run if isinstance(one, str))] if is_text else run
    return [one for one in found if one != ""]


def _reads_as(text: str, pieces: list[str | Expression]) -> bool:
    try:
        return list(scan(text, ())) == pieces
    except FaultError:
        return False


def _wrapped(text: str) -> str:
    return f"{OPEN}{text}}}"


def _map_text(entries: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{literal(name)}: {text}' for name, text in entries.items())}}}"


def _step_text(name: str | int) -> str:
    return f".{name}" if _NAME.fullmatch(str(name)) else f"[{literal(name)}]"


def _refused(path: Path, message: str, text: str) -> FaultError:
    return FaultError(fault_of(NOT_BAKEABLE, path, f"{message}: {shown(text)}"))
