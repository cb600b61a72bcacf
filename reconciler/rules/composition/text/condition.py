"""Conditions: whether something is to be done at all (openchoreo 5.3, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.expressions import OMIT, Budget
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import CONDITION_TYPE
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.text.nodes import Static, Whole
from reconciler.rules.composition.text.scope import Scope
from reconciler.rules.composition.text.template import Template, compile_template
from reconciler.rules.fields import dotted, named


@dataclass(frozen=True, eq=False)
class Condition:
    """A compiled `condition` or `includeWhen`; `faults` are what is wrong with it as it stands."""

    template: Template
    faults: tuple[Fault, ...]

    @property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        return self.template.names

    def holds(self, bindings: Mapping[str, Any], budget: Budget) -> bool:
        """Return whether it is true. Raises FaultError when it is neither true nor false."""
        if self.faults:
            raise FaultError(self.faults[0])
        value = self.template.render(bindings, budget)
        if isinstance(value, bool):
            return value
        raise FaultError(_not_bool(self.template.path, value))


def compile_condition(data: Any, path: Path, scope: Scope) -> Condition:
    """Return the condition that is written at `path`; where none is, it always holds."""
    template = compile_template(True if data is None else data, path, scope)
    faults = template.faults
    if not faults and not _may_be_bool(template):
        faults = (_not_bool(path, data),)
    return Condition(template, faults)


def _may_be_bool(template: Template) -> bool:
    match template.root:
        case Static(value=value):
            return isinstance(value, bool)
        case root:
            return isinstance(root, Whole)


def _not_bool(path: Path, value: Any) -> Fault:
    given = "omit()" if value is OMIT else named(value)
    return Fault(CONDITION_TYPE, path, f"{dotted(path)} must be true or false, or ${{…}} that gives one, not {given}")
