"""The static check: every name, field and function of an expression exists, and its loops are not nested too deeply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reconciler.expressions.errors import Fault
from reconciler.expressions.library import conversions, times
from reconciler.expressions.library.signatures import Functions, Overload
from reconciler.expressions.macros import MACRO_NAMES
from reconciler.expressions.names import Meaning, Names
from reconciler.expressions.syntax import (
    Access,
    Alternative,
    Bind,
    Call,
    Field,
    Index,
    ListLiteral,
    Literal_,
    Loop,
    MapLiteral,
    Method,
    Name,
    Node,
    OptionalMap,
    Step,
    children,
)

Shape: TypeAlias = Mapping[str, Any] | None
"""What is known of a variable: its fields, each with a shape of its own; None where anything may be."""


STANDARD = frozenset(
    {*conversions.FUNCTIONS, *times.METHODS, "contains", "startsWith", "endsWith", "matches"}
    | {"all", "exists", "exists_one", "map", "filter"}
)
"""The functions and one-variable macros of CEL without extensions, which every engine has (porch 11.4)."""


@dataclass
class Check:
    """One walk over a tree; raises Fault at the first thing that is wrong.

    `shapes` has the declared variables, `nesting` is how deep loops may stand in one another. Afterwards `found` has
    the declared variables that the expression uses, `places` where each of their names begins in the text, `reads`
    which fields of them it reads, and `extensions` what it uses beyond standard CEL.
    """

    names: Names
    functions: Functions
    methods: Functions
    shapes: Mapping[str, Shape]
    nesting: int
    found: set[str] = field(default_factory=set)
    places: list[tuple[int, str]] = field(default_factory=list)
    extensions: set[str] = field(default_factory=set)
    reads: set[tuple[str, ...]] = field(default_factory=set)

    def node(self, node: Node, local: frozenset[str], loops: int) -> None:
        """Check a node and all below it, with these local variables, inside of so many loops."""
        self.extensions |= extensions(node)
        match node:
            case Name() | Access():
                self._path(node, local, loops)
            case Call():
                self._function(node.function, len(node.arguments), node.at)
                self._all(node.arguments, local, loops)
            case Bind():
                self.node(node.value, local, loops)
                self.node(node.body, local | {node.variable}, loops)
            case _:
                self._all(children(node), local, loops)

    def _all(self, nodes: Iterable[Node], local: frozenset[str], loops: int) -> None:
        for node in nodes:
            self.node(node, local, loops)

    def _path(self, node: Name | Access, local: frozenset[str], loops: int) -> None:
        meaning = self.names.meaning(node, local)
        steps = node.steps if isinstance(node, Access) else ()
        if meaning is None:
            assert isinstance(node, Access)
            self.node(node.base, local, loops)
        else:
            self._meaning(node, meaning, steps)
        for position, step in enumerate(steps):
            is_function = meaning is not None and meaning.kind == "function" and position == meaning.used - 1
            self._step(step, local, loops, is_function=is_function)

    def _meaning(self, node: Node, meaning: Meaning, steps: tuple[Step, ...]) -> None:
        match meaning.kind:
            case "nothing":
                raise self._undeclared(meaning.name, node)
            case "variable":
                self.found.add(meaning.name)
                self.places.append((_name_at(node), meaning.name))
                self.reads.add((meaning.name, *leading_fields(steps[meaning.used :])))
                check_fields(meaning.name, self.shapes[meaning.name], steps[meaning.used :])
            case "function":
                method = steps[meaning.used - 1]
                assert isinstance(method, Method)
                self._function(meaning.name, len(method.arguments), method.at)

    def _step(self, step: Step, local: frozenset[str], loops: int, *, is_function: bool) -> None:
        self.extensions |= extensions(step)
        match step:
            case Loop():
                if loops == self.nesting:
                    raise Fault("CelNesting", f"comprehensions are nested more than {self.nesting} deep", step.at)
                self._all(children(step), local | set(step.variables), loops + 1)
            case OptionalMap():
                self.node(step.body, local | {step.variable}, loops)
            case Method():
                if not is_function:
                    self._method(step)
                self._all(step.arguments, local, loops)
            case _:
                self._all(children(step), local, loops)

    def _undeclared(self, name: str, node: Node) -> Fault:
        declared = ", ".join(sorted(self.shapes)) or "none"
        return Fault("CelUndeclared", f"undeclared variable '{name}'; declared: {declared}", _name_at(node))

    def _function(self, name: str, count: int, at: int) -> None:
        if name not in STANDARD:
            self.extensions.add(name)
        if name in self.functions:
            check_count(name, self.functions[name], count, 0, at)
        elif name in self.methods or name in MACRO_NAMES:
            raise Fault("CelUnknownFunction", f"{name}() is called on a value: x.{name}(…)", at)
        else:
            raise Fault("CelUnknownFunction", f"there is no function {name}()", at)

    def _method(self, method: Method) -> None:
        if method.name not in STANDARD:
            self.extensions.add(method.name)
        if method.name in self.methods:
            check_count(method.name, self.methods[method.name], len(method.arguments), 1, method.at)
        elif method.name in MACRO_NAMES:
            message = f"{method.name}() does not take {len(method.arguments)} arguments"
            raise Fault("CelUnknownFunction", message, method.at)
        elif method.name in self.functions:
            raise Fault("CelUnknownFunction", f"{method.name}() is no method: {method.name}(x)", method.at)
        else:
            raise Fault("CelUnknownFunction", f"there is no method {method.name}()", method.at)


def leading_fields(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield the fields that are read one after the other, as far as they are written out."""
    for step in steps:
        if not isinstance(step, Field):
            return
        yield step.name


def _name_at(node: Node) -> int:
    """Return where the name begins that a node starts with."""
    return node.base.at if isinstance(node, Access) else node.at


def extensions(node: Node) -> set[str]:
    """Return what a node itself has beyond standard CEL, apart from functions: macros and the syntax of optionals."""
    match node:
        case Loop():
            return set() if node.name in STANDARD and len(node.variables) == 1 else {node.name}
        case Alternative() | OptionalMap():
            return {node.function}
        case Bind():
            return {"cel.bind"}
        case Field(optional=True):
            return {".?"}
        case Index(optional=True):
            return {"[?]"}
        case ListLiteral(items=items):
            return {"[?]"} if any(optional for _, optional in items) else set()
        case MapLiteral(entries=entries):
            return {"{?}"} if any(optional for _, _, optional in entries) else set()
        case _:
            return set()


def check_count(name: str, overloads: tuple[Overload, ...], count: int, receivers: int, at: int) -> None:
    """Raise Fault when no overload takes that many arguments, besides a method's receiver."""
    if any(candidate.takes_count(count + receivers) for candidate in overloads):
        return
    possible = sorted({len(candidate.parameters) - receivers for candidate in overloads})
    more = " or more" if any(candidate.repeated for candidate in overloads) else ""
    takes = " or ".join(map(str, possible))
    raise Fault("CelUnknownFunction", f"{name}() takes {takes}{more} arguments, not {count}", at)


def check_fields(path: str, shape: Shape, steps: tuple[Step, ...]) -> None:
    """Raise Fault when the steps read a field that a declared shape does not have."""
    for step in steps:
        match step:
            case Field(name=name) | Index(index=Literal_(value=str(name))):
                pass
            case _:
                return
        if shape is None:
            return
        if name not in shape:
            known = ", ".join(sorted(shape)) or "none"
            raise Fault("CelUndefinedField", f"{path} has no field '{name}'; it has: {known}", step.at)
        path, shape = f"{path}.{name}", shape[name]
