"""What a name means: a local variable, a declared one, a function of a namespace or a type, in the standard's order."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Literal

from reconciler.expressions.syntax import Access, Field, Method, Name, Node
from reconciler.expressions.values import TYPES


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the name at the start of a node stands for, and how many of the steps after it belong to the name."""

    kind: Literal["local", "variable", "type", "function", "nothing"]
    name: str
    used: int = 0


@dataclass(frozen=True, slots=True)
class Names:
    """The names that exist: declared variables, which may be dotted, in a container; and functions."""

    variables: Container[str]
    functions: Container[str]
    container: str = ""

    def meaning(self, node: Name | Access, local: Container[str]) -> Meaning | None:
        """Return what a node's leading name means; None when the node does not start with a name.

        Of variables the longest dotted name wins, and of equally long ones that in the innermost part of the container.
        """
        name = node.base if isinstance(node, Access) else node
        if not isinstance(name, Name):
            return None
        fields, call = _path(node)
        if name.name in local and not name.absolute:
            return Meaning("local", name.name)
        if fields and call and ".".join((name.name, *fields)) in self.functions:
            return Meaning("function", ".".join((name.name, *fields)), len(fields))
        fields = fields[:-1] if call else fields
        return self._variable(name, fields) or _type(name, fields) or Meaning("nothing", name.name)

    def _variable(self, name: Name, fields: list[str]) -> Meaning | None:
        for used in range(len(fields), -1, -1):
            path = ".".join((name.name, *fields[:used]))
            for prefix in ("",) if name.absolute else _prefixes(self.container):
                if prefix + path in self.variables:
                    return Meaning("variable", prefix + path, used)
        return None


def _type(name: Name, fields: list[str]) -> Meaning | None:
    for used in range(len(fields), -1, -1):
        path = ".".join((name.name, *fields[:used]))
        if path in TYPES:
            return Meaning("type", path, used)
    return None


def _path(node: Node) -> tuple[list[str], bool]:
    """Return the names of the plain fields at the start of a node, and whether the last of them is a method called."""
    fields: list[str] = []
    for step in node.steps if isinstance(node, Access) else ():
        if isinstance(step, Method):
            return [*fields, step.name], True
        if not isinstance(step, Field) or step.optional or step.test:
            break
        fields.append(step.name)
    return fields, False


def _prefixes(container: str) -> Iterator[str]:
    while container:
        yield container + "."
        container = container.rpartition(".")[0]
    yield ""
