"""Writer of the Python code for operators and function calls.

If the classes of the operands are known, or if a test of their classes is short, the operation becomes a Python
expression such as `a + b`. In all other cases, the generated code calls a function such as `add`. Operations on
constants are evaluated during compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from reconciler.cel.budget import TEXT_PER_STEP, ExpressionBudget, ExpressionLimits
from reconciler.cel.code_writer import CodeWriter, Operand
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.conversions import get_size
from reconciler.cel.library.signatures import Overload, call_overload
from reconciler.cel.library.strings import contains as contains_text
from reconciler.cel.library.strings import ends_with, starts_with
from reconciler.cel.operators import BINARY_OPERATORS, UNARY_OPERATORS
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.cel.values import INT_MAX, INT_MIN, CelType, Uint, check_int_range

MAX_EXACT_INT: Final = 2**53
"""Up to this absolute value, every int can be converted to a double without rounding."""

_FOLDED_TYPES: Final = frozenset({type(None), bool, int, Uint, float, str, bytes, CelType, Timestamp, Duration})
"""Immutable types. If an operation on constants has a result of these types, all evaluations share the result."""

_NO_BUDGET: Final = ExpressionLimits(steps=0, bytes=0)
"""The limits for the evaluation of an operation on constants during compilation.

An operation that needs steps or bytes exceeds these limits. Therefore, it is not evaluated during compilation, but in
each evaluation of the expression.
"""

_ORDER_OPERATORS: Final = frozenset({"<", "<=", ">", ">="})
_COMPARISONS: Final = frozenset({"==", "!=", "in", *_ORDER_OPERATORS})


def _fold(writer: CodeWriter, apply: Callable[[ExpressionBudget], Any], operands: Sequence[Operand]) -> Operand | None:
    """Evaluate an operation on constants during compilation (constant folding), and return the result.

    Return None if an operand is not a constant, if the operation fails or uses the budget, or if the result is mutable.
    """
    if not all(operand.is_constant for operand in operands):
        return None
    try:
        result = apply(ExpressionBudget(_NO_BUDGET))
    except EvaluationError:
        return None
    return writer.add_constant(result) if type(result) in _FOLDED_TYPES else None


def write_unary(writer: CodeWriter, operator: str, count: int, operand: Operand, offset: int) -> Operand:
    """Write the operator `!` or `-`, which is applied `count` times."""

    def apply(budget: ExpressionBudget) -> Any:
        value = operand.constant
        for _ in range(count):
            value = UNARY_OPERATORS[operator](value)
        return value

    if folded := _fold(writer, apply, [operand]):
        return folded
    if operator == "-":
        call = f"negate({operand.text})" if count == 1 else f"negate_repeatedly({operand.text}, {count})"
        return writer.assign(call, offset, operand.kind if operand.kind in (int, float) else None)
    inverted = f"not {operand.text}"
    if operand.kind is not bool:
        inverted = f"{inverted} if type({operand.text}) is bool else invert({operand.text})"
    result = writer.assign(inverted, offset, bool)
    return result if count % 2 else writer.assign(f"not {result.text}", kind=bool)


def write_binary(writer: CodeWriter, operator: str, left: Operand, right: Operand, offset: int) -> Operand:
    """Write a binary operator."""
    function = BINARY_OPERATORS[operator]
    if folded := _fold(writer, lambda budget: function(budget, left.constant, right.constant), [left, right]):
        return folded
    general = f"{function.__name__}(budget, {left.text}, {right.text})"
    if operator in ("==", "!="):
        special = _format_equality(operator, left, right) or _format_equality(operator, right, left)
        return writer.assign(special or general, offset, bool)
    if operator in _ORDER_OPERATORS:
        return writer.assign(_format_order(operator, left, right, general), offset, bool)
    if operator in ("+", "-", "*"):
        return _write_arithmetic(writer, operator, left, right, general, offset)
    if operator == "in" and left.kind is str:
        general = f"{left.text} in {right.text} if type({right.text}) is dict else {general}"
    return writer.assign(general, offset, bool if operator in _COMPARISONS else None)


def _format_equality(operator: str, value: Operand, constant: Operand) -> str:
    """Return Python code that compares a value with a constant.

    Return "" for constants that need a call of the function `is_equal`, for example doubles and long strings.
    """
    match constant.constant:
        case None | True | False:
            return f"{value.text} {'is' if operator == '==' else 'is not'} {constant.constant}"
        case str(text) if len(text) <= TEXT_PER_STEP:
            return f"{value.text} {operator} {constant.text}"
        case int(number) if type(number) is int and abs(number) <= MAX_EXACT_INT:
            # Exclude bools, because in Python True == 1 and False == 0.
            is_equal = f"{value.text} == {constant.text}"
            is_equal = f"{is_equal} and type({value.text}) is not bool" if number in (0, 1) else is_equal
            return is_equal if operator == "==" else f"not ({is_equal})"
        case _:
            return ""


def _format_order(operator: str, left: Operand, right: Operand, general: str) -> str:
    comparison = f"{left.text} {operator} {right.text}"
    test = _format_int_test(left, right)
    return f"{comparison} if {test} else {general}" if test else comparison


def _format_int_test(left: Operand, right: Operand) -> str:
    """Return a Python expression that tests whether both operands are ints. Return "" if both are known to be ints."""
    unknown = [operand.text for operand in (left, right) if operand.kind is not int]
    if len(unknown) == 2:
        return f"type({unknown[0]}) is type({unknown[1]}) is int"
    return f"type({unknown[0]}) is int" if unknown else ""


def _write_arithmetic(
    writer: CodeWriter, operator: str, left: Operand, right: Operand, general: str, offset: int
) -> Operand:
    kinds = {left.kind, right.kind}
    if operator == "+" and str in kinds and kinds <= {None, str}:
        return _write_concatenation(writer, left, right, general, offset)
    if not kinds <= {None, int}:
        return writer.assign(general, offset)
    test = _format_int_test(left, right)
    with writer.block(f"if {test or 'True'}:"):
        result = writer.assign(f"{left.text} {operator} {right.text}", kind=None if test else int)
        writer.write(f"if not {INT_MIN} <= {result.text} <= {INT_MAX}: check_int_range({result.text})", offset)
    if test:
        with writer.block("else:"):
            writer.write(f"{result.text} = {general}", offset)
    return result


def _write_concatenation(writer: CodeWriter, left: Operand, right: Operand, general: str, offset: int) -> Operand:
    tests = [f"type({operand.text}) is str" for operand in (left, right) if operand.kind is not str]
    with writer.block(f"if {tests[0] if tests else 'True'}:"):
        writer.allocate(f"{_format_text_size(left)} + {_format_text_size(right)}", offset)
        result = writer.assign(f"{left.text} + {right.text}", kind=str)
    if tests:
        with writer.block("else:"):
            writer.write(f"{result.text} = {general}", offset)
    return result


def _format_text_size(text: Operand) -> str:
    """Return the code that computes how many bytes a string costs."""
    size = f"len({text.text})"
    if text.is_constant:
        return size if text.constant.isascii() else f"4 * {size}"
    return f"({size} if {text.text}.isascii() else 4 * {size})"


def write_membership(writer: CodeWriter, value: Operand, elements: Operand, texts: list[str], offset: int) -> Operand:
    """Write the operator `in` for a list literal of constant strings.

    The evaluation compares the value with one element after another, which costs one step for each element.
    """
    general = f"contains(budget, {value.text}, {elements.text})"
    if any(len(text) > TEXT_PER_STEP for text in texts):
        return writer.assign(general, offset, bool)
    positions = {text: position for position, text in reversed([*enumerate(texts, start=1)])}
    name = writer.add_object(positions)
    with writer.block(f"if type({value.text}) is str:"):
        writer.write(f"budget.steps -= {name}.get({value.text}, {len(texts)})")
        writer.write("if budget.steps < 0: budget.raise_no_steps()", offset)
        result = writer.assign(f"{value.text} in {name}", kind=bool)
    with writer.block("else:"):
        writer.write(f"{result.text} = {general}", offset)
    return result


_RESULT_TYPES: Final = {"bool": bool, "int": int, "str": str, "float": float}
"""The class of a function's result by the text of its return annotation."""


