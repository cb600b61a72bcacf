"""CEL environments: declared variables, compiled programs, and their evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.cel.budget import (
    CONTAINER_BYTES,
    DEFAULT_CEL_LIMITS,
    ELEMENT_BYTES,
    ENTRY_BYTES,
    ExpressionBudget,
    ExpressionLimits,
)
from reconciler.cel.check import FieldDeclarations, NameResolver, StaticCheck
from reconciler.cel.compile import CelCompiler
from reconciler.cel.errors import EvaluationError, ExpressionError
from reconciler.cel.library import FUNCTIONS, METHODS, PROJECT_FUNCTIONS
from reconciler.cel.library.signatures import FunctionTable
from reconciler.cel.loops import CompiledExpression
from reconciler.cel.values import (
    MAX_VALUE_DEPTH,
    MISSING,
    TYPE_NAMES,
    CelOptional,
    create_too_deep_error,
    decode_map_key,
    get_type_name,
)
from reconciler.memory import cached


def copy_result(budget: ExpressionBudget, value: Any, depth: int = 0) -> Any:
    """Return a deep copy of a result. The cost of a value that occurs twice (`[a, a]`) is subtracted twice."""
    if depth > MAX_VALUE_DEPTH:
        raise create_too_deep_error()
    kind = type(value)
    if kind is list:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ELEMENT_BYTES * len(value))
        return [copy_result(budget, element, depth + 1) for element in value]
    if kind is dict:
        budget.spend(len(value))
        budget.allocate(CONTAINER_BYTES + ENTRY_BYTES * len(value))
        result = {decode_map_key(key): copy_result(budget, element, depth + 1) for key, element in value.items()}
        if len(result) < len(value):
            raise EvaluationError(
                "CelNoOverload", "a result cannot be a map that has both a boolean key and the number 0 or 1"
            )
        return result
    if kind is CelOptional:
        return CelOptional(value.is_present, copy_result(budget, value.value, depth + 1))
    if kind is str or kind is bytes:
        budget.allocate(len(value))
    elif kind not in TYPE_NAMES:
        get_type_name(value)
    return value


MAX_CACHED_PROGRAMS: Final = 4096
"""Maximum number of compiled programs in the cache."""


@dataclass(frozen=True, eq=False)
class CelEnvironment:
    """What an expression may use. Equal environments share their compiled programs.

    Attributes:
        variables: Names of variables, or their names with declared fields. None as declaration allows all fields. Names
            may contain dots (`a.b`).
        project_functions: Whether the functions of `library/project.py` exist.
        limits: Limits for expressions and evaluations.
        container: Dotted name. Its parts are tried as prefixes of variable names.
    """

    variables: Collection[str] | Mapping[str, FieldDeclarations] = frozenset()
    project_functions: bool = False
    limits: ExpressionLimits = DEFAULT_CEL_LIMITS
    container: str = ""

    def compile(self, text: str) -> CelProgram:
        """Return the checked and compiled program of an expression. Programs are cached.

        Raises:
            ExpressionError: The text is not CEL, is too long or too deep, or uses an undeclared name.
        """
        return _compile_program(self, text)

    @property
    def functions(self) -> FunctionTable:
        """The functions without a receiver."""
        return PROJECT_FUNCTIONS if self.project_functions else FUNCTIONS

    @cached_property
    def declared_fields(self) -> Mapping[str, FieldDeclarations]:
        """The declared variables and their fields."""
        return self.variables if isinstance(self.variables, Mapping) else dict.fromkeys(self.variables)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return _to_hashable(self.declared_fields), self.project_functions, self.limits, self.container

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, CelEnvironment) and self._identity == other._identity)

    def __hash__(self) -> int:
        return self._hash


def _to_hashable(declarations: FieldDeclarations) -> object:
    if declarations is None:
        return None
    return tuple(sorted((name, _to_hashable(inner)) for name, inner in declarations.items()))


@dataclass(frozen=True, slots=True, eq=False)
class CelProgram:
    """A compiled expression.

    Attributes:
        names: Declared variables that it uses.
        extensions: Functions, macros and operators that are not part of standard CEL. Other engines may not support
            them.
        variable_positions: Offset and name of each use of a declared variable, in text order.
        field_reads: Fields of variables that it reads, for example `("spec", "size")`.
        code: The compiled closure.
        slots: Frame slot of each variable.
        width: Number of frame slots.
        cost: Steps of one evaluation, without those of loops and functions.
    """

    text: str
    names: frozenset[str]
    extensions: frozenset[str]
    variable_positions: tuple[tuple[int, str], ...]
    field_reads: frozenset[tuple[str, ...]]
    limits: ExpressionLimits
    code: CompiledExpression
    slots: Mapping[str, int]
    width: int
    cost: int

    def evaluate(self, bindings: Mapping[str, Any], budget: ExpressionBudget | None = None) -> Any:
        """Return a copy of the value of the expression.

        Args:
            bindings: Values of the variables: None, bool, int, float, str, bytes, list, dict (no subclasses), or the
                classes of `values.py` and `timestamps.py`.
            budget: Limits the sum of several evaluations. By default, each evaluation has its own budget.

        Returns:
            A value of the same types, or `OMIT`.

        Raises:
            ExpressionError: The evaluation failed.
        """
        frame: list[Any] = [MISSING] * self.width
        frame[0] = budget = ExpressionBudget(self.limits) if budget is None else budget
        for name, slot in self.slots.items():
            frame[slot] = bindings.get(name, MISSING)
        try:
            budget.spend(self.cost)
            return copy_result(budget, self.code(frame))
        except EvaluationError as error:
            raise _create_expression_error(error, self.text) from None


def load_parser() -> None:
    """Load the parser now. Otherwise the first expression loads it. It stays loaded."""
    # Imported here because building the parser is slow and most commands do not need it.
    from reconciler.cel.parser import parse_expression

    parse_expression("true")


def evaluate_string(program: CelProgram, bindings: Mapping[str, Any], budget: ExpressionBudget | None = None) -> str:
    """Return the value of an expression that must be a string. Raise `ExpressionError` otherwise."""
    value = program.evaluate(bindings, budget)
    if type(value) is str:
        return value
    message = f"expression returned non-string value of type {get_type_name(value)}"
    raise ExpressionError("CelNotString", message, program.text, 0)


@cached(MAX_CACHED_PROGRAMS)
def _compile_program(environment: CelEnvironment, text: str) -> CelProgram:
    # Imported here because building the parser is slow and most commands do not need it.
    from reconciler.cel.parser import parse_expression

    names = NameResolver(environment.declared_fields, environment.functions, environment.container)
    try:
        _check_length(text, environment.limits.characters)
        tree = parse_expression(text)
        check = StaticCheck(
            names, environment.functions, METHODS, environment.declared_fields, environment.limits.nesting
        )
        check.check_node(tree, frozenset(), 0)
        compiler = CelCompiler(names, environment.functions, METHODS)
        code = compiler.compile(tree, {})
    except EvaluationError as error:
        raise _create_expression_error(error, text) from None
    return CelProgram(
        text,
        frozenset(check.used_variables),
        frozenset(check.extensions),
        tuple(sorted(check.variable_positions)),
        frozenset(check.field_reads),
        environment.limits,
        code,
        compiler.variables,
        compiler.slots,
        tree.size,
    )


def _check_length(text: str, characters: int) -> None:
    if len(text) > characters:
        raise EvaluationError(
            "CelTooLong", f"the expression has {len(text)} characters, but at most {characters} are allowed"
        )


def _create_expression_error(error: EvaluationError, text: str) -> ExpressionError:
    return ExpressionError(error.code, error.message, text, error.offset)
