"""Resolving the options of one Plugin: merge, evaluate, validate, inject (greenhouse 5 to 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from reconciler.expressions import Limits
from reconciler.krm.findings import Finding, Severity, Where
from reconciler.rules.fields import shown
from reconciler.rules.presets.codes import (
    CONFLICTING_OVERRIDES,
    EXPRESSION_DISABLED,
    EXPRESSION_FAILED,
    EXPRESSION_RETYPED,
    OPTION_TYPE_MISMATCH,
    REGEX_MISMATCH,
    REQUIRED_OPTION_MISSING,
    RESERVED_OPTION,
    SECRET_LITERAL,
    UNDECLARED_OPTION,
)
from reconciler.rules.presets.expressions import evaluate
from reconciler.rules.presets.helm_values import steps_of
from reconciler.rules.presets.injected import METADATA_PREFIX, Injected, expression_variables, is_removed
from reconciler.rules.presets.layers import DEFAULTS, INJECTED, KNOWING_THE_DEFINITION, Contributor, Statement, stacked
from reconciler.rules.presets.model import Definition, Expression, Given, Option, SecretRef
from reconciler.rules.presets.option_paths import path_findings
from reconciler.rules.presets.read_entries import says_the_same
from reconciler.rules.presets.resolved import Resolution, ResolvedOption
from reconciler.rules.presets.types import regex_fault, type_fault
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Evaluation:
    """How expressions are worked out; `enabled` is False where people have switched them off (greenhouse 8.1)."""

    limits: Limits
    enabled: bool = True


@dataclass(frozen=True)
class Subject:
    """The Plugin whose options are resolved: `written` is what asks for it, `title` what messages call it.

    `where` is told of what nobody says; `cluster` is the object whose labels are injected, where there is one.
    """

    title: str
    written: ConfigObject
    where: Where
    definition: Definition
    cluster: ConfigObject | None = None


def resolve(
    subject: Subject, contributors: Sequence[Contributor], injected: Sequence[Injected], evaluation: Evaluation
) -> Resolution:
    """Return the options of a Plugin; every fault of every option is told.

    What is injected wins over whatever people say.
    """
    said = stacked(contributors)
    reserved = _reserved_names(said, injected)
    run = _Run(subject, evaluation, expression_variables(injected))
    findings = [finding for name in reserved for finding in _reserved(name, said[name])]
    options = [run.option(name, said[name]) for name in said if name not in reserved]
    options += [_injected(one, said.get(one.name, ()), subject) for one in injected]
    found = tuple(sorted(filter(None, options), key=lambda one: one.name))
    findings += (*run.findings, *_missing(subject, said), *path_findings(found))
    applied = tuple(sorted(contributors, key=lambda one: one.order))
    return Resolution(found, tuple(sorted(findings, key=_order)), applied)


def _order(finding: Finding) -> tuple[Where, str, str]:
    return finding.where, finding.code, finding.message


def _reserved_names(said: Mapping[str, Sequence[Statement]], injected: Sequence[Injected]) -> frozenset[str]:
    places = {steps_of(one.name) for one in injected}
    return frozenset(name for name in said if is_removed(name) or steps_of(name) in places)


@dataclass
class _Run:
    """One resolution on its way, and what was found so far."""

    subject: Subject
    evaluation: Evaluation
    variables: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.findings: list[Finding] = []

    def option(self, name: str, said: Sequence[Statement]) -> ResolvedOption | None:
        """Return an option with its value, None where it has none."""
        declared = self.subject.definition.options.get(name)
        self.findings += _conflicting(name, said)
        winner = said[-1]
        if declared is None:
            self.findings.append(self._undeclared(name, winner))
        hides = declared is not None and declared.type == "secret"
        source = self._value(name, winner, hides=hides)
        if source is None:
            return None
        if declared and isinstance(source, Given):
            self.findings += self._faults(declared, source.value, winner)
        return ResolvedOption(name, source, tuple(said), hides)

    def _value(self, name: str, winner: Statement, *, hides: bool) -> Given | SecretRef | None:
        if not isinstance(winner.source, Expression):
            return winner.source
        if not self.evaluation.enabled:
            message = f"{winner.field} gives {shown(name)} by an expression, and rules.expressions is switched off"
            self.findings.append(EXPRESSION_DISABLED.finding(message, winner.where))
            return None
        result = evaluate(winner.source.text, self.variables, self.evaluation.limits)
        if result.faults:
            # what a secret is made of may be the secret
            why = "what is wrong is not shown, for it is a secret" if hides else "; ".join(result.faults)
            message = f"{winner.field} gives no value to {shown(name)} of {self.subject.title}: {why}"
            self.findings.append(EXPRESSION_FAILED.finding(message, winner.where))
            return None
        for retyped in () if hides else result.retyped:
            message = f"{winner.field} gives {shown(name)} of {self.subject.title}: {retyped}"
            self.findings.append(EXPRESSION_RETYPED.finding(message, winner.where))
        return Given(result.value)

    def _faults(self, declared: Option, value: Any, winner: Statement) -> Iterator[Finding]:
        given = f"{winner.field} gives {shown(declared.name)} to {self.subject.title}"
        definition = self.subject.definition.one.key
        if declared.type == "secret" and winner.layer == DEFAULTS:
            # that nothing is set, which is all that a definition may say of a secret
            return
        if fault := type_fault(declared.type, value):
            code = SECRET_LITERAL if declared.type == "secret" else OPTION_TYPE_MISMATCH
            yield code.finding(f"{given}, which {definition} declares: it {fault}", winner.where)
        elif fault := regex_fault(declared.regex, value):
            yield REGEX_MISMATCH.finding(f"{given}, which {definition} declares: it {fault}", winner.where)

    def _undeclared(self, name: str, winner: Statement) -> Finding:
        message = f"{winner.field} gives {shown(name)}, which {self.subject.definition.one.key} does not declare"
        finding = UNDECLARED_OPTION.finding(message, winner.where)
        # who writes for all plugins cannot know every definition
        return finding if winner.layer in KNOWING_THE_DEFINITION else replace(finding, severity=Severity.INFO)


def _injected(one: Injected, said: Sequence[Statement], subject: Subject) -> ResolvedOption:
    of_cluster = one.label.startswith(METADATA_PREFIX) and subject.cluster is not None
    by = subject.cluster if of_cluster and subject.cluster else subject.written
    path = ("metadata", "labels", one.label) if one.label else ()
    source = Given(one.value)
    return ResolvedOption(one.name, source, (*said, Statement(INJECTED, by, source, path)))


def _reserved(name: str, said: Sequence[Statement]) -> Iterator[Finding]:
    for one in said:
        message = f"{one.field} gives {shown(name)}, which is not for people to set, and does not count"
        yield RESERVED_OPTION.finding(message, one.where)


def _conflicting(name: str, said: Sequence[Statement]) -> Iterator[Finding]:
    """Yield where two objects of one layer do not agree; the later one wins (greenhouse 4.4)."""
    for loser, winner in pairwise(said):
        if loser.layer == winner.layer and not says_the_same(loser.source, winner.source):
            message = f"{winner} wins over {loser}, which gives {shown(name)} another value on the same layer"
            yield CONFLICTING_OVERRIDES.finding(message, winner.where)


def _missing(subject: Subject, said: Mapping[str, Sequence[Statement]]) -> Iterator[Finding]:
    definition = subject.definition
    for option in definition.options.values():
        if option.required and option.name not in said:
            message = f"{subject.title} must have the option {shown(option.name)}: {definition.one.key} requires it"
            yield REQUIRED_OPTION_MISSING.finding(message, subject.where)
