"""What the expressions of a set may see, and their evaluation (porch 11.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reconciler.expressions import Environment, ExpressionError, evaluate_string
from reconciler.krm.identity import ObjectKey
from reconciler.rules.variants.set_model import Text

_BEFORE_THE_REPOSITORY = frozenset({"repoDefault", "packageDefault", "upstream", "target"})
_ENVIRONMENT = Environment(_BEFORE_THE_REPOSITORY | {"repository"})
# the repository is what repoExpr is to find: it cannot be asked for its own name
_REPO_ENVIRONMENT = Environment(_BEFORE_THE_REPOSITORY)


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


def expression_fault(text: str, *, knows_repository: bool = True) -> str | None:
    """Why an expression does not parse or uses an undeclared variable, or None."""
    try:
        _environment(knows_repository).compile(text)
    except ExpressionError as error:
        return str(error)
    return None


def evaluate(text: Text, bindings: Mapping[str, Any]) -> str:
    """Return what a text of a template stands for, given these inputs. Raises TemplateError."""
    if not text.expression:
        return text.text
    try:
        return evaluate_string(_environment("repository" in bindings).compile(text.text), bindings)
    except ExpressionError as error:
        raise TemplateError(f"{text.path}: {error}") from error


def _environment(knows_repository: bool) -> Environment:
    return _ENVIRONMENT if knows_repository else _REPO_ENVIRONMENT
