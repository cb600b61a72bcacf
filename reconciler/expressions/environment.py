"""The door: an environment of declared variables, programs compiled in it, and their evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.caching import cached
from reconciler.expressions.budget import DEFAULT_LIMITS, Budget, Limits
from reconciler.expressions.check import Check, Shape
from reconciler.expressions.compile import Compiler
from reconciler.expressions.errors import ExpressionError, Fault
from reconciler.expressions.library import FUNCTIONS, METHODS, PROJECT_FUNCTIONS
from reconciler.expressions.library.signatures import Functions
from reconciler.expressions.loops import Code
from reconciler.expressions.names import Names
from reconciler.expressions.results import copied
from reconciler.expressions.values import MISSING, type_name

PROGRAMS_KEPT: Final = 4096
"""How many compiled programs are remembered."""


@dataclass(frozen=True, eq=False)
class Environment:
    """What an expression may use: variables, the project's functions or not, and how much it may cost.

    `variables` are names, or names with their shapes: a mapping of the fields that a variable has to shapes of their
    own, or None where anything may be. Names may be dotted (`a.b`), and the parts of `container` are tried as prefixes
    of them. Environments are values: equal ones share their compiled programs.
    """

    variables: Collection[str] | Mapping[str, Shape] = frozenset()
    project_functions: bool = False
    limits: Limits = DEFAULT_LIMITS
    container: str = ""

    def compile(self, text: str) -> Program:
        """Return the program of an expression, checked; programs are remembered.

        Raises ExpressionError for text that is no CEL, is too long or too deep, or names what does not exist.
        """
        return _compiled(self, text)

    @property
    def functions(self) -> Functions:
        """The functions without a receiver that exist here."""
        return PROJECT_FUNCTIONS if self.project_functions else FUNCTIONS

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """The declared variables with what is known of them."""
        return self.variables if isinstance(self.variables, Mapping) else dict.fromkeys(self.variables)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return _frozen(self.shapes), self.project_functions, self.limits, self.container

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Environment) and self._identity == other._identity)

    def __hash__(self) -> int:
        return self._hash


def _frozen(shape: Shape) -> object:
    return None if shape is None else tuple(sorted((name, _frozen(inner)) for name, inner in shape.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled expression.

    `names` are the declared variables it uses, `extensions` the functions, macros and signs it uses that are not in
    standard CEL, so that other engines may not know them, and `places` where in the text declared variables stand: the
    offset and the name of each, in their order; what a macro binds is none. `reads` are the fields of variables that
    it reads, as far as they are written out: `("spec", "size")`. `code`, `slots` (of its variables, by name), `width`
    (how many slots there are) and `cost` (steps, without those of its loops and functions) are for the evaluation.
    """

    text: str
    names: frozenset[str]
    extensions: frozenset[str]
    places: tuple[tuple[int, str], ...]
    reads: frozenset[tuple[str, ...]]
    limits: Limits
    code: Code
    slots: Mapping[str, int]
    width: int
    cost: int

    def evaluate(self, bindings: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Return the value of the expression, a copy of its own.

        `bindings` has the variables' values: None, bool, int, float, str, bytes, list, dict (of those very classes), or
        Uint, Timestamp, Duration, Optional, Type; the result has the same, or is `OMIT`. A `budget` limits the sum of
        several evaluations, without one this evaluation has its own. Raises ExpressionError.
        """
        frame: list[Any] = [MISSING] * self.width
        frame[0] = budget = Budget(self.limits) if budget is None else budget
        for name, slot in self.slots.items():
            frame[slot] = bindings.get(name, MISSING)
        try:
            budget.spend(self.cost)
            return copied(budget, self.code(frame))
        except Fault as fault:
            raise _error(fault, self.text) from None


def load_parser() -> None:
    """Load the parser now, which the first expression would otherwise wait for; once loaded it stays."""
    from reconciler.expressions.parse import parse  # here, not above: a parser is built, and most commands need none

    parse("true")


def evaluate_string(program: Program, bindings: Mapping[str, Any], budget: Budget | None = None) -> str:
    """Return the value of an expression that must be a string (porch 11.4); raises ExpressionError."""
    value = program.evaluate(bindings, budget)
    if type(value) is str:
        return value
    message = f"expression returned non-string value of type {type_name(value)}"
    raise ExpressionError("CelNotString", message, program.text, 0)


@cached(PROGRAMS_KEPT)
def _compiled(environment: Environment, text: str) -> Program:
    from reconciler.expressions.parse import parse  # here, not above: a parser is built, and most commands need none

    names = Names(environment.shapes, environment.functions, environment.container)
    try:
        _check_length(text, environment.limits.characters)
        tree = parse(text)
        check = Check(names, environment.functions, METHODS, environment.shapes, environment.limits.nesting)
        check.node(tree, frozenset(), 0)
        compiler = Compiler(names, environment.functions, METHODS)
        code = compiler.compile(tree, {})
    except Fault as fault:
        raise _error(fault, text) from None
    return Program(
        text,
        frozenset(check.found),
        frozenset(check.extensions),
        tuple(sorted(check.places)),
        frozenset(check.reads),
        environment.limits,
        code,
        compiler.variables,
        compiler.slots,
        tree.size,
    )


def _check_length(text: str, characters: int) -> None:
    if len(text) > characters:
        raise Fault("CelTooLong", f"the expression has {len(text)} characters, {characters} are allowed")


def _error(fault: Fault, text: str) -> ExpressionError:
    return ExpressionError(fault.code, fault.message, text, fault.at)
