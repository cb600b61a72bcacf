"""Tests of compiled programs without a static check: errors occur only in evaluated parts of an expression."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionError, ExpressionLimits
from reconciler.cel.errors import CelCodes
from tests.support.cel_programs import compile_without_check


@pytest.mark.parametrize(
    ("text", "code", "message", "column"),
    [
        pytest.param("1 + y.z", "CelUndeclared", "the variable 'y' is not declared", 5, id="variable"),
        pytest.param(
            "1 + no(1)", "CelUnknownFunction", "there is no function no() for these arguments", 5, id="function"
        ),
        pytest.param(
            "size() + 1", "CelUnknownFunction", "there is no function size() for these arguments", 1, id="count"
        ),
        pytest.param("x.no(1)", "CelNoOverload", "no such overload: no(int, int)", 3, id="method"),
    ],
)
def test_unknown_names_are_errors_in_evaluated_parts(text: str, code: str, message: str, column: int) -> None:
    program, skipped = (
        compile_without_check(part, {"x"}, ExpressionLimits()) for part in (text, f"true || {text} == 1")
    )

    with pytest.raises(ExpressionError) as caught:
        program.evaluate({"x": 1})

    error = caught.value
    assert (error.code, error.message, error.column) == (code, message, column)
    assert code in CelCodes.by_name
    assert skipped.evaluate({"x": 1}) is True
