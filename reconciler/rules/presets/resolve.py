"""Resolving the options of one Plugin: merge, evaluate, validate, inject (greenhouse 5 to 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from reconciler.expressions import Limits
from reconciler.krm.findings import Finding, Severity, Where, softened
from reconciler.krm.yaml import Path
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

    `path` leads to its options in there; `cluster` is the object whose labels are injected, where there is one.
    """

    title: str
    written: ConfigObject
    path: Path
    definition: Definition
    cluster: ConfigObject | None = None


class Resolver:
    """Resolves the options of Plugins; what many Plugins of a definition have alike is worked out once."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        # one option by what is said of it, all of them by who says it
        self._known: dict[tuple[object, ...], _Option] = {}
        self._alike: dict[tuple[object, ...], _Alike] = {}
        self._variables: dict[tuple[Injected, ...], Mapping[str, Any]] = {}

    def resolve(
        self, subject: Subject, contributors: Sequence[Contributor], injected: Sequence[Injected]
    ) -> Resolution:
        """Return the options of a Plugin; every fault of every option is told.

        What is injected wins over whatever people say.
        """
        alike = self._alike_of(subject, contributors, injected)
        options = list(alike.options)
        if alike.by_expression:
            run = _Run(subject, self._evaluation, self._variables_of(tuple(injected)))
            options += [run.option(name, alike.said[name]) for name in alike.by_expression]
        resolved = [one.option for one in options if one.option]
        resolved += [_injected(one, alike.said.get(one.name, ()), subject) for one in injected]
        resolved.sort(key=lambda one: one.name)
        findings = [*alike.findings, *(finding for one in options for finding in one.findings)]
        findings += (*_missing(subject, alike.said), *path_findings(resolved))
        return Resolution(tuple(resolved), tuple(sorted(findings, key=_order)), alike.applied)

    def _variables_of(self, injected: tuple[Injected, ...]) -> Mapping[str, Any]:
        if injected not in self._variables:
            self._variables[injected] = expression_variables(injected)
        return self._variables[injected]

    def _alike_of(self, subject: Subject, contributors: Sequence[Contributor], injected: Sequence[Injected]) -> _Alike:
        key = (subject.definition.one, *contributors, *(one.name for one in injected))
        if key not in self._alike:
            self._alike[key] = self._find_alike(subject, contributors, injected)
        return self._alike[key]

    def _find_alike(
        self, subject: Subject, contributors: Sequence[Contributor], injected: Sequence[Injected]
    ) -> _Alike:
        said = stacked(contributors)
        reserved = _reserved_names(said, injected)
        counting = [name for name in said if name not in reserved]
        by_expression = tuple(name for name in counting if isinstance(said[name][-1].source, Expression))
        run = _Run(subject, self._evaluation, {})
        return _Alike(
            said,
            tuple(self._option(run, name, said[name]) for name in counting if name not in by_expression),
            by_expression,
            tuple(finding for name in said if name in reserved for finding in _reserved(name, said[name])),
            tuple(sorted(contributors, key=lambda one: one.order)),
        )

    def _option(self, run: _Run, name: str, said: Sequence[Statement]) -> _Option:
        key = (run.subject.definition.one, *said)
        if key not in self._known:
            self._known[key] = run.option(name, said)
        return self._known[key]


@dataclass(frozen=True, eq=False)
class _Option:
    """An option, if it has a value, and what is told of it."""

    option: ResolvedOption | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class _Alike:
    """What all Plugins of a definition have alike for which the same lists are: all that is said of each option.

    What `by_expression` is given is not among the `options`: it is worked out for each Plugin.
    """

    said: Mapping[str, Sequence[Statement]]
    options: tuple[_Option, ...]
    by_expression: tuple[str, ...]
    findings: tuple[Finding, ...]
    applied: tuple[Contributor, ...]


def _order(finding: Finding) -> tuple[Where, str, str]:
    return finding.where, finding.code, finding.message


def _reserved_names(said: Mapping[str, Sequence[Statement]], injected: Sequence[Injected]) -> frozenset[str]:
    places = {steps_of(one.name) for one in injected}
    return frozenset(name for name in said if is_removed(name) or steps_of(name) in places)


@dataclass(frozen=True)
class _Run:
    """The resolution of one Plugin: what its expressions see, and what it is called."""

    subject: Subject
    evaluation: Evaluation
    variables: Mapping[str, Any]

    def option(self, name: str, said: Sequence[Statement]) -> _Option:
        """Return an option with its value, if it has one."""
        declared, winner = self.subject.definition.options.get(name), said[-1]
        hides = declared is not None and declared.type == "secret"
        source, findings = self._value(name, winner, hides=hides)
        findings += tuple(_conflicting(name, said))
        if hides:
            findings += tuple(self._shadowed_literals(name, said[:-1]))
        if declared is None:
            findings += (self._undeclared(name, winner),)
        if source is None:
            return _Option(None, findings)
        if declared and isinstance(source, Given):
            findings += tuple(self._faults(declared, source.value, winner))
        return _Option(ResolvedOption(name, source, tuple(said), hides), findings)

    def _value(
        self, name: str, winner: Statement, *, hides: bool
    ) -> tuple[Given | SecretRef | None, tuple[Finding, ...]]:
        """Return the value of the statement that won, and what is wrong or odd about it."""
        if not isinstance(winner.source, Expression):
            return winner.source, ()
        if not self.evaluation.enabled:
            message = f"{winner.field} gives {shown(name)} by an expression, and rules.expressions is switched off"
            return None, (EXPRESSION_DISABLED.finding(message, winner.where),)
        result = evaluate(winner.source.text, self.variables, self.evaluation.limits)
        of_whom = f"{shown(name)} of {self.subject.title}"
        if result.faults:
            # what a secret is made of may be the secret
            why = "what is wrong is not shown, for it is a secret" if hides else "; ".join(result.faults)
            message = f"{winner.field} gives no value to {of_whom}: {why}"
            return None, (EXPRESSION_FAILED.finding(message, winner.where),)
        retyped = () if hides else result.retyped
        messages = (f"{winner.field} gives {of_whom}: {one}" for one in retyped)
        return Given(result.value), tuple(EXPRESSION_RETYPED.finding(one, winner.where) for one in messages)

    def _faults(self, declared: Option, value: Any, winner: Statement) -> Iterator[Finding]:
        if declared.type == "secret" and winner.layer == DEFAULTS:
            # that nothing is set, which is all that a definition may say of a secret
            return
        code = SECRET_LITERAL if declared.type == "secret" else OPTION_TYPE_MISMATCH
        fault = type_fault(declared.type, value)
        if not fault:
            code, fault = REGEX_MISMATCH, regex_fault(declared.regex, value)
        if fault:
            by = self.subject.definition.one.key
            message = f"{winner.field} gives {shown(declared.name)}, which {by} declares as {declared.type}: it {fault}"
            yield code.finding(message, winner.where)

    def _shadowed_literals(self, name: str, losers: Sequence[Statement]) -> Iterator[Finding]:
        """Yield a warning for each secret that is written out where it does not count: in Git it lies all the same.

        It names no Plugin: of many that have it, one is told (greenhouse 7.2).
        """
        declared = self.subject.definition.options[name]
        for one in losers:
            if isinstance(one.source, Given):
                yield from map(softened, self._faults(declared, one.source.value, one))

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
            yield REQUIRED_OPTION_MISSING.finding(message, subject.written.where_at(subject.path))
