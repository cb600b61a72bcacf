"""Rewriting: the text of expressions with other names for their variables, as baking in needs it (openchoreo 13.3)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import NOT_BAKEABLE, TEMPLATE_DUPLICATE_KEY
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.text.scan import OPEN, scan
from reconciler.rules.composition.text.scope import Scope
from reconciler.rules.composition.text.template import compile_expression
from reconciler.rules.fields import dotted, shown


@dataclass(frozen=True)
class Renaming:
    """What is to be written in the place of variables, each a value that a field may be read from; and which must not
    be used at all.
    """

    texts: Mapping[str, str]
    forbidden: Collection[str] = ()


@dataclass(frozen=True, eq=False)
class Rewritten:
    """Data of a template with its expressions rewritten, as far as they could be."""

    data: Any
    faults: tuple[Fault, ...]


def rewrite_template(data: Any, path: Path, scope: Scope, renaming: Renaming) -> Rewritten:
    """Return the data of a template, keys and all, with the free variables of its expressions renamed.

    Faults are expressions that cannot be compiled, and `NotBakeable` for those that use what is forbidden.
    """
    walk = _Walk(scope, renaming)
    return Rewritten(walk.data(data, path), tuple(walk.faults))


def rewrite_expression(text: str, path: Path, scope: Scope, renaming: Renaming) -> str:
    """Return an expression, without `${}`, with its free variables renamed. Raises FaultError.

    What stands after a dot, in a string, or is bound by a macro is no free variable.
    """
    program = compile_expression(text, path, scope)
    for _, name in program.places:
        if name in renaming.forbidden:
            message = f"{dotted(path)} must not use {name}, which is known only in a render: {shown(text)}"
            raise FaultError(Fault(NOT_BAKEABLE, path, message))
    for at, name in reversed(program.places):
        if name in renaming.texts:
            text = f"{_before(text[:at], renaming.texts[name])}{renaming.texts[name]}{text[at + len(name) :]}"
    return text


def literal(value: Any) -> str:
    """Return the CEL of a value that JSON has: what JSON writes, CEL reads."""
    return json.dumps(value, ensure_ascii=False)


def as_template(value: Any) -> Any:
    """Return the template that renders to `value`, whatever the strings in it look like (openchoreo 13.3.5)."""
    match value:
        case str():
            return f"{OPEN}{literal(value)}}}" if OPEN in value else value
        case dict():
            return {as_template(key): as_template(one) for key, one in value.items()}
        case list():
            return [as_template(item) for item in value]
        case _:
            return value


def _before(text: str, renamed: str) -> str:
    """Return the text before a variable: a name may stay absolute, a literal must have no dot before it."""
    dotted = text.rstrip()
    return dotted[:-1] if dotted.endswith(".") and not (renamed[0].isalpha() or renamed[0] == "_") else text


@dataclass
class _Walk:
    scope: Scope
    renaming: Renaming
    faults: list[Fault] = field(default_factory=list)

    def data(self, data: Any, path: Path) -> Any:
        match data:
            case str():
                return self._text(data, path)
            case dict():
                return self._map(data, path)
            case list():
                return [self.data(item, (*path, index)) for index, item in enumerate(data)]
            case _:
                return data

    def _map(self, data: Mapping[Any, Any], path: Path) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for written, value in data.items():
            inner = (*path, written)
            key = self._text(written, inner) if isinstance(written, str) else written
            if key in made:
                message = f"{dotted(inner)} must have another key than the entries before it, not {shown(key)}"
                self.faults.append(Fault(TEMPLATE_DUPLICATE_KEY, inner, message))
            made[key] = self.data(value, inner)
        return made

    def _text(self, text: str, path: Path) -> str:
        try:
            return "".join(
                piece
                if isinstance(piece, str)
                else f"{OPEN}{rewrite_expression(piece.text, path, self.scope, self.renaming)}}}"
                for piece in scan(text, path)
            )
        except FaultError as error:
            self.faults.append(error.fault)
            return text
