"""Results: from what an expression gives to data that YAML has (openchoreo 5.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from reconciler.expressions import OMIT, Budget, Exhausted, ExpressionError, Optional, Program, Uint
from reconciler.krm.findings import Code
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import CEL_CODES, TEMPLATE_KEY_TYPE
from reconciler.rules.composition.faults import Fault, FaultError
from reconciler.rules.fields import dotted, shown

_BUDGET = CEL_CODES["CelBudget"]
_CONVERSION = CEL_CODES["CelConversion"]


class ResultError(ValueError):
    """A result that data cannot have; the text says what it is and what to do."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def evaluate(program: Program, bindings: Mapping[str, Any], budget: Budget, path: Path) -> Any:
    """Return what an expression gives, as data or `OMIT`. Raises FaultError, at `path`."""
    try:
        return as_data(program.evaluate(bindings, budget))
    except ExpressionError as error:
        hint = "; the limit is for one render of everything" if error.code == _BUDGET.name else ""
        raise _no_value(CEL_CODES[error.code], program, path, f"{error}{hint}") from None
    except ResultError as error:
        raise _no_value(error.code, program, path, str(error)) from None


def _no_value(code: Code, program: Program, path: Path, why: str) -> FaultError:
    message = f"{dotted(path)} has the expression {shown(program.text)}, which gives no usable value: {why}"
    return FaultError(Fault(code, path, message))


def pay(budget: Budget, steps: int, size: int, path: Path) -> None:
    """Take from the budget what rendering costs beside expressions. Raises FaultError when it is used up."""
    try:
        budget.spend(steps)
        budget.allocate(size)
    except Exhausted as error:
        message = f"{dotted(path)} must not cost as much together with what is rendered before it: {error.message}"
        raise FaultError(Fault(_BUDGET, path, message)) from None


def as_data(value: Any) -> Any:
    """Return a value of CEL as data, or `OMIT`, which CEL has in no list or map. Raises ResultError."""
    match value:
        case str() | bool() | None:
            return value
        case Uint():
            return int(value)
        case int():
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [as_data(item) for item in value]
        case dict():
            return {_key(key): as_data(one) for key, one in value.items()}
        case _ if value is OMIT:
            return value
        case _:
            raise _no_data(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise ResultError(TEMPLATE_KEY_TYPE, f"the keys of a map must be strings, not {shown(key)}: use string()")


def _no_data(value: Any) -> ResultError:
    if isinstance(value, float):
        return ResultError(_CONVERSION, "the result must be a number that is finite")
    if isinstance(value, Optional):
        return ResultError(_CONVERSION, "the result must not be an optional: end with .orValue(…)")
    message = "the result must be what YAML has, not bytes, a time or a type: use string()"
    return ResultError(_CONVERSION, message)