def write_call(
    writer: CodeWriter, name: str, overloads: tuple[Overload, ...], operands: list[Operand], offset: int
) -> Operand:
    """Write the call of the first overload that accepts the operands."""
    constants = tuple(operand.constant for operand in operands)
    if folded := _fold(writer, lambda budget: call_overload(name, overloads, budget, constants), operands):
        return folded
    arguments = "".join(f"{operand.text}, " for operand in operands)
    general = f"call_overload({writer.add_object(name)}, {writer.add_object(overloads)}, budget, ({arguments}))"
    overload = overloads[0] if len(overloads) == 1 else _select_overload(overloads, operands)
    if overload is not None:
        return writer.assign(_format_call(writer, overload, operands, general), offset, _get_result_type(overload))
    if overloads and len(operands) == 1:
        functions, fallback = map(writer.add_object, _create_dispatch(name, overloads))
        argument = operands[0].text
        general = f"{functions}.get(type({argument}), {fallback})(budget, {argument})"
    kinds = {_get_result_type(candidate) for candidate in overloads}
    return writer.assign(general, offset, kinds.pop() if len(kinds) == 1 else None)


def _get_result_type(overload: Overload) -> type | None:
    return _RESULT_TYPES.get(overload.apply.__annotations__.get("return", ""))


