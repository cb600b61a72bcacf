"""CEL environments, which declare variables and functions, and the compilation and evaluation of CEL programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from reconciler.cel.budget import DEFAULT_CEL_LIMITS, ExpressionBudget, ExpressionLimits
from reconciler.cel.check import FieldDeclarations, NameResolver, StaticCheck, VariableReference
from reconciler.cel.code_writer import locate_error
from reconciler.cel.compile import CelCompiler, CompiledExpression
from reconciler.cel.errors import EvaluationError, ExpressionError
from reconciler.cel.library import FUNCTIONS, METHODS, OPENCHOREO_FUNCTIONS
from reconciler.cel.library.signatures import FunctionTable
from reconciler.cel.values import get_type_name
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

MAX_CACHED_PROGRAMS: Final = 4096
"""Maximum number of compiled programs in the cache."""


@dataclass(frozen=True, eq=False)
class CelEnvironment:
    """The variables and functions that an expression can use, and its limits.

    Equal environments share compiled programs.

    Attributes:
        variables: Names of the variables, or a mapping from each name to its declared fields. The value None in the
            mapping allows all fields. A name can contain dots, e.g. `a.b`.
        openchoreo_functions: Whether expressions can use the functions of `library/openchoreo.py`.
        container: Prefix of variable names, as in CEL. If it is `a.b`, the name `x` can mean `a.b.x`, `a.x` or `x`.
    """

    variables: Collection[str] | Mapping[str, FieldDeclarations] = frozenset()
    openchoreo_functions: bool = False
    limits: ExpressionLimits = DEFAULT_CEL_LIMITS
    container: str = ""

    def compile(self, text: str) -> CelProgram:
        """Check and compile an expression. Programs are cached.

        Raises:
            ExpressionError: The text is not valid CEL, exceeds a limit, or uses an undeclared name.
        """
        return _compile_program(self, text)

    @property
    def functions(self) -> FunctionTable:
        """The functions that are called as `f(x)`. Methods, which are called as `x.f()`, are not included."""
        return OPENCHOREO_FUNCTIONS if self.openchoreo_functions else FUNCTIONS

    @cached_property
    def declared_fields(self) -> Mapping[str, FieldDeclarations]:
        """The declared variables and their fields."""
        return self.variables if isinstance(self.variables, Mapping) else dict.fromkeys(self.variables)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return _to_hashable(self.declared_fields), self.openchoreo_functions, self.limits, self.container

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
        names: The declared variables that the expression uses.
        extensions: The nonstandard functions, macros and operators in the expression. Other CEL engines may not support
            them.
        references: Each use of a declared variable, in the order of the text.
        field_reads: Paths of the fields that the expression reads, e.g. `("spec", "size")`.
    """

    text: str
    names: frozenset[str]
    extensions: frozenset[str]
    references: tuple[VariableReference, ...]
    field_reads: frozenset[tuple[str, ...]]
    limits: ExpressionLimits
    code: CompiledExpression

    def evaluate(self, bindings: Mapping[str, Any], budget: ExpressionBudget | None = None) -> Any:
        """Evaluate the expression, and return a copy of the result.

        Args:
            bindings: Values of the variables. The types are None, bool, int, float, str, bytes, list, dict, and the
                classes of `values.py` and `timestamps.py`. Subclasses of these types are not allowed.
            budget: Limits the total cost of several evaluations. If it is None, this evaluation gets a new budget.

        Returns:
            A value of one of the types that `bindings` can contain, or `OMIT`.

        Raises:
            ExpressionError: The evaluation failed.
        """
        try:
            return self.code.evaluate(bindings, ExpressionBudget(self.limits) if budget is None else budget)
        except EvaluationError as error:
            raise _create_expression_error(locate_error(error, self.code.offsets), self.text) from None


def load_parser() -> None:
    """Load the parser library now. If this function is not called, the first compilation loads the parser library."""
    # Import the parser here, because the import is slow, and most commands do not need the parser.
    from reconciler.cel.parser import parse_expression

    parse_expression("true")


def evaluate_string(program: CelProgram, bindings: Mapping[str, Any], budget: ExpressionBudget | None = None) -> str:
    """Evaluate an expression whose result must be a string. Raise `ExpressionError` if the result is not a string."""
    value = program.evaluate(bindings, budget)
    if type(value) is str:
        return value
    message = f"expression returned non-string value of type {get_type_name(value)}"
    raise ExpressionError("CelNotString", message, program.text, 0)


@cached(MAX_CACHED_PROGRAMS)
def _compile_program(environment: CelEnvironment, text: str) -> CelProgram:
    # Import the parser here, because the import is slow, and most commands do not need the parser.
    from reconciler.cel.parser import parse_expression

    names = NameResolver(environment.declared_fields, environment.functions, environment.container)
    try:
        _check_length(text, environment.limits.characters)
        tree = parse_expression(text)
        check = StaticCheck(
            names, environment.functions, METHODS, environment.declared_fields, environment.limits.nesting
        )
        check.check_node(tree, frozenset(), 0)
        code = CelCompiler(names, environment.functions, METHODS).compile(tree)
    except EvaluationError as error:
        raise _create_expression_error(error, text) from None
    return CelProgram(
        text,
        frozenset(check.used_variables),
        frozenset(check.extensions),
        tuple(sorted(check.references, key=attrgetter("start"))),
        frozenset(check.field_reads),
        environment.limits,
        code,
    )


def _check_length(text: str, characters: int) -> None:
    if len(text) > characters:
        raise EvaluationError(
            "CelTooLong", f"the expression has {len(text)} characters, but at most {characters} are allowed"
        )


def _create_expression_error(error: EvaluationError, text: str) -> ExpressionError:
    return ExpressionError(error.code, error.message, text, error.offset)
