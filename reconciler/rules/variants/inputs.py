"""What the expressions of a set may see, and their evaluation (porch 11.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.caching import cached
from reconciler.expressions import Environment, ExpressionError, Limits, evaluate_string
from reconciler.krm.identity import ObjectKey
from reconciler.rules.variants.set_model import Text

_BEFORE_THE_REPOSITORY = frozenset({"repoDefault", "packageDefault", "upstream", "target"})


class Described(Protocol):
    """An object by what expressions and selectors may see of it; spec and status stay hidden on purpose."""

    @property
    def key(self) -> ObjectKey:
        """Its identity."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels; {} when there are none."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations; {} when there are none."""
        ...


class TemplateError(ValueError):
    """A template that cannot be rendered for one target; the text says where and why."""


def describe(found: Described, namespace: str) -> dict[str, Any]:
    """Return the four metadata fields of an object as expressions see them."""
    return {
        "name": found.key.name,
        "namespace": found.key.namespace or namespace,
        "labels": dict(found.labels),
        "annotations": dict(found.annotations),
    }


def expression_fault(text: Text, limits: Limits) -> str | None:
    """Why an expression does not parse, is too long or uses an undeclared variable, or None."""
    if not text.expression:
        return None
    try:
        _environment(limits, text.knows_repository).compile(text.text)
    except ExpressionError as error:
        return str(error)
    return None


def extensions_of(text: Text, limits: Limits) -> tuple[str, ...]:
    """Return the functions, macros and signs of a sound expression that are not in standard CEL, sorted."""
    if not text.expression:
        return ()
    return tuple(sorted(_environment(limits, text.knows_repository).compile(text.text).extensions))


@dataclass(frozen=True)
class Inputs:
    """What the expressions of one target may see, and what each may cost."""

    bindings: Mapping[str, Any]
    limits: Limits

    def evaluate(self, text: Text) -> str:
        """Return what a text of a template stands for. Raises TemplateError."""
        if not text.expression:
            return text.text
        try:
            program = _environment(self.limits, text.knows_repository).compile(text.text)
            return evaluate_string(program, self.bindings)
        except ExpressionError as error:
            raise TemplateError(f"{text.path_in_template}: {error}") from error


@cached(2)
def _environment(limits: Limits, knows_repository: bool) -> Environment:
    # the repository is what repoExpr is to find: it cannot be asked for its own name
    own = {"repository"} if knows_repository else set()
    return Environment(_BEFORE_THE_REPOSITORY | own, limits=limits)