def _select_overload(overloads: tuple[Overload, ...], operands: list[Operand]) -> Overload | None:
    """Return the overload that accepts the known classes of the operands.

    Return None if no overload accepts the operands, or if an unknown class prevents the selection.
    """
    for overload in overloads:
        pairs = [*zip(operands, overload.parameters, strict=not overload.repeated)]
        if overload.repeated or any(operand.kind is None for operand, kinds in pairs if kinds is not None):
            return None
        if all(kinds is None or operand.kind in kinds for operand, kinds in pairs):
            return overload
    return None


def _format_call(writer: CodeWriter, overload: Overload, operands: list[Operand], general: str) -> str:
    """Return a Python expression that calls an overload if the overload accepts the operands.

    If the classes of the operands are unknown during compilation, the Python expression tests the operands. If a test
    fails, the Python expression evaluates `general`, which is Python code that selects an overload at run time.
    """
    if overload.repeated:
        return general
    tests = []
    for operand, kinds in zip(operands, overload.parameters, strict=True):
        if operand.kind is not None:
            if kinds is not None and operand.kind not in kinds:
                return general
        elif kinds is None or (int in kinds and len(kinds) > 1):
            # Use `general`, because it reports an int with more than 64 bits as an error.
            return general
        else:
            tests.append(_format_type_test(writer, operand.text, kinds))
    call, call_tests = _format_direct_call(writer, overload.apply, operands)
    tests += call_tests
    return f"{call} if {' and '.join(tests)} else {general}" if tests else call


def _format_type_test(writer: CodeWriter, value: str, kinds: frozenset[type]) -> str:
    if len(kinds) > 1:
        return f"type({value}) in {writer.add_object(kinds)}"
    (kind,) = kinds
    is_in_range = f" and {INT_MIN} <= {value} <= {INT_MAX}" if kind is int else ""
    return f"type({value}) is {writer.add_object(kind)}{is_in_range}"


def _format_direct_call(
    writer: CodeWriter, apply: Callable[..., Any], operands: list[Operand]
) -> tuple[str, list[str]]:
    """Return a Python expression that calls the function `apply` of an overload, and a list of Python conditions.

    The expression may be evaluated only if all conditions are true. For some functions, the expression is a shorter
    Python operation such as `len(x)`.
    """
    texts = [operand.text for operand in operands]
    if apply is get_size:
        return f"len({texts[0]})", []
    if apply in _TEXT_TESTS:
        template, searched = _TEXT_TESTS[apply]
        operand = operands[searched]
        if not operand.is_constant:
            return template.format(*texts), [f"len({operand.text}) <= {TEXT_PER_STEP}"]
        if len(operand.constant) <= TEXT_PER_STEP:
            return template.format(*texts), []
    return f"{writer.add_object(apply)}(budget, {', '.join(texts)})", []


_TEXT_TESTS: Final[dict[Callable[..., Any], tuple[str, int]]] = {
    contains_text: ("{1} in {0}", 0),
    starts_with: ("{0}.startswith({1})", 1),
    ends_with: ("{0}.endswith({1})", 1),
}
"""Functions that cost no steps for short strings. Each entry contains Python code that replaces the call, and the index
of the operand whose length determines the cost.
"""


@cache
def _create_dispatch(
    name: str, overloads: tuple[Overload, ...]
) -> tuple[dict[type, Callable[..., Any]], Callable[..., Any]]:
    """Return the Python functions that evaluate a CEL function with one parameter.

    Returns:
        A mapping from the class of an argument to the Python function for this class, and one Python function for
        arguments of all other classes.
    """
    functions: dict[type, Callable[..., Any]] = {}
    for overload in overloads:
        for kind in overload.parameters[0] or ():
            functions.setdefault(kind, _check_argument(overload.apply) if kind is int else overload.apply)
    return functions, lambda budget, argument: call_overload(name, overloads, budget, (argument,))


def _check_argument(apply: Callable[..., Any]) -> Callable[..., Any]:
    return lambda budget, number: apply(budget, check_int_range(number))
