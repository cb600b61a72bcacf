"""Nodes: the parts of a compiled template, each of which renders itself (openchoreo 5.2, 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.expressions import OMIT, Budget, Program
from reconciler.krm.findings import Code
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import (
    TEMPLATE_DUPLICATE_KEY,
    TEMPLATE_KEY_TYPE,
    TEMPLATE_NULL_IN_TEXT,
    TEMPLATE_OMIT_IN_TEXT,
)
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.spelling import spell
from reconciler.rules.composition.text.results import evaluate, pay
from reconciler.rules.fields import dotted, named, shown


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rendered value comes from: the place of a template in its document, and what is written there.

    `reads` are the fields of variables that its expressions read: `("spec", "size")`.
    """

    path: Path
    text: str
    reads: frozenset[tuple[str, ...]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One render; `origins` gathers, by rendered path, what expressions made, and is None when nobody asks."""

    bindings: Mapping[str, Any]
    budget: Budget
    origins: dict[Path, Origin] | None = None


class Node(Protocol):
    """A part of a template."""

    def render(self, run: Run, at: Path) -> Any:
        """Return a value of its own, or `OMIT`; `at` is its place in what is rendered, () when nobody asks."""


@dataclass(frozen=True, slots=True)
class Static:
    """What has no expression in it."""

    value: Any

    def render(self, run: Run, at: Path) -> Any:
        """Return a copy."""
        return _copy(self.value)


@dataclass(frozen=True, slots=True)
class Whole:
    """One expression and nothing else: its value keeps its type."""

    path: Path
    text: str
    program: Program

    def render(self, run: Run, at: Path) -> Any:
        """Return what the expression gives."""
        value = evaluate(self.program, run.bindings, run.budget, self.path)
        if run.origins is not None and value is not OMIT:
            run.origins[at] = Origin(self.path, self.text, self.reads)
        return value

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """The fields of variables that its expression reads."""
        return self.program.reads


@dataclass(frozen=True, slots=True)
class Mixed:
    """Text with expressions in it."""

    path: Path
    text: str
    pieces: tuple[str | Program, ...]

    def render(self, run: Run, at: Path) -> str:
        """Return the text, with the values of the expressions in their places."""
        text = "".join(piece if isinstance(piece, str) else self._spelled(piece, run) for piece in self.pieces)
        pay(run.budget, 0, 4 * len(text), self.path)
        if run.origins is not None:
            run.origins[at] = Origin(self.path, self.text, self.reads)
        return text

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """The fields of variables that its expressions read."""
        return frozenset().union(*(piece.reads for piece in self.pieces if not isinstance(piece, str)))

    def _spelled(self, program: Program, run: Run) -> str:
        value = evaluate(program, run.bindings, run.budget, self.path)
        if value is None:
            raise self._no_text(TEMPLATE_NULL_IN_TEXT, program, "null", 'an empty text is ""')
        if value is OMIT:
            raise self._no_text(TEMPLATE_OMIT_IN_TEXT, program, "omit()", "only a whole value can be left out")
        return spell(value)

    def _no_text(self, code: Code, program: Program, what: str, hint: str) -> FaultError:
        message = (
            f"{dotted(self.path)} must have a value for its text from the expression {shown(program.text)}, "
            f"which gives {what}; {hint}"
        )
        return FaultError(Fault(code, self.path, message))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a map; `path` is that of its key as it is written."""

    path: Path
    key: str | Whole | Mixed
    value: Node


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map with an expression in it, in the order of the template."""

    entries: tuple[Entry, ...]

    def render(self, run: Run, at: Path) -> dict[str, Any]:
        """Return the map without what its entries omit."""
        made: dict[str, Any] = {}
        for entry in self.entries:
            key = entry.key if isinstance(entry.key, str) else _key(entry, entry.key, run, at)
            value = entry.value.render(run, at if run.origins is None else (*at, key))
            if value is OMIT:
                continue
            if key in made:
                message = f"{dotted(entry.path)} must have another key than the entries before it, not {shown(key)}"
                raise FaultError(Fault(TEMPLATE_DUPLICATE_KEY, entry.path, message))
            made[key] = value
            if run.origins is not None and not isinstance(entry.key, str):
                # the entry is there because of its key, but what its value says of itself is nearer
                run.origins.setdefault((*at, key), Origin(entry.path, entry.key.text, entry.key.reads))
        return made


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list with an expression in it."""

    items: tuple[Node, ...]

    def render(self, run: Run, at: Path) -> list[Any]:
        """Return the list without the items that omit themselves."""
        made: list[Any] = []
        for item in self.items:
            value = item.render(run, at if run.origins is None else (*at, len(made)))
            if value is not OMIT:
                made.append(value)
        return made


def _key(entry: Entry, node: Whole | Mixed, run: Run, at: Path) -> str:
    key = node.render(Run(run.bindings, run.budget), at)
    if isinstance(key, str):
        return key
    given = "omit()" if key is OMIT else named(key)
    message = f"{dotted(entry.path)} must have a key that is text, and its expression gives {given}: use string()"
    raise FaultError(Fault(TEMPLATE_KEY_TYPE, entry.path, message))


def _copy(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copy(one) for key, one in value.items()}
        case list():
            return [_copy(item) for item in value]
        case _:
            return value
