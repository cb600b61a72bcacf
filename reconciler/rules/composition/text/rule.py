"""Rules: what must be true of effective values (openchoreo 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.expressions import OMIT, Budget, Program
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import VALIDATION_RULE_FAILED
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.composition.spelling import spell
from reconciler.rules.composition.text.results import evaluate
from reconciler.rules.composition.text.scope import Scope
from reconciler.rules.composition.text.template import Template, compile_expression, compile_template
from reconciler.rules.fields import dotted, named, shown


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A compiled rule: CEL without `${}`, and a message that may have it; `faults` are what is wrong as it stands."""

    name: str
    path: Path
    program: Program | None
    message: Template
    faults: tuple[Fault, ...]

    @property
    def names(self) -> frozenset[str]:
        """The variables that its expression and its message use."""
        return self.message.names | (self.program.names if self.program else frozenset())

    def failure(self, bindings: Mapping[str, Any], budget: Budget) -> Fault | None:
        """Return why the rule does not hold, None when it does; what cannot be evaluated does not hold."""
        if self.program is None:
            return self.faults[0]
        path = (*self.path, "expression")
        try:
            value = evaluate(self.program, bindings, budget, path)
        except FaultError as error:
            return self._failed(bindings, budget, f"; {error.fault.message}")
        if value is True:
            return None
        return self._failed(bindings, budget, "" if value is False else f"; it gives {_given(value)}")

    def _failed(self, bindings: Mapping[str, Any], budget: Budget, why: str) -> Fault:
        assert self.program is not None
        name = f" {self.name}" if self.name else ""
        said = self._said(bindings, budget) or f"{shown(self.program.text)} must be true"
        return Fault(
            VALIDATION_RULE_FAILED, self.path, f"{dotted(self.path)}: the rule{name} does not hold: {said}{why}"
        )

    def _said(self, bindings: Mapping[str, Any], budget: Budget) -> str:
        try:
            said = self.message.render(bindings, budget)
        except FaultError as error:
            return error.fault.message
        return "" if said is None or said is OMIT else spell(said)


def compile_rule(name: str, expression: str, message: str, path: Path, scope: Scope) -> CompiledRule:
    """Return the rule that is written at `path`, of its fields `expression` and `message`."""
    said = compile_template(message, (*path, "message"), scope)
    try:
        program = compile_expression(expression, (*path, "expression"), scope)
    except FaultError as error:
        return CompiledRule(name, path, None, said, (error.fault, *said.faults))
    return CompiledRule(name, path, program, said, said.faults)


def _given(value: Any) -> str:
    return f"{named(value)}, neither true nor false"
