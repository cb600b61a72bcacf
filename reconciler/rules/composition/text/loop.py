"""Loops: `forEach`, which does something once for each item (openchoreo 5.3, 6.2, 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconciler.expressions import OMIT, Budget, Environment, ExpressionError
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import CEL_CODES, FOR_EACH_TYPE, LOOP_VAR_RESERVED
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.text.nodes import ListNode, MapNode, Origin, Static, Whole
from reconciler.rules.composition.text.results import pay
from reconciler.rules.composition.text.scope import RESERVED, Scope
from reconciler.rules.composition.text.template import Template, compile_template
from reconciler.rules.fields import dotted, named, shown

ITEM: Final = "item"
"""What the variable of a loop is called when nothing else is written."""

_ROUND_BYTES: Final = 256
"""What the bindings of one round cost, about."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class Loop:
    """A compiled `forEach`; `template` is None where none is written, and then there is one round.

    `scope` is what templates inside of it see.
    """

    variable: str
    scope: Scope
    template: Template | None
    faults: tuple[Fault, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The variables that what it walks through uses."""
        return self.template.names if self.template else frozenset()

    @property
    def origin(self) -> Origin | None:
        """Where its items come from, None where no expression gives them."""
        root = self.template.root if self.template else None
        return Origin(root.path, root.text, root.reads) if isinstance(root, Whole) else None

    def rounds(self, bindings: Mapping[str, Any], budget: Budget) -> Iterator[Mapping[str, Any]]:
        """Yield the variables of each round: those given, and the item; of a map `key` and `value`, by sorted keys.

        Raises FaultError.
        """
        if self.faults:
            raise FaultError(self.faults[0])
        if self.template is None:
            yield bindings
            return
        items = self._items(self.template, bindings, budget)
        for item in items:
            pay(budget, 1, _ROUND_BYTES, self.template.path)
            yield {**bindings, self.variable: item}

    def _items(self, template: Template, bindings: Mapping[str, Any], budget: Budget) -> list[Any]:
        value = template.render(bindings, budget)
        match value:
            case list():
                return value
            case dict():
                return [{"key": key, "value": value[key]} for key in sorted(value)]
            case _:
                raise FaultError(_no_items(template.path, value))


def compile_loop(for_each: Any, variable: Any, path: Path, scope: Scope) -> Loop:
    """Return the loop of the entry at `path`, of its fields `forEach` and `var`; None is what is not written."""
    if for_each is None:
        return Loop(ITEM, scope, None)
    name = ITEM if variable is None else variable
    faults = _variable_faults(name, (*path, "var"))
    template = compile_template(for_each, (*path, "forEach"), scope)
    if not template.faults and not _may_have_items(template):
        faults = (_no_items(template.path, for_each), *faults)
    # what is inside is compiled even if the loop itself is wrong, so that everything is told at once
    return Loop(str(name), scope.including(str(name)), template, (*template.faults, *faults))


def _variable_faults(name: Any, path: Path) -> tuple[Fault, ...]:
    if isinstance(name, str) and name in RESERVED:
        taken = ", ".join(sorted(RESERVED))
        message = f"{dotted(path)} must be another name than those that are there anyway: {taken}; not {shown(name)}"
        return (Fault(LOOP_VAR_RESERVED, path, message),)
    if not isinstance(name, str) or not _is_name(name):
        message = f"{dotted(path)} must be a name of letters, digits and _, and no word of CEL, not {shown(name)}"
        return (Fault(CEL_CODES["CelSyntax"], path, message),)
    return ()


def _is_name(name: str) -> bool:
    try:
        program = Environment({name: None}).compile(name)
    except ExpressionError:
        return False
    return _IDENTIFIER.fullmatch(name) is not None and name in program.names


def _may_have_items(template: Template) -> bool:
    match template.root:
        case Static(value=value):
            return isinstance(value, list | dict)
        case root:
            return isinstance(root, Whole | ListNode | MapNode)


def _no_items(path: Path, value: Any) -> Fault:
    given = "omit()" if value is OMIT else named(value)
    return Fault(FOR_EACH_TYPE, path, f"{dotted(path)} must be a list or a map, or ${{…}} that gives one, not {given}")
