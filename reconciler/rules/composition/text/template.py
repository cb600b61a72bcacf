"""Templates: data whose strings and keys may hold expressions, compiled (openchoreo 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.expressions import Budget, ExpressionError, Program
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import CEL_CODES, TEMPLATE_KEY_TYPE
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.marks import OPEN
from reconciler.rules.composition.text.nodes import Entry, ListNode, MapNode, Mixed, Node, Origin, Run, Static, Whole
from reconciler.rules.composition.text.results import pay
from reconciler.rules.composition.text.scan import Expression, scan
from reconciler.rules.composition.text.scope import Scope
from reconciler.rules.fields import dotted, shown

MAX_EXPRESSIONS: Final = 4096
"""How many expressions one template may have: each is compiled, and that is not in the budget of its renders."""

DEEPEST: Final = 128
"""How deep the lists and maps of a template may stand in one another."""

_NODE_BYTES: Final = 64
"""What a part of a template costs each time that it is rendered, about what an entry of a map needs."""

# what a shell expands looks like this, and often enough a script is meant
_SHELL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(:?[-=+?#%/^,@].*)?", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\s*:")
_MEANT_OTHERWISE: Final = frozenset({"CelUndeclared", "CelSyntax"})


@dataclass(frozen=True, eq=False)
class Template:
    """A compiled template. `faults` are what is wrong with it as it stands; one that has any gives no value.

    `names` are the variables that its expressions use. `root`, `steps` and `size` are for rendering.
    """

    path: Path
    faults: tuple[Fault, ...]
    names: frozenset[str]
    root: Node
    steps: int
    size: int

    @property
    def is_static(self) -> bool:
        """Whether it has no expression, and is the same in every render."""
        return isinstance(self.root, Static)

    def render(self, bindings: Mapping[str, Any], budget: Budget) -> Any:
        """Return the value with these variables, which shares nothing with them, or `OMIT` (openchoreo 5.2, 5.3).

        Raises FaultError, whose path leads to the expression in the template's document.
        """
        return self._render(Run(bindings, budget))

    def render_traced(self, bindings: Mapping[str, Any], budget: Budget) -> tuple[Any, Mapping[Path, Origin]]:
        """Return the value, and by their paths in it where the parts that expressions made come from.

        A list or map that one expression made is there once, at its root.
        """
        origins: dict[Path, Origin] = {}
        return self._render(Run(bindings, budget, origins)), origins

    def _render(self, run: Run) -> Any:
        if self.faults:
            raise FaultError(self.faults[0])
        pay(run.budget, self.steps, self.size, self.path)
        return self.root.render(run, ())


def compile_template(data: Any, path: Path, scope: Scope) -> Template:
    """Return the template that is written at `path` of a document, with everything that is wrong with it."""
    compiler = _Compiler(scope)
    root = compiler.node(data, path, 0)
    return Template(path, tuple(compiler.faults), frozenset(compiler.names), root, compiler.steps, compiler.size)


def compile_expression(text: str, path: Path, scope: Scope) -> Program:
    """Return the program of an expression. Raises FaultError, at `path`."""
    try:
        return scope.environment.compile(text)
    except ExpressionError as error:
        message = f"{dotted(path)} has the expression {shown(text)}, which cannot be used: {error}{_hint(error)}"
        raise FaultError(Fault(CEL_CODES[error.code], path, message)) from None


def _hint(error: ExpressionError) -> str:
    """Return what may have been meant, for the two mistakes that people make most."""
    if error.code not in _MEANT_OTHERWISE:
        return ""
    lines = error.expression.split("\n")
    before = "\n".join((*lines[: error.line - 1], lines[error.line - 1][: error.column - 1]))
    after = error.expression[len(before) :]
    if _KEY.match(after) and before.rstrip().endswith(("{", ",")):
        return "; a key that is text stands in quotes"
    if _SHELL.fullmatch(error.expression):
        return f'; to have {OPEN}…}} as text, write {OPEN}"{OPEN}…}}"}}'
    return ""


@dataclass
class _Compiler:
    """One walk over the data of a template."""

    scope: Scope
    faults: list[Fault] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    expressions: int = 0
    steps: int = 0
    size: int = 0

    def node(self, data: Any, path: Path, depth: int) -> Node:
        self.steps += 1
        self.size += _NODE_BYTES
        match data:
            case str():
                return self._text(data, path)
            case dict() | list() if depth == DEEPEST:
                return self._too_deep(path)
            case dict():
                entries = tuple(self._entry(key, value, (*path, key), depth + 1) for key, value in data.items())
                is_static = all(isinstance(one.key, str) and isinstance(one.value, Static) for one in entries)
                return Static(data) if is_static else MapNode(entries)
            case list():
                items = tuple(self.node(item, (*path, index), depth + 1) for index, item in enumerate(data))
                return Static(data) if all(isinstance(item, Static) for item in items) else ListNode(items)
            case _:
                return Static(data)

    def _entry(self, key: Any, value: Any, path: Path, depth: int) -> Entry:
        node = self.node(value, path, depth)
        if not isinstance(key, str):
            message = f"{dotted(path)} must have a key that is text, not {shown(key)}: quote it"
            self.faults.append(Fault(TEMPLATE_KEY_TYPE, path, message))
            return Entry(path, str(key), node)
        written = self._text(key, path)
        return Entry(path, key if isinstance(written, Static) else written, node)

    def _text(self, text: str, path: Path) -> Static | Whole | Mixed:
        self.size += 4 * len(text)
        try:
            pieces = tuple(self._compiled(piece, path) for piece in scan(text, path)) if OPEN in text else ()
        except FaultError as error:
            self.faults.append(error.fault)
            return Static(text)
        if not any(isinstance(piece, Program) for piece in pieces):
            return Static(text)
        match [piece for piece in pieces if not isinstance(piece, str) or not piece.isspace()]:
            case [Program() as program]:
                return Whole(path, text.strip(), program)
            case _:
                return Mixed(path, text, pieces)

    def _compiled(self, piece: str | Expression, path: Path) -> str | Program:
        if isinstance(piece, str):
            return piece
        self.expressions += 1
        if self.expressions > MAX_EXPRESSIONS + 1:
            return piece.text
        if self.expressions > MAX_EXPRESSIONS:
            message = f"{dotted(path)} must be left out: a template may have {MAX_EXPRESSIONS} expressions, and no more"
            raise FaultError(Fault(CEL_CODES["CelBudget"], path, message))
        program = compile_expression(piece.text, path, self.scope)
        self.names |= program.names
        return program

    def _too_deep(self, path: Path) -> Static:
        message = f"{dotted(path)} must not be nested deeper: lists and maps may stand {DEEPEST} deep in one another"
        self.faults.append(Fault(CEL_CODES["CelTooDeep"], path, message))
        return Static(None)
